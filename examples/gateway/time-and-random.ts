import type { Clock } from "zae-limiter";

let latestMs = 0;

/**
 * The machine's clock, never backwards within a process. This file alone touches time and chance
 * for the demo.
 */
export function nowMs(): number {
  latestMs = Math.max(latestMs, Date.now());
  return latestMs;
}

/** Resolves after some time. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** A number from `least` up to, not including, `most`. */
export function between(least: number, most: number): number {
  return least + Math.random() * (most - least);
}

/**
 * A fault on purpose: a clock that runs at twice the speed, so that a limiter that trusts it
 * refills twice as fast.
 */
export function doubledClock(): Clock {
  const startMs = Date.now();
  return { now: () => startMs + 2 * (Date.now() - startMs), sleep: (ms) => pause(ms / 2) };
}
