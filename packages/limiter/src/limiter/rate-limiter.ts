/*
 * Beside this file: call.ts checks a request, lease.ts and resource-lease.ts are what a grant
 * returns, waiting.ts has the queues, and traced-calls.ts what is published about a call.
 */
import type { Amounts } from "../core/amounts.ts";
import { RateLimiterUnavailable, ValidationError } from "../core/errors.ts";
import type { AsyncDisposable } from "../repository/platform-types.ts";
import {
  buildDefaults,
  checkOnUnavailable,
  type OnUnavailable,
  type Policy,
} from "../core/bucket/policy.ts";
import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { Limit } from "../core/limit.ts";
import { checkSupportedLimits } from "../core/supported-limits.ts";
import { checkOptions, optionNames } from "../core/options.ts";
import { ACQUIRE, END } from "../diagnostics/channels.ts";
import type { ConsumeOutcome, ConsumeRequest, MaybePromise } from "../repository/port.ts";
import type { Repository } from "../repository/repository.ts";
import type { Clock } from "../repository/system-clock.ts";
import { computeAvailability, type Availability } from "./availability.ts";
import { emitWarning } from "../repository/warning.ts";
import { checkCharge, checkRequest, type AcquireRequest, type ChargeRequest } from "./call.ts";
import { Lease, type LeaseHost } from "./lease.ts";
import { LeaseWarnings, type LeaseWatch } from "./lease-warnings.ts";
import { checkRepository } from "./mistakes.ts";
import { publishCharge, TracedCall, type Grant } from "./traced-calls.ts";
import { buildLimiterClosedError, withCall } from "./unavailable.ts";
import { WaitingRoom, type TakeResult } from "./waiting.ts";

/** What a limiter needs. */
export interface RateLimiterOptions {
  /** Where limits and balances are. The caller closes it. */
  readonly repository: Repository;
  /**
   * Limits of every entity on every resource, below the stored system level: each applies where no
   * stored level has a limit of its name. They are never stored. @default none
   * @example new RateLimiter({ repository, defaults: [Limit.perMinute("rpm", 100)] });
   */
  readonly defaults?: readonly Limit[];
  /** What to do when the store is unavailable. @default the stored value last seen, else "block" */
  readonly onUnavailable?: OnUnavailable;
  /**
   * Called when the end of a lease could not be written, even after retries. @default emits a
   * process warning
   * @example new RateLimiter({ repository, onSettlementFailed: (error) => log.warn(error) });
   */
  readonly onSettlementFailed?: (error: RateLimiterUnavailable, lease: Lease) => void;
}

/** Granted with a lease, or refused with the reason. */
export type AcquireResult =
  | {
      /** The call was granted. */
      readonly granted: true;
      /** Holds the tokens taken. Commit it, or roll it back. */
      readonly lease: Lease;
    }
  | {
      /** The call was refused, and nothing was charged. */
      readonly granted: false;
      /** Which limits refused, and when to retry. It is not thrown. */
      readonly refusal: RateLimitExceeded;
    };

const LIMITER_NAMES = optionNames<RateLimiterOptions>({
  repository: true,
  defaults: true,
  onUnavailable: true,
  onSettlementFailed: true,
});

const PING_TIMEOUT_MS = 1000;

/** A call that was granted without the store. */
const LET_THROUGH = { granted: true, receipt: undefined } as const;

/**
 * Acquires and ends leases. It keeps no balances: every decision is made by the repository.
 *
 * @example
 * const request = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 500 } };
 * await limiter.acquire(request, async (lease) => {
 *   const answer = await callModel();
 *   lease.settle({ tpm: answer.usage.total_tokens });
 *   return answer;
 * });
 */
export class RateLimiter implements AsyncDisposable {
  readonly #repository: Repository;
  readonly #defaults: Policy | undefined;
  readonly #onUnavailable: OnUnavailable | undefined;
  readonly #waiting: WaitingRoom;
  readonly #warnings = new LeaseWarnings();
  readonly #host: LeaseHost;
  #closed = false;

