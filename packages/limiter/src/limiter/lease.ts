import { getAmount, NO_AMOUNTS, type Amounts } from "../core/amounts.ts";
import {
  InfrastructureError,
  LeaseExpiredError,
  RateLimiterUnavailable,
  ValidationError,
} from "../core/errors.ts";
import { countAmounts } from "../core/bucket/counted-amounts.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { AsyncDisposable } from "../repository/platform-types.ts";
import type { Policy } from "../core/bucket/policy.ts";
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { TakenPart } from "../core/bucket/settlement.ts";
import type {
  ConsumeRequest,
  MaybePromise,
  Receipt,
  RepositoryPort,
  ResourceAmounts,
} from "../repository/port.ts";
import type { LeaseRecord, LeaseWarnings } from "./lease-warnings.ts";
import {
  ResourceLease,
  type LeaseOfResource,
  type OnTaken,
  type PartAmounts,
} from "./resource-lease.ts";

/**
 * How often a limiter tries to write the end of a lease. The backend itself retries with back-off;
 * these attempts are for a store that has just become available again.
 */
const END_ATTEMPTS = 3;

/** The most errors that are followed by their `cause`; a chain may be a circle. */
const MAX_CAUSES = 10;

/** The result of a commit that has nothing to write. One for all saves 30 ns a call. */
const NOTHING_TO_WRITE = Promise.resolve();

/** What all leases of one limiter share. */
export interface LeaseHost {
  readonly repository: RepositoryPort;
  /** Called after tokens went back to these buckets, so that waiting calls try again. */
  readonly onGivenBack: (buckets: Iterable<TakenPart>) => void;
  /** Called when the end of a lease could not be written and there is no caller to throw to. */
  readonly onEndFailed: (error: RateLimiterUnavailable, lease: Lease) => void;
  readonly warnings: LeaseWarnings;
}

/** Publishes the end of a lease to subscribers. */
export interface LeaseTrace {
  takeMore<T>(amounts: ResourceAmounts, take: () => Promise<T>): Promise<T>;
  end(
    how: "commit" | "rollback",
    written: Promise<void>,
    amounts: () => readonly PartAmounts[],
  ): Promise<void>;
}

/** What a call took. It has no receipt if the call was granted without the store. */
export type Taken = (
  | { readonly receipt: Receipt; readonly policies: readonly Policy[] }
  | { readonly receipt: undefined; readonly policies?: undefined }
) & {
  /** Set if there was a subscriber when it was acquired. */
  readonly trace?: LeaseTrace | undefined;
};

type State = "open" | "committed" | "rolled back";

/**
 * The tokens taken for one call, until its real cost is known. Differences are collected, and
 * `commit` writes them once; `rollback` gives everything back. A lease does not expire: if the
 * process dies, what it took comes back only by refilling.
 */
export class Lease implements LeaseOfResource, AsyncDisposable {
  /** Only the limiter makes leases. @internal */
  static create(host: LeaseHost, request: ConsumeRequest, taken: Taken): Lease {
    return new Lease(host, request, taken);
  }

  /** The entity that the tokens were taken from. */
  readonly entityId: string;
  /** The call's own resource; `resources` lists the others too. */
  readonly resource: string;
  /** True if granted without the store: nothing was taken, and nothing will be written. */
  readonly degraded: boolean;
  readonly #host: LeaseHost;
  readonly #request: ConsumeRequest;
  readonly #taken: Taken;
  #state: State = "open";
  /**
   * One for each resource, made on first use: most calls cost what they estimated and need none.
   */
  #parts: readonly ResourceLease[] | undefined;
  /**
   * Calls of `consume` that have not finished; the end of the lease waits for them. Made on first
   * use, because most leases have none.
   */
  #pendingTakes: Set<Promise<void>> | undefined;
  /** The errors thrown by `settle`, `adjust` and `release`. Made on first use. */
  #invalidChanges: WeakSet<ValidationError> | undefined;
  /** Where the end is noted if the lease is watched. */
  #record: LeaseRecord | undefined;

  private constructor(host: LeaseHost, request: ConsumeRequest, taken: Taken) {
    this.entityId = request.entityId;
    this.resource = request.resources[0]!.resource;
    this.degraded = taken.receipt === undefined;
    this.#host = host;
    this.#request = request;
    this.#taken = taken;
  }

  get consumed(): Amounts {
    return this.#ownPart().consumed;
  }

  get unlimited(): readonly string[] {
    return this.#ownPart().unlimited;
  }

  /** The resources of the call, its own first. */
  get resources(): readonly string[] {
    this.#assertOpen();
    return this.#request.resources.map(({ resource }) => resource);
  }

