import { BoundedMap } from "../../core/bounded-map.ts";
import { addAmounts, type Amounts } from "../../core/amounts.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { Pause } from "./mirror-charges.ts";
import { strictest, type UpstreamLimits } from "./upstream-limits.ts";

/** What 429s said, and what their calls had reserved and have given back. */
interface Refused {
  readonly seen: UpstreamLimits;
  readonly givenBack: Amounts;
}

/** Comparisons of one account on one resource, which are made one at a time. */
export class AccountQueue {
  /** The last pause of each limit: at most as many as a mirror has names. */
  readonly #pauses = new Map<string, { readonly untilMs: number; readonly pauseMs: number }>();
  /** The 429s that wait for their turn, and what resolves when they were compared. */
  #crowd: { refused: Refused; readonly compared: Promise<void> } | undefined;
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

  /** The same for a 429. Those that wait for their turn are compared as one. */
  enterRefused(
    nowMs: number,
    refused: Refused,
    compare: (all: Refused) => Promise<void>,
  ): Promise<void> {
    if (this.#crowd !== undefined) {
      this.#crowd.refused = mergeRefused(this.#crowd.refused, refused);
      return this.#crowd.compared;
    }
    const compared = this.enter(nowMs, () => {
      const all = this.#crowd!.refused;
      this.#crowd = undefined;
      return compare(all);
    });
    this.#crowd = { refused, compared };
    return compared;
  }

  /** Remembers a pause that has begun. */
  startPause({ begins, pauseMs }: Pause, nowMs: number): void {
    for (const name of begins) this.#pauses.set(name, { untilMs: nowMs + pauseMs, pauseMs });
  }

  /** How long a limit still pauses, if its pause was not shorter than this when it began; or 0. */
  getRemainingPauseMs(name: string, pauseMs: number, nowMs: number): number {
    const pause = this.#pauses.get(name);
    if (pause === undefined || pauseMs > pause.pauseMs) return 0;
    return Math.max(pause.untilMs - nowMs, 0);
  }

  /** Whether a call is in it, or was less than this ago. */
  wasEnteredWithin(ms: number, nowMs: number): boolean {
    const elapsedMs = nowMs - this.#lookedAtMs;
    return this.#waiting > 0 || (elapsedMs >= 0 && elapsedMs < ms);
  }
}

function mergeRefused(one: Refused, other: Refused): Refused {
  return {
    seen: strictest(one.seen, other.seen),
    givenBack: addAmounts(one.givenBack, other.givenBack),
  };
}

/**
 * Most lanes of one limiter. Models may have any name; the one that was not seen for longest is
 * forgotten.
 */
const MAX_LANES = 1000;

/** The lanes of each limiter, which all its clients share: there may be one for each request. */
const LANES_MEMO = new WeakMap<RateLimiter, BoundedMap<string, AccountQueue>>();

/** The lane of an account on a resource. */
export function findLane(limiter: RateLimiter, entityId: string, resource: string): AccountQueue {
  const lanes = LANES_MEMO.get(limiter) ?? new BoundedMap<string, AccountQueue>(MAX_LANES);
  LANES_MEMO.set(limiter, lanes);
  const key = `${entityId}#${resource}`;
  const queue = lanes.get(key) ?? new AccountQueue();
  lanes.set(key, queue);
  return queue;
}
