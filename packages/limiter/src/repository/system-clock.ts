/** Time as the library asks for it; tests pass a `ManualClock`. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms`; rejects with `signal.reason` when the signal aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The time in whole milliseconds: buckets count nothing finer. */
export function wholeMs(clock: Pick<Clock, "now">): number {
  return Math.floor(clock.now());
}

/** A source of random numbers in [0, 1). */
export type Random = () => number;

/** The machine's clock. This file alone touches `Date.now`, `setTimeout` and `Math.random`. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep,
};

/**
 * Milliseconds since some moment, never backwards: for deadlines of this process, which a corrected
 * clock must not move.
 */
export function monotonicMs(): number {
  return performance.now();
}

/** The machine's chance. */
export const systemRandom: Random = () => Math.random();

/** A signal that aborts after a time, in real time whatever clock decides. */
export interface Timeout {
  readonly signal: AbortSignal;
  /** Lets the process stay alive for it, which it does from its start. */
  hold(): void;
  /** Lets the process end without it. */
  release(): void;
}

/** Starts a time-out. */
export function startTimeout(ms: number): Timeout {
  const controller = new AbortController();
  const timer = setTimeout(
    () => controller.abort(new DOMException(`No answer within ${ms} ms`, "TimeoutError")),
    ms,
  );
  return { signal: controller.signal, hold: () => timer.ref(), release: () => timer.unref() };
}

/** Timers beyond 2^31 - 1 ms fire at once, so longer sleeps are cut into pieces. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  for (let rest = ms; rest > 0; rest -= LONGEST_TIMER_MS)
    await sleepOnce(Math.min(rest, LONGEST_TIMER_MS), signal);
}

function sleepOnce(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
