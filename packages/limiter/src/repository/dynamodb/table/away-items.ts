import type { Clock } from "../../system-clock.ts";

/** A request is slow when it takes longer than this, and this many times as long as most. */
const LEAST_SLOW_MS = 50;
const SLOW_FACTOR = 4;

/** How much one request changes what counts as usual. */
const WEIGHT = 1 / 8;

/** How long an item stays away. */
const AWAY_MS = 2000;

/** The most items that stay away; the one that left first comes back when another leaves. */
const MAX_AWAY = 1000;

/**
 * The items that have left the shared requests for a while, because their statement failed or their
 * request was slow. A request is as slow as the slowest of its statements, and nothing shows which
 * one that was: all of them leave, and those that are quick alone come back at once.
 */
export class AwayItems {
  readonly #clock: Pick<Clock, "now">;
  readonly #away = new Map<string, Absence>();
  #usualMs: number | undefined;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** How long a request may take without being slow. */
  get slowMs(): number {
    return Math.max(LEAST_SLOW_MS, SLOW_FACTOR * (this.#usualMs ?? 0));
  }

  has(item: string): boolean {
    const absence = this.#away.get(item);
    if (absence === undefined) return false;
    if (this.#clock.now() < absence.untilMs) return true;
    this.#away.delete(item);
    return false;
  }

  /** Sends an item away; a suspect comes back as soon as it is quick alone. */
  leave(item: string, { isSuspect = false } = {}): void {
    this.#away.delete(item);
    this.#away.set(item, { untilMs: this.#clock.now() + AWAY_MS, isSuspect });
    if (this.#away.size > MAX_AWAY) this.#away.delete(this.#away.keys().next().value!);
  }

  /** Notes how long a request took, and the items that were in it. */
  noteRequest(items: readonly string[], tookMs: number): void {
    const isSlow = tookMs > this.slowMs;
    // One slow request moves it little. When all have become slower, it follows.
    const countedMs = Math.min(tookMs, this.slowMs);
    this.#usualMs = (this.#usualMs ?? countedMs) * (1 - WEIGHT) + countedMs * WEIGHT;
    if (isSlow) for (const item of items) this.leave(item, { isSuspect: true });
  }

  /** Notes how long the request of an item took that is away. */
  noteAlone(item: string, tookMs: number): void {
    if (tookMs > this.slowMs) this.leave(item, { isSuspect: true });
    else if (this.#away.get(item)?.isSuspect === true) this.#away.delete(item);
  }
}

interface Absence {
  readonly untilMs: number;
  readonly isSuspect: boolean;
}
