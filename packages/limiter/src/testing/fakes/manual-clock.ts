import type { Clock } from "../../repository/system-clock.ts";

interface Sleeper {
  readonly atMs: number;
  readonly order: number;
  wake(): void;
}

/** A Sunday at noon, far from the beginning and end of every usage window. */
const START_MS = Date.UTC(2026, 0, 4, 12);

/** Turns of the event loop after each wake-up, so that what the sleeper started can run. */
const TURNS_AFTER_WAKE = 3;

/**
 * A clock that moves only when `advance` or `set` is called.
 *
 * @example
 * const clock = new ManualClock();
 * const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
 * await clock.advance(60_000);
 */
export class ManualClock implements Clock {
  #nowMs: number;
  #order = 0;
  /**
   * A set, so that a sleeper is removed in constant time, even if thousands are aborted together.
   */
  readonly #sleepers = new Set<Sleeper>();

  constructor(startMs = START_MS) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = (): void => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      const wake = (): void => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const sleeper: Sleeper = {
        atMs: this.#nowMs + Math.max(0, ms),
        order: (this.#order += 1),
        wake,
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#sleepers.add(sleeper);
    });
  }

  /**
   * Moves time forward, wakes sleepers in order, and lets what they started run.
   * @example await clock.advance(60_000); // a minute later, everything has refilled
   */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await settled();
    for (;;) {
      const next = this.#earliest();
      if (next === undefined || next.atMs > untilMs) break;
      this.#sleepers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
      await settled();
    }
    this.#nowMs = untilMs;
    await settled();
  }

  /**
   * Sets the time, forwards or backwards. Sleepers are woken by the next `advance`.
   * @example clock.set(clock.now() - 5_000); // five seconds back
   */
  set(ms: number): void {
    this.#nowMs = ms;
  }

  #earliest(): Sleeper | undefined {
    return [...this.#sleepers].sort(
      (left, right) => left.atMs - right.atMs || left.order - right.order,
    )[0];
  }
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS_AFTER_WAKE; turn += 1)
    await new Promise((resolve) => setImmediate(resolve));
}
