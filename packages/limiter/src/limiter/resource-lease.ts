import {
  addAmounts,
  getAmount,
  checkNames,
  copyAmounts,
  copyDeltas,
  copyTotals,
  isRecord,
  MAX_AMOUNT,
  NO_AMOUNTS,
  type Amounts,
} from "../core/amounts.ts";
import { negate } from "../core/bucket/decision.ts";
import type { Policy } from "../core/bucket/policy.ts";
import { ValidationError } from "../core/errors.ts";
import type { ResourceAmounts } from "../repository/port.ts";

/** The part of a lease that belongs to one resource. */
export interface LeaseOfResource {
  /** The resource that this part was taken from. */
  readonly resource: string;
  /** What the entity consumed of every limit, pending differences included. */
  readonly consumed: Amounts;
  /**
   * The names in the call that the policy does not limit, but another level does. They count as
   * usage and are not charged.
   * @example if (lease.unlimited.includes("tpm")) console.warn("this key has no token limit");
   */
  readonly unlimited: readonly string[];
  /**
   * Takes more now, within the limits, leaving what its acquire had to leave; rejects with
   * `RateLimitExceeded`.
   * @example await lease.consume({ tpm: 200 }); // the answer is longer than estimated
   */
  consume(amounts: Amounts): Promise<void>;
  /**
   * Adds signed differences, which commit writes. They may cause debt.
   * @example lease.adjust({ tpm: -120 }); // 120 fewer than estimated
   */
  adjust(deltas: Amounts): void;
  /**
   * Gives back a part at commit. Throws for more than was consumed.
   * @example lease.release({ tpm: 300 });
   */
  release(amounts: Amounts): void;
  /**
   * Sets the real totals of the named limits. The last call counts. A total that is `undefined`,
   * such as the usage that a stream did not report, leaves its limit as it is, and the limiter
   * warns once.
   * @example lease.settle({ tpm: response.usage?.total_tokens });
   */
  settle(totals: Readonly<Record<string, number | undefined>>): void;
}

/** The amounts taken from one resource, and the cost with the differences. */
export interface PartAmounts {
  readonly resource: string;
  readonly taken: Amounts;
  readonly settled: Amounts;
}

interface Owner {
  assertOpen(): void;
  /** Calls `onTaken` as soon as the store has granted the take, before the promise resolves. */
  take(amounts: ResourceAmounts, onTaken: OnTaken): Promise<void>;
  /** Called before a method throws because its argument is invalid. */
  onInvalid(error: ValidationError): void;
  onUsageMissing(resource: string, limitNames: readonly string[]): void;
  /** Whether some level has a limit of this name. */
  knows(resource: string, limitName: string): boolean;
}

/** Called with the policy that a later take was decided with. */
export type OnTaken = (policy: Policy | undefined) => void;

/** A `consume` that the store has not yet decided. */
interface PendingTake {
  readonly amounts: Amounts;
  /** Limits whose total was settled meanwhile. That total includes the tokens of this take. */
  readonly settled: Set<string>;
}

/** A method that notes a difference, which commit writes. */
type Change = "adjust" | "release" | "settle";

/** The arguments of a change that threw. */
interface InvalidChange {
  readonly error: ValidationError;
  readonly change: Change;
  readonly amounts: Readonly<Record<string, unknown>>;
}

const NONE: readonly never[] = [];

/**
 * Keeps the amounts taken from one resource, and separately the differences that are not written
 * yet.
 */
export class ResourceLease implements LeaseOfResource {
  readonly resource: string;
  readonly #owner: Owner;
  /**
   * Undefined if the lease was granted without the store, because only the store knows the names.
   */
  readonly #policy: Policy | undefined;
  readonly #leave: ResourceAmounts["leave"];
  /** Made on first use, because most leases have none. */
  #unlimited: Set<string> | undefined;
  #taken: Amounts;
  #pendingDeltas: Amounts = NO_AMOUNTS;
  /** Made on first use, because most leases have none. */
  #pendingTakes: Set<PendingTake> | undefined;
  /** The last change, if it was invalid. */
  #invalid: InvalidChange | undefined;

