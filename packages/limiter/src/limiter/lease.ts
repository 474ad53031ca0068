import type { Amounts } from "../core/amounts.ts";
import { InfrastructureError, LeaseExpiredError, RateLimiterUnavailable, ValidationError } from "../core/errors.ts";
import type { Policy } from "../core/policy.ts";
import { RateLimitExceeded } from "../core/refusal.ts";
import type { Receipt, RepositoryPort, ResourceAmounts } from "../repository/port.ts";
import { ResourceLease, type LeaseOfResource } from "./resource-lease.ts";

/** Attempts at writing the end of a lease. The backend has its own retries with back-off; these cover a store that has just come back. */
const END_ATTEMPTS = 3;

/** What a lease is made of. */
export interface Grant {
  readonly repository: RepositoryPort;
  readonly entityId: string;
  readonly charges: readonly ResourceAmounts[];
  /** The limits that the call brought along; what the lease takes later is decided by them too. */
  readonly override: Policy | undefined;
  /** Undefined when the call was let through without the store. */
  readonly taken: { readonly receipt: Receipt; readonly limitNames: readonly ReadonlySet<string>[] } | undefined;
  /** Called after tokens went back, so that waiting calls are decided again. */
  readonly onGivenBack: (resources: readonly string[]) => void;
  /** Told when the end of a lease could not be written and no caller is there to hear it. */
  readonly onEndFailed: (error: RateLimiterUnavailable, lease: Lease) => void;
}

type State = "open" | "committed" | "rolled back";

const DONE = Promise.resolve();

/** Makes a lease; only the limiter does. */
export let createLease: (grant: Grant) => Lease;

/**
 * What was taken for one call, until its real cost is known. Differences are collected and written once, by `commit`; `rollback`
 * gives everything back. A lease does not expire: a process that dies keeps what it took until it refills.
 */
export class Lease implements LeaseOfResource, AsyncDisposable {
  static {
    createLease = (grant) => new Lease(grant);
  }

  readonly entityId: string;
  readonly resource: string;
  /** Granted without the store: nothing was taken, and nothing will be written. */
  readonly degraded: boolean;
  readonly #grant: Grant;
  readonly #parts: readonly ResourceLease[];
  #state: State = "open";
  /** Takes that `consume` has under way; the end of the lease waits for them. */
  #underWay: Promise<unknown> = DONE;

  private constructor(grant: Grant) {
    const { entityId, charges, taken } = grant;
    this.#grant = grant;
    this.entityId = entityId;
    this.resource = charges[0]!.resource;
    this.degraded = taken === undefined;
    const owner = { assertOpen: () => this.#assertOpen(), take: (amounts: ResourceAmounts) => this.#take(amounts) };
    this.#parts = charges.map((charge, index) => new ResourceLease(owner, charge, taken?.limitNames[index]));
  }

  get consumed(): Amounts {
    return this.#parts[0]!.consumed;
  }

  /** The resources of the call, its own first. */
  get resources(): readonly string[] {
    this.#assertOpen();
    return this.#parts.map(({ resource }) => resource);
  }

  /** The part of the lease that belongs to one resource. */
  resourceLease(resource: string): LeaseOfResource {
    this.#assertOpen();
    const part = this.#parts.find((candidate) => candidate.resource === resource);
    if (part === undefined)
      throw new ValidationError(
        "resource",
        resource,
        `is not on this lease; it has ${this.#parts.map((held) => held.resource).join(", ")}`,
      );
    return part;
  }

  consume(amounts: Amounts): Promise<void> {
    return this.#parts[0]!.consume(amounts);
  }

  adjust(deltas: Amounts): void {
    this.#parts[0]!.adjust(deltas);
  }

  release(amounts: Amounts): void {
    this.#parts[0]!.release(amounts);
  }

  settle(totals: Amounts): void {
    this.#parts[0]!.settle(totals);
  }

  /** Writes the differences. Rejects with `RateLimiterUnavailable` when they cannot be written; nothing is refunded then. */
  async commit(): Promise<void> {
    this.#end("committed");
    await this.#underWay;
    const deltas = this.#parts.flatMap((part) => part.differences());
    const { taken, repository } = this.#grant;
    if (taken === undefined || deltas.length === 0) return;
    await attemptEnd(() => repository.settle(taken.receipt, deltas));
    this.#givenBack();
  }

  /** Gives everything back. */
  async rollback(): Promise<void> {
    this.#end("rolled back");
    await this.#underWay;
    const { taken, repository } = this.#grant;
    if (taken === undefined) return;
    await attemptEnd(() => repository.giveBack(taken.receipt));
    this.#givenBack();
  }

  /** Rolls back unless the lease was committed or rolled back. A failure is reported, not thrown: it would hide the error that ended the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finish("rollback");
  }

  /** Ends the lease for a caller that cannot be told of a failure. @internal */
  async finish(how: "commit" | "rollback"): Promise<void> {
    if (this.#state !== "open") return;
    try {
      await (how === "commit" ? this.commit() : this.rollback());
    } catch (error) {
      if (!(error instanceof InfrastructureError)) throw error;
      this.#grant.onEndFailed(this.#unwritten(error), this);
    }
  }

  /** A store that denies the end of a lease leaves it as unwritten as one that cannot be reached. */
  #unwritten(error: InfrastructureError): RateLimiterUnavailable {
    if (error instanceof RateLimiterUnavailable) return error;
    return new RateLimiterUnavailable(error.message, { entityId: this.entityId, resource: this.resource, cause: error });
  }

  #assertOpen(): void {
    if (this.#state !== "open") throw new LeaseExpiredError(this.#state);
  }

  #end(state: "committed" | "rolled back"): void {
    this.#assertOpen();
    this.#state = state;
  }

  #givenBack(): void {
    this.#grant.onGivenBack(this.#parts.map(({ resource }) => resource));
  }

  async #take(charge: ResourceAmounts): Promise<void> {
    const { repository, entityId, override, taken } = this.#grant;
    if (taken === undefined) return;
    const taking = Promise.resolve(repository.consume({ entityId, charges: [charge], override }, taken.receipt));
    this.#underWay = Promise.allSettled([this.#underWay, taking]);
    const outcome = await taking;
    if (!outcome.granted) throw new RateLimitExceeded(outcome.statuses);
  }
}

/** Tries again when the store is unavailable; the receipt makes a repeated end harmless. */
async function attemptEnd(write: () => void | Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable) || attempt === END_ATTEMPTS) throw error;
    }
  }
}
