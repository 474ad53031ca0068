import type { Clock, Random } from "../../system-clock.ts";
import { TableUnavailable, TransactionCancelled } from "./table-errors.ts";

/** How often a request is attempted, and how long it waits between attempts. */
export interface RetryOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Attempts in all, the first included. */
  readonly maxAttempts: number;
  /** Longest pause between two attempts. */
  readonly maxPauseMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onRetry?: () => void;
}

/** The first pause is at most this: a throttled partition recovers within tens of milliseconds. */
const FIRST_PAUSE_MS = 25;

/**
 * Tries what may safely be repeated (a read, or a write that is idempotent by its token or its
 * condition) until it succeeds, fails for good, or has used all attempts. An attempt that used up
 * its time-out is retried at once, so that all of them stay within attempts times time-out.
 */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempts = 1; ; attempts += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (attempts >= options.maxAttempts || !isTransient(error)) throw error;
      options.onRetry?.();
      if (!(error instanceof TableUnavailable && error.timedOut)) await pause(attempts, options);
    }
  }
}

/**
 * Waits before attempt `attempts + 1`: full jitter, so that clients that failed together do not
 * return together.
 */
export async function pause(
  attempts: number,
  { clock, random, maxPauseMs, signal }: Omit<RetryOptions, "maxAttempts">,
): Promise<void> {
  await clock.sleep(pauseMs(attempts, maxPauseMs, random()), signal);
}

/** The pause after a number of failed attempts; `randomFraction` is in [0, 1). */
export function pauseMs(attempts: number, maxPauseMs: number, randomFraction: number): number {
  // 2^16 reaches every maximum; the bound keeps the power finite.
  return (
    Math.floor(
      randomFraction * Math.min(maxPauseMs, FIRST_PAUSE_MS * 2 ** Math.min(attempts - 1, 16)),
    ) + 1
  );
}

/** Whether a retry can help. It can for a transaction that only conflicted with another one. */
export function isTransient(error: unknown): boolean {
  if (error instanceof TransactionCancelled)
    return error.reasons.every(({ code }) => TRANSIENT_REASONS.has(code));
  return error instanceof TableUnavailable;
}

const TRANSIENT_REASONS: ReadonlySet<string> = new Set([
  "None",
  "TransactionConflict",
  "ThrottlingError",
  "ProvisionedThroughputExceeded",
]);
