import type { LimitStatus } from "./decision.ts";
import { RateLimitError, ValidationError } from "../errors.ts";

/**
 * The JSON form of a refusal, with the field names of the Python zae-limiter. `null` means that the
 * call can never fit.
 */
export interface RateLimitExceededJson {
  /** Always the same word, so that clients can recognize a refusal. */
  readonly error: "rate_limit_exceeded";
  /** The sentence of the error, for people. */
  readonly message: string;
  /** Seconds until the call fits if nothing else is taken. */
  readonly retry_after_seconds: number | null;
  /** The same in whole milliseconds. */
  readonly retry_after_ms: number | null;
  /** Every limit of the decision, whether it refused or not. */
  readonly limits: readonly {
    /** Whose bucket it is: the call's entity, or its parent. */
    readonly entity_id: string;
    /** The resource of the bucket. */
    readonly resource: string;
    /** The name of the limit. */
    readonly limit_name: string;
    /** The most tokens that the bucket can hold. */
    readonly capacity: number;
    /** Tokens that flow back in every period. */
    readonly refill_amount: number;
    /** The period of the refill. */
    readonly refill_period_seconds: number;
    /** Whole tokens left, rounded down; negative in debt. */
    readonly available: number;
    /** Whole tokens that the call wanted. */
    readonly requested: number;
    /** Whether this limit refused the call. */
    readonly exceeded: boolean;
    /** 0 if the amount fits. */
    readonly retry_after_seconds: number | null;
  }[];
}

/**
 * A call did not fit, and nothing was charged. Says which limits refused, and when the call would
 * fit if nothing else is taken meanwhile.
 */
export class RateLimitExceeded extends RateLimitError {
  // Private fields, because Node prints every other one: sixty lines for a refusal nobody catches.
  readonly #statuses: readonly LimitStatus[];
  readonly #primary: LimitStatus;

  constructor(statuses: readonly LimitStatus[]) {
    const primary = longestWait(statuses);
    const message = messageOf(primary);
    // A refusal is an expected result, and `tryAcquire` throws none. Capturing a stack trace would
    // cost more than the decision.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super("ERR_LIMITER_RATE_LIMIT_EXCEEDED", message);
    Error.stackTraceLimit = stackTraceLimit;
    this.#statuses = statuses;
    this.#primary = primary;
  }

  /** Every limit of the decision: for each resource the entity's limits, then its parent's. */
  get statuses(): readonly LimitStatus[] {
    return this.#statuses;
  }

  /** The limits that refused, in the order of `statuses`. There is at least one. */
  get violations(): readonly LimitStatus[] {
    return this.#statuses.filter((status) => status.exceeded);
  }

  /** The limits that would have let the call through. */
  get passed(): readonly LimitStatus[] {
    return this.#statuses.filter((status) => !status.exceeded);
  }

  /** The violation with the longest wait. */
  get primaryViolation(): LimitStatus {
    return this.#primary;
  }

  /** `Infinity` if the call can never fit. */
  get retryAfterSeconds(): number {
    return this.#primary.retryAfterSeconds;
  }

  /** Whole seconds, rounded up, for a `Retry-After` header; undefined if the call can never fit. */
  get retryAfterHeader(): string | undefined {
    const { retryAfterSeconds } = this.#primary;
    return Number.isFinite(retryAfterSeconds) ? String(Math.ceil(retryAfterSeconds)) : undefined;
  }

  /**
   * The body of a 429 response; also what `JSON.stringify` uses.
   * @example response.status(429).json(refusal.toJSON());
   */
  toJSON(): RateLimitExceededJson {
    const seconds = finiteOrNull(this.retryAfterSeconds);
    return {
      error: "rate_limit_exceeded",
      message: this.message,
      retry_after_seconds: seconds,
      retry_after_ms: seconds === null ? null : Math.round(seconds * 1000),
      limits: this.statuses.map((status) => ({
        entity_id: status.entityId,
        resource: status.resource,
        limit_name: status.limitName,
        capacity: status.limit.capacity,
        refill_amount: status.limit.refillAmount,
        refill_period_seconds: status.limit.refillPeriodSeconds,
        available: status.available,
        requested: status.requested,
        exceeded: status.exceeded,
        retry_after_seconds: finiteOrNull(status.retryAfterSeconds),
      })),
    };
  }
}

/**
 * A refusal that is about to be thrown. Its stack trace says where: in the caller's line, if the
 * caller awaits the call.
 */
export function thrownRefusal(statuses: readonly LimitStatus[]): RateLimitExceeded {
  const refusal = new RateLimitExceeded(statuses);
  // Only V8's engines have it; others keep a refusal without a trace.
  Error.captureStackTrace?.(refusal, thrownRefusal);
  return refusal;
}

function longestWait(statuses: readonly LimitStatus[]): LimitStatus {
  let longest: LimitStatus | undefined;
  for (const status of statuses)
    if (status.exceeded && status.retryAfterSeconds > (longest?.retryAfterSeconds ?? -1))
      longest = status;
  if (longest !== undefined) return longest;
  throw new ValidationError("statuses", statuses.length, "must hold a limit that was exceeded");
}

/** The wait is exact to the millisecond, and rounded up to tenths of a second: never too early. */
function messageOf({
  entityId,
  resource,
  limitName,
  limit,
  available,
  requested,
  retryAfterSeconds,
}: LimitStatus): string {
  const what = `${limitName} of ${entityId} on ${resource}: ${available} of ${limit.capacity} left, ${requested} requested.`;
  return Number.isFinite(retryAfterSeconds)
    ? `${what} Retry in ${Math.ceil(Math.round(retryAfterSeconds * 1000) / 100) / 10} s.`
    : `${what} This can never fit: request less, or raise the limit.`;
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