  /**
   * The part of the lease that belongs to one resource.
   * @example lease.resourceLease("search").settle({ queries: 3 });
   */
  resourceLease(resource: string): LeaseOfResource {
    this.#assertOpen();
    const part = this.#allParts().find((candidate) => candidate.resource === resource);
    if (part === undefined)
      throw new ValidationError(
        "resource",
        resource,
        `is not part of this lease; its resources are ${this.resources.join(", ")}`,
      );
    return part;
  }

  consume(amounts: Amounts): Promise<void> {
    return this.#ownPart().consume(amounts);
  }

  adjust(deltas: Amounts): void {
    this.#ownPart().adjust(deltas);
  }

  release(amounts: Amounts): void {
    this.#ownPart().release(amounts);
  }

  settle(totals: Readonly<Record<string, number | undefined>>): void {
    this.#ownPart().settle(totals);
  }

  /**
   * The state of every limit after the take: the entity's, then its parent's, then those of further
   * resources. It is what this process knows, refill included, and costs no request, so what other
   * processes took may be missing. Differences count once they are committed. `requested` is 0, and
   * `exceeded` means debt. Empty if the lease is degraded.
   * @example
   * const statuses = await lease.statuses();
   * const left = statuses.find(({ limitName }) => limitName === "rpm")?.available;
   */
  async statuses(): Promise<readonly LimitStatus[]> {
    return this.remembered();
  }

  /** The same, without a promise if the backend answers synchronously. @internal */
  remembered(): MaybePromise<readonly LimitStatus[]> {
    this.#assertOpen();
    const { receipt } = this.#taken;
    return receipt === undefined ? [] : this.#host.repository.remembered(receipt);
  }