  constructor(
    owner: Owner,
    { resource, amounts, leave }: ResourceAmounts,
    policy: Policy | undefined,
  ) {
    this.resource = resource;
    this.#owner = owner;
    this.#taken = amounts;
    this.#policy = policy;
    this.#leave = leave;
    this.#noteUnlimited(amounts, policy);
  }

  get consumed(): Amounts {
    this.#owner.assertOpen();
    const names = new Set([
      ...(this.#policy?.names ?? [
        ...Object.keys(this.#taken),
        ...Object.keys(this.#pendingDeltas),
      ]),
      ...(this.#unlimited ?? NONE),
    ]);
    return Object.fromEntries(
      [...names].map((name) => [name, this.#total(this.#findCounted(name) ?? name)]),
    );
  }

  get unlimited(): readonly string[] {
    this.#owner.assertOpen();
    return [...(this.#unlimited ?? NONE)];
  }

  async consume(amounts: Amounts): Promise<void> {
    this.#owner.assertOpen();
    const take: PendingTake = { amounts: copyAmounts(amounts, "consume"), settled: new Set() };
    this.#checkStatedBefore(take.amounts, "consume");
    const pendingTakes = (this.#pendingTakes ??= new Set());
    pendingTakes.add(take);
    try {
      const wanted = this.#withOwnNames(take.amounts);
      const { resource } = this;
      await this.#owner.take({ resource, amounts: wanted, leave: this.#leave }, (policy) => {
        this.#addTaken(take);
        this.#noteUnlimited(take.amounts, policy);
      });
    } finally {
      pendingTakes.delete(take);
    }
  }

  adjust(deltas: Amounts): void {
    this.#change("adjust", deltas);
  }

  release(amounts: Amounts): void {
    this.#change("release", amounts);
  }

  settle(totals: Readonly<Record<string, number | undefined>>): void {
    this.#change("settle", totals);
  }

  /** Applies the valid part of the last change, if that threw the error that ended the work. */
  keepValidPart(ended: ValidationError): void {
    if (this.#invalid?.error !== ended) return;
    const { change, amounts } = this.#invalid;
    for (const [name, amount] of Object.entries(amounts)) {
      try {
        this.#apply(change, { [name]: amount });
      } catch (error) {
        if (!(error instanceof ValidationError)) throw error;
      }
    }
  }

  /** What is published at the end of the lease. */
  get amounts(): PartAmounts {
    const settled = addAmounts(this.#taken, this.#pendingDeltas);
    return { resource: this.resource, taken: this.#taken, settled };
  }

  /** What commit has to write: nothing if the estimate was right. */
  differences(): readonly ResourceAmounts[] {
    const deltas = Object.entries(this.#pendingDeltas);
    if (deltas.every(([, delta]) => delta === 0)) return [];
    const counts = this.#policy?.counts;
    const changed = deltas.filter(([name, delta]) => delta !== 0 || counts?.has(name) === true);
    return [{ resource: this.resource, amounts: this.#withOwnNames(Object.fromEntries(changed)) }];
  }

  /** Applies a change to all of its limits or, if it is invalid, to none. */
  #change(change: Change, amounts: unknown): void {
    this.#owner.assertOpen();
    try {
      this.#apply(change, amounts);
      this.#invalid = undefined;
    } catch (error) {
      if (error instanceof ValidationError) {
        const asked = isRecord(amounts) ? { ...amounts } : NO_AMOUNTS;
        this.#invalid = { error, change, amounts: asked };
        this.#owner.onInvalid(error);
      }
      throw error;
    }
  }

  #apply(change: Change, amounts: unknown): void {
    if (change === "settle") this.#setTotals(amounts);
    else if (change === "adjust") this.#add(copyDeltas(amounts, change), change);
    else this.#add(negate(copyAmounts(amounts, change)), change);
  }

  #setTotals(totals: unknown): void {
    const { given: wanted, missing } = copyTotals(totals, "settle");
    this.#checkNames(wanted, "settle");
    if (missing.length > 0) this.#noteUsageMissing(missing);
    this.#noteUnlimited(wanted, this.#policy);
    const differences = Object.entries(wanted).map(([name, total]) => [
      name,
      total - getAmount(this.#taken, name),
    ]);
    this.#pendingDeltas = { ...this.#pendingDeltas, ...Object.fromEntries(differences) };
    for (const { settled } of this.#pendingTakes ?? NONE)
      for (const name of Object.keys(wanted)) settled.add(name);
  }

  #noteUsageMissing(names: readonly string[]): void {
    this.#checkNames(Object.fromEntries(names.map((name) => [name, 0])), "settle");
    this.#owner.onUsageMissing(this.resource, names);
  }

  #addTaken({ amounts, settled }: PendingTake): void {
    this.#taken = addAmounts(this.#taken, amounts);
    const included = Object.entries(amounts).filter(([name]) => settled.has(name));
    if (included.length > 0)
      this.#pendingDeltas = addAmounts(this.#pendingDeltas, negate(Object.fromEntries(included)));
  }

  #total(name: string): number {
    return getAmount(this.#taken, name) + getAmount(this.#pendingDeltas, name);
  }

  #add(deltas: Amounts, field: string): void {
    this.#checkNames(deltas, field);
    for (const [name, delta] of Object.entries(deltas)) {
      const total = this.#total(name) + delta;
      if (total >= 0 && total <= MAX_AMOUNT) continue;
      const reason =
        total < 0
          ? `must not give back more than the ${this.#total(name)} that were consumed`
          : `must not bring the total above ${MAX_AMOUNT}`;
      throw new ValidationError(`${field}.${name}`, Math.abs(delta), reason);
    }
    this.#noteUnlimited(deltas, this.#policy);
    this.#pendingDeltas = addAmounts(this.#pendingDeltas, deltas);
  }

  #noteUnlimited(amounts: Amounts, policy: Policy | undefined): void {
    if (policy === undefined) return;
    for (const name in amounts)
      if (!policy.knownNames.has(name)) (this.#unlimited ??= new Set()).add(name);
  }

  #checkNames(amounts: Amounts, field: string): void {
    if (this.#policy === undefined) return;
    const { knownNames } = this.#policy;
    for (const name in amounts)
      if (!knownNames.has(name) && !this.#accepts(name))
        checkNames({ [name]: 0 }, knownNames, field);
    this.#checkStatedBefore(amounts, field);
  }

  /** The name that states the amount of a limit in this lease, if that is not its own. */
  #findCounted(limitName: string): string | undefined {
    const isOwn = [this.#taken, this.#pendingDeltas].some((each) => Object.hasOwn(each, limitName));
    return isOwn ? undefined : this.#policy?.counts?.get(limitName);
  }

  /** Throws for a limit whose amount this lease states by the name that it counts. */
  #checkStatedBefore(amounts: Amounts, field: string): void {
    if (this.#policy?.counts === undefined) return;
    for (const name in amounts) {
      const counted = this.#findCounted(name);
      if (counted !== undefined && Object.hasOwn(this.#taken, counted))
        throw new ValidationError(
          `${field}.${name}`,
          name,
          `counts what this lease states as ${counted}; state all of it by that name`,
        );
    }
  }

  /** Amounts in which a limit that was stated by its own name before does not count another. */
  #withOwnNames(amounts: Amounts): Amounts {
    const counts = this.#policy?.counts;
    if (counts === undefined) return amounts;
    const own = [...counts.keys()].filter((name) => Object.hasOwn(this.#taken, name));
    return { ...Object.fromEntries(own.map((name) => [name, 0])), ...amounts };
  }

  /** Whether a name that the policy lacks may be used. */
  #accepts(name: string): boolean {
    return this.#unlimited?.has(name) === true || this.#owner.knows(this.resource, name);
  }
}
