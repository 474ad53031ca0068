import { addAmounts, NO_AMOUNTS, type Amounts } from "../../core/amounts.ts";
import type { LimitStatus } from "../../core/bucket/decision.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { Pause } from "./mirror-charges.ts";

/** A 429 that was compared: with the account's limits as they were read, if all of it succeeded. */
export interface ComparedRefusal {
  readonly statuses: readonly LimitStatus[] | undefined;
}

/** Comparisons of one account on one resource, which are made one at a time. */
export class AccountLane {
  /** The last pause of each limit: at most as many as a mirror has names. */
  readonly #pauses = new Map<string, { readonly untilMs: number; readonly pauseMs: number }>();
  #lastRefusal: ComparedRefusal | undefined;
  /** What calls gave back whose 429 was not compared yet. */
  #givenBack: Amounts = NO_AMOUNTS;
  #lookedAtMs = -Infinity;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Runs after those that were entered before. The work must not reject. */
  async enter(nowMs: number, work: () => Promise<void>): Promise<void> {
    this.#lookedAtMs = nowMs;
    this.#waiting += 1;
    this.#last = this.#last.then(work);
    await this.#last;
    this.#waiting -= 1;
  }

  /** The last 429 that was compared; each is an object of its own. */
  get lastRefusal(): ComparedRefusal | undefined {
    return this.#lastRefusal;
  }

  /** Remembers a 429 that was compared. */
  refused(refusal: ComparedRefusal): void {
    this.#lastRefusal = refusal;
    // Those that have waited for a comparison that failed are not compared any more.
    if (refusal.statuses === undefined) this.#givenBack = NO_AMOUNTS;
  }

  /** Whether calls gave back whose 429 was not compared yet. */
  get hasGivenBack(): boolean {
    return Object.values(this.#givenBack).some((amount) => amount > 0);
  }

  /** Adds what a call gave back, for the next comparison of a 429. */
  addGivenBack(amounts: Amounts): void {
    this.#givenBack = addAmounts(this.#givenBack, amounts);
  }

  /** What was given back since the last comparison of a 429. */
  takeGivenBack(): Amounts {
    const givenBack = this.#givenBack;
    this.#givenBack = NO_AMOUNTS;
    return givenBack;
  }

  /** Remembers a pause that has begun. */
  paused({ begins, pauseMs }: Pause, nowMs: number): void {
    for (const name of begins) this.#pauses.set(name, { untilMs: nowMs + pauseMs, pauseMs });
  }

  /** How long a limit still pauses, if its pause was not shorter than this when it began; or 0. */
  remainingPauseMs(name: string, pauseMs: number, nowMs: number): number {
    const pause = this.#pauses.get(name);
    if (pause === undefined || pauseMs > pause.pauseMs) return 0;
    return Math.max(pause.untilMs - nowMs, 0);
  }

  /** Whether somebody is in it, or was less than this ago. */
  wasEnteredWithin(ms: number, nowMs: number): boolean {
    const elapsedMs = nowMs - this.#lookedAtMs;
    return this.#waiting > 0 || (elapsedMs >= 0 && elapsedMs < ms);
  }
}

/**
 * Most lanes of one limiter. Models may have any name; the one that was not seen for longest is
 * forgotten.
 */
const MAX_LANES = 1000;

/** The lanes of each limiter, which all its clients share: there may be one for each request. */
const LANES_MEMO = new WeakMap<RateLimiter, Map<string, AccountLane>>();

/** The lane of an account on a resource. */
export function laneOf(limiter: RateLimiter, entityId: string, resource: string): AccountLane {
  const lanes = LANES_MEMO.get(limiter) ?? new Map<string, AccountLane>();
  LANES_MEMO.set(limiter, lanes);
  const key = `${entityId}#${resource}`;
  const lane = lanes.get(key) ?? new AccountLane();
  lanes.delete(key);
  lanes.set(key, lane);
  if (lanes.size > MAX_LANES) lanes.delete(lanes.keys().next().value!);
  return lane;
}