  /**
   * Writes the differences. Rejects with `RateLimiterUnavailable` if they cannot be written; then
   * nothing is refunded.
   * @example await lease.commit(); // the lease of an `acquire` without a callback
   */
  commit(): Promise<void> {
    // Most calls cost what was estimated: their lease has no parts, and nothing to write.
    if (this.#parts !== undefined || this.#state !== "open" || this.#taken.trace !== undefined)
      return this.#trace("commit", () => this.#commitDifferences());
    this.#end("committed");
    return NOTHING_TO_WRITE;
  }

  /**
   * Gives everything back.
   * @example await lease.rollback(); // the work was not done
   */
  rollback(): Promise<void> {
    return this.#trace("rollback", () => this.#giveBack());
  }

  /**
   * Rolls back, unless the lease has already ended. A failure is reported instead of thrown,
   * because throwing would hide the error that ended the block.
   * @example await using lease = await limiter.acquire(request);
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.finish("rollback");
  }

  /**
   * Ends the lease after its work threw. If an invalid `settle`, `adjust` or `release` threw, the
   * work was done: what is valid is committed. Otherwise everything is given back. @internal
   */
  async finishAfter(error: unknown): Promise<void> {
    const invalid = this.#invalidChangeIn(error);
    if (invalid === undefined) return this.finish("rollback");
    if (this.#state === "open") for (const part of this.#allParts()) part.keepValidPart(invalid);
    await this.finish("commit", true);
  }

  /** Notes the end of the lease in a record. @internal */
  recordEndIn(record: LeaseRecord): void {
    this.#record = record;
  }

  /** Ends the lease. Reports a failure of the store instead of throwing it. @internal */
  async finish(how: "commit" | "rollback", isAfterError = how === "rollback"): Promise<void> {
    if (this.#state !== "open") return;
    try {
      const written = how === "commit" ? this.commit() : this.rollback();
      // Awaiting nothing would take 60 ns of the 650 ns of an acquire.
      if (written !== NOTHING_TO_WRITE) await written;
    } catch (error) {
      if (error instanceof RateLimiterUnavailable) return this.#host.onEndFailed(error, this);
      // An error of the work must not be hidden by this one, and a result of the work must not be
      // lost because the store denies the write.
      if (!isAfterError && !(error instanceof InfrastructureError)) throw error;
      this.#host.onEndFailed(this.#unwrittenEnd(error), this);
    }
  }

  #assertOpen(): void {
    if (this.#state !== "open") throw new LeaseExpiredError(this.#state);
  }

  #end(state: "committed" | "rolled back"): void {
    this.#assertOpen();
    this.#state = state;
    if (this.#record !== undefined) this.#record.isOpen = false;
  }

  /** Ends the lease and publishes that to subscribers, unless it had ended before. */
  #trace(how: "commit" | "rollback", end: () => Promise<void>): Promise<void> {
    const { trace } = this.#taken;
    if (trace === undefined || this.#state !== "open") return end();
    return trace.end(how, end(), () => this.#amounts());
  }

  /** The amounts taken, and the cost. A degraded lease has taken nothing. */
  #amounts(): readonly PartAmounts[] {
    const parts = this.#allParts().map((part) => part.amounts);
    if (!this.degraded) return parts;
    return parts.map(({ resource }) => ({ resource, taken: NO_AMOUNTS, settled: NO_AMOUNTS }));
  }

  async #giveBack(): Promise<void> {
    this.#end("rolled back");
    if (this.#pendingTakes !== undefined) await Promise.allSettled(this.#pendingTakes);
    const { receipt } = this.#taken;
    if (receipt === undefined) return;
    await attemptEnd(() => this.#host.repository.giveBack(receipt));
    this.#host.onGivenBack(listTakenParts(receipt));
  }

  async #commitDifferences(): Promise<void> {
    this.#end("committed");
    if (this.#pendingTakes !== undefined) await Promise.allSettled(this.#pendingTakes);
    const { receipt } = this.#taken;
    if (receipt === undefined || this.#parts === undefined) return;
    const deltas = this.#parts.flatMap((part) => part.differences());
    if (deltas.length === 0) return;
    await attemptEnd(() => this.#host.repository.settle(receipt, deltas));
    this.#host.onGivenBack(listSettledParts(receipt, deltas));
  }

  #ownPart(): ResourceLease {
    return this.#allParts()[0]!;
  }

  #allParts(): readonly ResourceLease[] {
    if (this.#parts !== undefined) return this.#parts;
    const owner = {
      assertOpen: () => this.#assertOpen(),
      onInvalid: (error: ValidationError) => (this.#invalidChanges ??= new WeakSet()).add(error),
      onUsageMissing: (resource: string, limitNames: readonly string[]) =>
        this.#host.warnings.noteUsageMissing(this.entityId, resource, limitNames),
      take: (amounts: ResourceAmounts, onTaken: OnTaken) => this.#trackTake(amounts, onTaken),
      // A call with limits of its own may name no others.
      knows: (resource: string, name: string) =>
        this.#request.override === undefined &&
        (this.#request.defaults?.names.has(name) === true ||
          this.#host.repository.knowsLimit(this.entityId, resource, name)),
    };
    this.#parts = this.#request.resources.map(
      (amounts, index) => new ResourceLease(owner, amounts, this.#taken.policies?.[index]),
    );
    return this.#parts;
  }

  /** An error that `settle`, `adjust` or `release` threw: this error, or one of its causes. */
  #invalidChangeIn(error: unknown): ValidationError | undefined {
    let cause = error;
    for (let causes = 0; causes <= MAX_CAUSES && cause instanceof Error; causes += 1) {
      if (cause instanceof ValidationError && this.#invalidChanges?.has(cause)) return cause;
      ({ cause } = cause);
    }
    return undefined;
  }

  #unwrittenEnd(cause: unknown): RateLimiterUnavailable {
    const { entityId, resource } = this;
    return new RateLimiterUnavailable(
      `The end of a lease could not be written: ${String(cause)}. Nothing was refunded.`,
      {
        entityId,
        resource,
        cause,
      },
    );
  }

  /**
   * The end of the lease also waits for `onTaken`, so that the differences it writes are complete.
   */
  async #trackTake(amounts: ResourceAmounts, onTaken: OnTaken): Promise<void> {
    const { trace } = this.#taken;
    const taking = (
      trace === undefined
        ? this.#takeMore(amounts)
        : trace.takeMore(amounts, () => this.#takeMore(amounts))
    ).then(onTaken);
    const pendingTakes = (this.#pendingTakes ??= new Set());
    pendingTakes.add(taking);
    try {
      await taking;
    } finally {
      pendingTakes.delete(taking);
    }
  }

  async #takeMore(amounts: ResourceAmounts): Promise<Policy | undefined> {
    const { receipt } = this.#taken;
    if (receipt === undefined) return undefined;
    // Later takes are also decided with the call's own limits, if it has any.
    const outcome = await this.#host.repository.consume(
      { ...this.#request, resources: [amounts] },
      receipt,
    );
    if (!outcome.granted) throw new RateLimitExceeded(outcome, "to be thrown");
    return outcome.policies[0];
  }
}

/**
 * The parts that a rollback gave something back to. Like the next function, it computes nothing
 * while no call waits.
 */
function* listTakenParts({ parts }: Receipt): Generator<TakenPart> {
  for (const part of parts)
    if (Object.values(part.amounts).some((amount) => amount > 0)) yield part;
}

/** The parts that a settlement gave something back to: it may also have charged more, or both. */
function* listSettledParts(
  { parts }: Receipt,
  deltas: readonly ResourceAmounts[],
): Generator<TakenPart> {
  for (const { resource, amounts } of deltas)
    for (const part of parts) {
      if (part.resource !== resource) continue;
      const own = Object.entries(countAmounts(part.policy, amounts));
      if (own.some(([name, delta]) => delta < 0 && getAmount(part.amounts, name) > 0)) yield part;
    }
}

/** Retries while the store is unavailable. The receipt makes a repeated end harmless. */
async function attemptEnd(write: () => void | Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable) || attempt === END_ATTEMPTS) throw error;
    }
  }
}
