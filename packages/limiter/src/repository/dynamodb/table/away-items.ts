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

/** A request that is under way. */
export interface TimedRequest {
  readonly sentMs: number;
  /** Whether another one was under way at the same time. */
  isCompared: boolean;
  /** Whether one that was sent later has returned before it. */
  isOvertaken: boolean;
}

/**
 * The items that have left the shared requests for a while, because their statement failed or their
 * request was slow. A request is as slow as the slowest of its statements, and nothing shows which
 * one that was: all of them leave, and those that are quick alone come back at once.
 *
 * A request that is late together with all others is not slow: the process was busy, or the whole
 * table is slow, and then smaller requests would make it worse. Where there are no others, two in a
 * row must be late.
 */
export class AwayItems {
  readonly #clock: Pick<Clock, "now">;
  readonly #away = new Map<string, Absence>();
  /** In the order in which they were sent. */
  readonly #underWay = new Set<TimedRequest>();
  #usualMs: number | undefined;
  /** Whether the last request was late that was compared with no other. */
  #wasLateAlone = false;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  has(item: string): boolean {
    const sinceMs = this.#away.get(item)?.sinceMs;
    if (sinceMs === undefined) return false;
    // The clock may be set back.
    const awayMs = this.#clock.now() - sinceMs;
    if (awayMs >= 0 && awayMs < AWAY_MS) return true;
    this.#away.delete(item);
    return false;
  }

  /** Sends an item away; a suspect comes back as soon as it is quick alone. */
  leave(item: string, { isSuspect = false } = {}): void {
    this.#away.delete(item);
    this.#away.set(item, { sinceMs: this.#clock.now(), isSuspect });
    if (this.#away.size > MAX_AWAY) this.#away.delete(this.#away.keys().next().value!);
  }

  /** Notes that a request is sent. */
  begin(): TimedRequest {
    const isCompared = this.#underWay.size > 0;
    if (isCompared) for (const other of this.#underWay) other.isCompared = true;
    const request = { sentMs: this.#clock.now(), isCompared, isOvertaken: false };
    this.#underWay.add(request);
    return request;
  }

  /** Notes that a request has returned. When it was slow, its items leave. */
  end(request: TimedRequest, items: readonly string[]): void {
    const slowMs = this.#slowMs();
    if (this.#conclude(request)) for (const item of items) this.leave(item, { isSuspect: true });
    // One slow request moves it little. When all have become slower, it follows.
    const countedMs = Math.min(this.#clock.now() - request.sentMs, slowMs);
    this.#usualMs = (this.#usualMs ?? countedMs) * (1 - WEIGHT) + countedMs * WEIGHT;
  }

  /** Notes that the request of an item has returned that is away, and was sent alone. */
  endAlone(request: TimedRequest, item: string): void {
    if (this.#conclude(request)) this.leave(item, { isSuspect: true });
    else if (this.#away.get(item)?.isSuspect === true) this.#away.delete(item);
  }

  /** Takes a request off the list; returns whether it was slow. */
  #conclude(request: TimedRequest): boolean {
    for (const other of this.#underWay) {
      if (other === request) break;
      other.isOvertaken = true;
    }
    this.#underWay.delete(request);
    const isLate = this.#clock.now() - request.sentMs > this.#slowMs();
    if (request.isCompared) return isLate && request.isOvertaken;
    const isLateAgain = isLate && this.#wasLateAlone;
    this.#wasLateAlone = isLate;
    return isLateAgain;
  }

  /** How long a request may take without being late. */
  #slowMs(): number {
    return Math.max(LEAST_SLOW_MS, SLOW_FACTOR * (this.#usualMs ?? 0));
  }
}

interface Absence {
  readonly sinceMs: number;
  readonly isSuspect: boolean;
}
