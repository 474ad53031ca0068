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
  /**
   * Every limit of the decision: for each resource the entity's limits, then its parent's.
   */
  readonly statuses: readonly LimitStatus[];
  /** The limits that refused, in the order of `statuses`. There is at least one. */
  readonly violations: readonly LimitStatus[];
  /** The limits that would have let the call through. */
  readonly passed: readonly LimitStatus[];
  /** The violation with the longest wait. */
  readonly primaryViolation: LimitStatus;
  /** `Infinity` if the call can never fit. */
  readonly retryAfterSeconds: number;
  /** Whole seconds, rounded up, for a `Retry-After` header; undefined if the call can never fit. */
  readonly retryAfterHeader: string | undefined;

  constructor(statuses: readonly LimitStatus[]) {
    const violations = statuses.filter((status) => status.exceeded);
    const [first] = violations;
    if (first === undefined)
      throw new ValidationError("statuses", statuses.length, "must hold a limit that was exceeded");
    const primary = violations.reduce(
      (longest, status) =>
        status.retryAfterSeconds > longest.retryAfterSeconds ? status : longest,
      first,
    );
    const message = messageOf(primary);
    // A refusal is an expected result. Capturing a stack trace would cost ten times as much as the
    // decision: about 10 µs instead of 1 µs.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super("ERR_LIMITER_RATE_LIMIT_EXCEEDED", message);
    Error.stackTraceLimit = stackTraceLimit;
    this.statuses = statuses;
    this.violations = violations;
    this.passed = statuses.filter((status) => !status.exceeded);
    this.primaryViolation = primary;
    this.retryAfterSeconds = primary.retryAfterSeconds;
    this.retryAfterHeader = Number.isFinite(primary.retryAfterSeconds)
      ? String(Math.ceil(primary.retryAfterSeconds))
      : undefined;
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

function messageOf({
  entityId,
  resource,
  limitName,
  limit,
  available,
  requested,
  retryAfterSeconds,
}: LimitStatus): string {
  const what = `Limit ${limitName} of ${entityId} on ${resource} has ${available} of ${limit.capacity}, and ${requested} were requested`;
  return Number.isFinite(retryAfterSeconds)
    ? `${what}. Retry in ${retryAfterSeconds} s (if nothing else is taken meanwhile).`
    : `${what}. This can never fit: request less, or raise the limit.`;
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
