import type { Amounts } from "../core/amounts.ts";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { MeteredRecord } from "../llm/tokens/metered-record.ts";

/**
 * One acquire, on every event of `CHANNELS.acquire`. It is one object from `start` to `asyncEnd`,
 * and what is not known at the start is filled in. Subscribers must not change it.
 */
export interface AcquireMessage {
  /** The name of the repository's namespace. */
  readonly namespace: string;
  /** Who makes the call. Keep it out of metrics: there are too many of them. */
  readonly entityId: string;
  /** The call's own resource. */
  readonly resource: string;
  /** What the call takes from its own resource. */
  readonly consume: Amounts;
  /** What it takes from further resources; empty for most calls. */
  readonly also: Readonly<Record<string, Amounts>>;
  /** How long the call may wait; 0 if it does not. */
  readonly waitUpToMs: number;
  /** Only for `lease.consume`: the call whose lease takes more. It opens no lease. */
  readonly extending: AcquireMessage | undefined;
  /**
   * What became of the call; absent if it threw. A degraded call was let through without the store,
   * and has taken nothing.
   */
  outcome?: "granted" | "degraded" | "refused";
  /** Which limits refused, and when to retry; only if the outcome is `refused`. */
  refusal?: RateLimitExceeded;
  /** How long the call waited for tokens, by the repository's clock; 0 if it may not wait. */
  waitedMs?: number;
  /** What the call threw. A refusal is not an error here. */
  error?: unknown;
}

/** What a lease took from one resource, and what it cost in the end. */
export interface EndedAmounts {
  /** The amounts taken by the acquire and `lease.consume`. A degraded lease took nothing. */
  readonly taken: Amounts;
  /**
   * What it costs, as the store has it: all zeros after a rollback, and the amounts taken if the
   * end could not be written.
   */
  readonly settled: Amounts;
}

/** The end of a lease, on `CHANNELS.end`. Every lease has exactly one. */
export interface EndMessage extends EndedAmounts {
  /** The name of the repository's namespace. */
  readonly namespace: string;
  /** Who made the call. */
  readonly entityId: string;
  /** The call's own resource, which `taken` and `settled` belong to. */
  readonly resource: string;
  /** Whether the lease was committed or rolled back. */
  readonly how: "commit" | "rollback";
  /** The same for further resources; empty for most calls. */
  readonly also: Readonly<Record<string, EndedAmounts>>;
  /** How long the lease was open, by the repository's clock. */
  readonly heldMs: number;
  /** Why the end could not be written, even after retries; undefined if it was. */
  readonly error: unknown;
  /**
   * The call that took the lease. Its outcome is absent if it was aborted after the take: then it
   * threw, no caller got the lease, and the limiter gave everything back.
   */
  readonly acquire: AcquireMessage;
}

/** A charge that was recorded, on `CHANNELS.charge`. */
export interface ChargeMessage {
  /** The name of the repository's namespace. */
  readonly namespace: string;
  /** Who consumed. */
  readonly entityId: string;
  /** What was used. */
  readonly resource: string;
  /** Whole tokens by limit. */
  readonly amounts: Amounts;
  /** What was used of further resources; empty for most charges. */
  readonly also: Readonly<Record<string, Amounts>>;
}

/** A settled model call, on `CHANNELS.metered`. Every granted call has one. */
export type MeteredMessage = MeteredRecord;

/**
 * A streamed model response begins or has ended, on `CHANNELS.stream`. It is one object for both,
 * and only `state` changes, so that a subscriber that started listening in between can ignore the
 * end.
 */
export interface StreamMessage {
  /** What is used. */
  readonly resource: string;
  /** Whether the stream begins or has ended. */
  readonly state: "open" | "closed";
}
