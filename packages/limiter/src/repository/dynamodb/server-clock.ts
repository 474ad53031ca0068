import type { Clock } from "../system-clock.ts";

/**
 * Clocks that differ by less are as good as equal: the header counts whole seconds, and answers
 * take time.
 */
const TOLERATED_MS = 2000;

/** How often the header is looked at. */
const LOOK_EVERY_MS = 1000;

/**
 * The process clock, corrected by the server's where they differ by more than two seconds, so that
 * one machine with a bad clock cannot freeze the buckets that it writes to. Time may step when it
 * is corrected; buckets bear that, and mint nothing.
 */
export class ServerClock implements Clock {
  readonly #inner: Clock;
  #offsetMs = 0;
  #lookAgainAtMs = -Infinity;

  constructor(inner: Clock) {
    this.#inner = inner;
  }

  now(): number {
    return this.#inner.now() + this.#offsetMs;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await this.#inner.sleep(ms, signal);
  }

  /** Takes note of the `Date` header of an answer that has just arrived. */
  learn(date: string | undefined): void {
    const localMs = this.#inner.now();
    const isFreshEnough =
      localMs < this.#lookAgainAtMs && localMs >= this.#lookAgainAtMs - LOOK_EVERY_MS;
    if (date === undefined || isFreshEnough) return;
    const serverMs = Date.parse(date);
    if (Number.isNaN(serverMs)) return;
    this.#lookAgainAtMs = localMs + LOOK_EVERY_MS;
    const differenceMs = serverMs - localMs;
    if (Math.abs(differenceMs) <= TOLERATED_MS) this.#offsetMs = 0;
    // The header jitters by a second: a correction that is about right stays, so that time does not
    // step with every look.
    else if (Math.abs(differenceMs - this.#offsetMs) > TOLERATED_MS) this.#offsetMs = differenceMs;
  }
}
