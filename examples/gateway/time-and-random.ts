import type { Clock } from "zae-limiter";

let latestMs = 0;

/**
 * The system's clock, which never goes backwards within a process. This is the only file of the
 * demo that reads the clock or a random number.
 */
export function nowMs(): number {
  latestMs = Math.max(latestMs, Date.now());
  return latestMs;
}

/** Resolves after the given time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A random number from `least` up to, but not including, `most`. */
export function drawBetween(least: number, most: number): number {
  return least + Math.random() * (most - least);
}

/** A deliberate fault: a clock at twice the speed, which makes a limiter refill twice as fast. */
export function makeDoubledClock(): Clock {
  const startMs = Date.now();
  return { now: () => startMs + 2 * (Date.now() - startMs), sleep: (ms) => pause(ms / 2) };
}
