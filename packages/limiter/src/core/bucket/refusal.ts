import { computeStatuses, type BucketClaim, type LimitStatus } from "./decision.ts";
import { isRate, type LimitKind } from "../limit-kinds.ts";
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
    /** The kind of the limit. */
    readonly kind: LimitKind;
    /** The most tokens that the bucket can hold. */
    readonly capacity: number;
    /** Tokens that flow back in every period; of rates only. */
    readonly refill_amount?: number;
    /** The period of the refill; of rates only. */
    readonly refill_period_seconds?: number;
    /** When the window of a quota or session ends; null while none is open. */
    readonly resets_at_ms?: number | null;
    /** Whole tokens left, rounded down; negative in debt. */
    readonly available: number;
    /** Whole tokens that the call wanted. */
    readonly requested: number;
    /** Whole tokens that the call must leave for others. */
    readonly leaves: number;
    /** Whether this limit refused the call. */
    readonly exceeded: boolean;
    /** 0 if the amount fits. */
    readonly retry_after_seconds: number | null;
  }[];
}

/**
 * An outcome of the port that refused a call. Its statuses may be computed only when they are read.
 */
interface WithStatuses {
  readonly statuses: readonly LimitStatus[];
}

/**
 * A decision that refused a call. Its statuses are computed on first use, from the state at the
 * time of the refusal: computing them takes longer than the decision, and many callers never look
 * at them. It holds the limits, balances and amounts of the decision, then the statuses, and
 * nothing else of a store. Its buckets must never change.
 */
export class Refused implements WithStatuses {
  readonly granted = false;
  readonly #nowMs: number;
  #claims: readonly BucketClaim[];
  #statuses: readonly LimitStatus[] | undefined;

  constructor(claims: readonly BucketClaim[], nowMs: number) {
    this.#claims = claims;
    this.#nowMs = nowMs;
  }

  /** Every limit of the decision: for each resource the entity's limits, then its parent's. */
  get statuses(): readonly LimitStatus[] {
    if (this.#statuses === undefined) {
      this.#statuses = computeStatuses(this.#claims, this.#nowMs);
      this.#claims = [];
    }
    return this.#statuses;
  }
}

/**
 * A call did not fit, and nothing was charged. Says which limits refused, and when the call would
 * fit if nothing else is taken meanwhile.
 */
export class RateLimitExceeded extends RateLimitError {
  // Private fields, because Node prints every other one: sixty lines for an uncaught refusal.
  readonly #refused: WithStatuses;
  #primary: LimitStatus | undefined;

  /**
   * A refusal that is a value has no stack trace, which would cost more than the decision, and its
   * message is made when it is read. A thrown one has a stack trace, which points to the caller's
   * line if the caller awaits the call. It has its message from the start, because copying an error
   * to another thread skips inherited properties.
   */
  constructor(
    refused: WithStatuses | readonly LimitStatus[],
    use: "as a value" | "to be thrown" = "as a value",
  ) {
    const source = "statuses" in refused ? refused : { statuses: refused };
    // A decision refuses by at least one limit. Statuses from elsewhere are checked.
    const isMade = use === "to be thrown" || !(source instanceof Refused);
    const primary = isMade ? longestWait(source.statuses) : undefined;
    const message = primary && formatMessage(primary);
    const { stackTraceLimit } = Error;
    if (use === "as a value") Error.stackTraceLimit = 0;
    super("ERR_LIMITER_RATE_LIMIT_EXCEEDED", message);
    Error.stackTraceLimit = stackTraceLimit;
    this.#refused = source;
    this.#primary = primary;
  }

  /** Which limit refuses for longest, and when to retry. */
  override get message(): string {
    return formatMessage(this.primaryViolation);
  }

  /** Replaces the message, as on every other error. */
  override set message(message: string) {
    Object.defineProperty(this, "message", { value: message, writable: true, configurable: true });
  }

  /** Every limit of the decision: for each resource the entity's limits, then its parent's. */
  get statuses(): readonly LimitStatus[] {
    return this.#refused.statuses;
  }

  /** The limits that refused, in the order of `statuses`. There is at least one. */
  get violations(): readonly LimitStatus[] {
    return this.statuses.filter((status) => status.exceeded);
  }

  /** The limits that would have let the call through. */
  get passed(): readonly LimitStatus[] {
    return this.statuses.filter((status) => !status.exceeded);
  }

  /** The violation with the longest wait. */
  get primaryViolation(): LimitStatus {
    return (this.#primary ??= longestWait(this.statuses));
  }

  /** `Infinity` if the call can never fit. */
  get retryAfterSeconds(): number {
    return this.primaryViolation.retryAfterSeconds;
  }

  /** Whole seconds, rounded up, for a `Retry-After` header; undefined if the call can never fit. */
  get retryAfterHeader(): string | undefined {
    const { retryAfterSeconds } = this.primaryViolation;
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
        kind: status.kind,
        capacity: status.limit.capacity,
        ...(isRate(status.limit)
          ? {
              refill_amount: status.limit.refillAmount,
              refill_period_seconds: status.limit.refillPeriodSeconds,
            }
          : { resets_at_ms: status.resetsAt?.getTime() ?? null }),
        available: status.available,
        requested: status.requested,
        leaves: status.leaves,
        exceeded: status.exceeded,
        retry_after_seconds: finiteOrNull(status.retryAfterSeconds),
      })),
    };
  }
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
function formatMessage({
  entityId,
  resource,
  limitName,
  limit,
  available,
  requested,
  leaves,
  retryAfterSeconds,
  resetsAt,
}: LimitStatus): string {
  const kept = leaves === 0 ? "" : `, ${leaves} to be left for others`;
  const what = `${limitName} of ${entityId} on ${resource}: ${available} of ${limit.capacity} left, ${requested} requested${kept}.`;
  const end = resetsAt === undefined ? "" : ` The window ends at ${resetsAt.toISOString()}.`;
  return Number.isFinite(retryAfterSeconds)
    ? `${what} Retry in ${Math.ceil(Math.round(retryAfterSeconds * 1000) / 100) / 10} s.${end}`
    : `${what} This can never fit: request${kept && " or leave"} less, or raise the limit.`;
}

function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