  constructor(options: RateLimiterOptions) {
    checkRepository(options);
    checkOptions(options, LIMITER_NAMES, "RateLimiter");
    if (
      options.onSettlementFailed !== undefined &&
      typeof options.onSettlementFailed !== "function"
    )
      throw new ValidationError(
        "onSettlementFailed",
        options.onSettlementFailed,
        "must be a function",
      );
    this.#repository = options.repository;
    this.#defaults =
      options.defaults && buildDefaults(checkSupportedLimits(options.defaults, "defaults"));
    this.#onUnavailable =
      options.onUnavailable === undefined ? undefined : checkOnUnavailable(options.onUnavailable);
    this.#waiting = new WaitingRoom(options.repository);
    this.#host = {
      repository: options.repository,
      onGivenBack: (buckets) => this.#waiting.wake(buckets),
      onEndFailed: options.onSettlementFailed ?? warn,
      warnings: this.#warnings,
    };
  }

  /** The clock of all decisions. @internal */
  get clock(): Clock {
    return this.#repository.clock;
  }

  /** Whether a call with this choice is let through while the store is unavailable. @internal */
  letsThrough(onUnavailable?: OnUnavailable): boolean {
    const stored = this.#repository.lastOnUnavailable;
    return (onUnavailable ?? this.#onUnavailable ?? stored ?? "block") === "allow";
  }

  /**
   * Takes tokens, runs the work, and settles. If the work returns, the lease is committed; if it
   * throws, everything is given back and the error is rethrown. An error of the lease's own
   * `settle`, `adjust` or `release` is rethrown too, but the work was done: the lease is committed
   * with what was valid. Rejects with `RateLimitExceeded` if a limit refuses.
   * @example const answer = await limiter.acquire(request, (lease) => callModel(lease));
   */
  acquire<T>(request: AcquireRequest, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
  /**
   * Takes tokens and returns the lease, for `await using`: the end of the block gives everything
   * back unless the lease was committed.
   * @example
   * await using lease = await limiter.acquire(request);
   * lease.settle({ tpm: await streamAnswer() });
   * await lease.commit();
   */
  acquire(request: AcquireRequest): Promise<Lease>;
  acquire<T>(
    request: AcquireRequest,
    work?: (lease: Lease) => T | PromiseLike<T>,
  ): Promise<T | Lease> {
    if (work === undefined || typeof request !== "object")
      return this.#acquireLease(request, this.#warnings.begin());
    if (typeof work !== "function")
      return Promise.reject(
        new ValidationError("work", work, "must be a function that takes the lease"),
      );
    return this.#runWithLease(request, work);
  }

  /**
   * Takes tokens, and returns a refusal instead of throwing it.
   * @example
   * const verdict = await limiter.tryAcquire(request);
   * if (!verdict.granted) return respond(429, verdict.refusal.toJSON());
   * await verdict.lease.commit();
   */
  async tryAcquire(request: AcquireRequest): Promise<AcquireResult> {
    const watch = this.#warnings.begin();
    const wanted = checkRequest(request, this.#defaults);
    const taking = this.#decide(request, wanted);
    const result = taking instanceof Promise ? await taking : taking;
    if (!result.granted) return { granted: false, refusal: new RateLimitExceeded(result) };
    return { granted: true, lease: this.#createLease(wanted, result, watch) };
  }

  /**
   * Records consumption that has already happened. It is never refused and may cause debt; it
   * cascades, and counts as usage but not as a request. Rejects with `RateLimiterUnavailable` if it
   * could not be recorded, whatever `onUnavailable` says.
   * @example
   * await limiter.charge({ entityId: "key-1", resource: "gpt-4", amounts: { tpm: 1_250 } });
   */
  async charge(request: ChargeRequest): Promise<void> {
    const wanted = checkCharge(request, this.#defaults);
    if (this.#closed) throw buildLimiterClosedError();
    try {
      await this.#repository.charge(wanted);
    } catch (error) {
      throw error instanceof RateLimiterUnavailable ? withCall(error, request) : error;
    }
    publishCharge(this.#repository, wanted);
  }

  /**
   * Whether an acquire would be granted now. Nothing is written.
   * @example const { allowed, retryAfterSeconds } = await limiter.check(request);
   */
  async check(request: AcquireRequest): Promise<Availability> {
    return computeAvailability(
      request,
      await this.#repository.read(checkRequest(request, this.#defaults)),
    );
  }

  /**
   * Whole tokens left of every limit, refill included; negative in debt. If the entity cascades,
   * the lower of its own balance and its parent's.
   * @example const { rpm, tpm } = await limiter.available("key-1", "gpt-4");
   */
  async available(
    entityId: string,
    resource: string,
    options: Pick<AcquireRequest, "limits"> = {},
  ): Promise<Record<string, number>> {
    const { available } = await this.check({ ...options, entityId, resource, consume: {} });
    return { ...available };
  }

  /**
   * Seconds until the amounts fit if nothing else is taken; `Infinity` if they never can.
   * @example const seconds = await limiter.timeUntilAvailable("key-1", "gpt-4", { tpm: 2_000 });
   */
  async timeUntilAvailable(
    entityId: string,
    resource: string,
    needed: Amounts,
    options: Pick<AcquireRequest, "limits"> = {},
  ): Promise<number> {
    const { retryAfterSeconds } = await this.check({
      ...options,
      entityId,
      resource,
      consume: needed,
    });
    return retryAfterSeconds;
  }

  /**
   * Whether the store responds in time. Never throws. It says nothing about limits: `check` does.
   * @example if (!(await limiter.isReachable({ timeoutMs: 500 }))) respond(503);
   */
  async isReachable({
    timeoutMs = PING_TIMEOUT_MS,
  }: {
    /** How long to wait for a response. @default 1000 */
    readonly timeoutMs?: number;
  } = {}): Promise<boolean> {
    const answered = new AbortController();
    const tooLate = this.#repository.clock.sleep(timeoutMs, answered.signal).then(
      () => false,
      () => false,
    );
    const ping = this.#repository.ping().catch(() => false);
    const isReached = await Promise.race([ping, tooLate]);
    answered.abort();
    return isReached;
  }

  /**
   * Rejects waiting calls with `RateLimiterUnavailable`. The repository stays open.
   * @example await limiter.close();
   */
  async close(): Promise<void> {
    this.#closed = true;
    this.#waiting.close(buildLimiterClosedError());
  }

  /**
   * The same as `close`.
   * @example await using limiter = new RateLimiter({ repository });
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** With a watch if the caller has to end the lease. */
  async #acquireLease(request: AcquireRequest, watch?: LeaseWatch): Promise<Lease> {
    const wanted = checkRequest(request, this.#defaults);
    const taking = this.#decide(request, wanted);
    const result = taking instanceof Promise ? await taking : taking;
    if (result.granted) return this.#createLease(wanted, result, watch);
    const refusal = new RateLimitExceeded(result, "to be thrown");
    // Wait one turn, so that the caller can attach a handler first: Node tracks unhandled
    // rejections, and the bookkeeping costs as much as the decision.
    await undefined;
    throw refusal;
  }

  async #runWithLease<T>(
    request: AcquireRequest,
    work: (lease: Lease) => T | PromiseLike<T>,
  ): Promise<T> {
    const lease = await this.#acquireLease(request);
    let result: T;
    try {
      result = await work(lease);
    } catch (error) {
      await lease.finishAfter(error);
      throw error;
    }
    await lease.finish("commit");
    return result;
  }

  #createLease(wanted: ConsumeRequest, granted: Grant, watch?: LeaseWatch): Lease {
    const lease = Lease.create(this.#host, wanted, granted);
    if (watch !== undefined) this.#warnings.watch(lease, watch);
    return lease;
  }

  /** Takes, or waits and then takes, and publishes that if there are subscribers. */
  #decide(request: AcquireRequest, wanted: ConsumeRequest): MaybePromise<TakeResult<Grant>> {
    const isHeard = ACQUIRE.hasSubscribers || END.hasSubscribers;
    if (!isHeard) return this.#takeOrWait(request, wanted);
    const trace = new TracedCall(this.#repository, wanted, request.waitUpToMs);
    return trace.take(() => this.#takeOrWait(request, wanted, trace));
  }

  /**
   * Returns the result itself if the backend decides synchronously: every further promise would
   * cost as much as the decision.
   */
  #takeOrWait(
    request: AcquireRequest,
    wanted: ConsumeRequest,
    trace?: TracedCall,
  ): MaybePromise<TakeResult<Grant>> {
    if (this.#closed) throw buildLimiterClosedError();
    if (request.waitUpToMs !== undefined && request.waitUpToMs > 0)
      return this.#wait(request, wanted, request.waitUpToMs, trace);
    request.signal?.throwIfAborted();
    return this.#take(request, wanted);
  }

  #wait(
    request: AcquireRequest,
    wanted: ConsumeRequest,
    waitUpToMs: number,
    trace: TracedCall | undefined,
  ): Promise<TakeResult<Grant>> {
    return this.#waiting.wait({
      entityId: wanted.entityId,
      resources: wanted.resources,
      waitUpToMs,
      signal: request.signal,
      take: async () => this.#take(request, wanted),
      peek: () => this.#peek(request, wanted),
      undo: (granted) =>
        this.#createLease(wanted, trace?.attachTo(granted) ?? granted).finish("rollback"),
    });
  }

  #take(request: AcquireRequest, wanted: ConsumeRequest): MaybePromise<TakeResult<Grant>> {
    try {
      const outcome = this.#repository.consume(wanted);
      return outcome instanceof Promise ? this.#awaitOutcome(request, outcome) : outcome;
    } catch (error) {
      return this.#degradeOrThrow(request, error);
    }
  }

  async #awaitOutcome(
    request: AcquireRequest,
    outcome: Promise<ConsumeOutcome>,
  ): Promise<TakeResult<Grant>> {
    try {
      return await outcome;
    } catch (error) {
      return this.#degradeOrThrow(request, error);
    }
  }

  async #peek(request: AcquireRequest, wanted: ConsumeRequest): Promise<TakeResult<Grant>> {
    try {
      return { granted: false, statuses: await this.#repository.read(wanted) };
    } catch (error) {
      return this.#degradeOrThrow(request, error);
    }
  }

  /**
   * Applies `onUnavailable` if the store was unavailable, and rethrows every other error: bugs and
   * denied access never let a call through.
   */
  #degradeOrThrow(request: AcquireRequest, error: unknown): Grant {
    if (!(error instanceof RateLimiterUnavailable)) throw error;
    if (!this.letsThrough(request.onUnavailable)) throw withCall(error, request);
    return LET_THROUGH;
  }
}

function warn(error: RateLimiterUnavailable, lease: Lease): void {
  emitWarning(
    `The end of a lease of ${lease.entityId} on ${lease.resource} could not be written; nothing was refunded. ${error.message}`,
    { code: error.code },
  );
}
