import { setImmediate } from "node:timers/promises";

/** How long loops may run before timers and other users get their turn. */
const LONGEST_TURN_MS = 2;

/**
 * Makes the loops of a worker give way. A store in memory answers without leaving the microtasks,
 * so a loop would starve all timers. All loops share one turn: with a turn for each, 64 of them
 * would hold the timers up 64 times as long.
 */
export class Turns {
  #startedMs = performance.now();
  #next: Promise<void> | undefined;

  /** Waits for the next turn of the event loop if this one has lasted long enough. */
  async giveWay(): Promise<void> {
    if (performance.now() - this.#startedMs < LONGEST_TURN_MS) return;
    this.#next ??= this.#begin();
    await this.#next;
  }

  async #begin(): Promise<void> {
    await setImmediate();
    this.#next = undefined;
    this.#startedMs = performance.now();
  }
}
