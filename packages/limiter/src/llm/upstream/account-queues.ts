import { BoundedMap } from "../../core/bounded-map.ts";
import { addAmounts, type Amounts } from "../../core/amounts.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import type { Pause } from "./mirror-charges.ts";
import { mergeStrictest, type UpstreamLimits } from "./upstream-limits.ts";

/** The limits in 429s, and what their calls had reserved and gave back. */
interface Refused {
  readonly seen: UpstreamLimits;
  readonly givenBack: Amounts;
}

/** Runs the comparisons of one account on one resource one at a time. */
export class AccountQueue {
  /** The last pause of each limit. A mirror has four names at most. */
  readonly #pauses = new Map<string, { readonly untilMs: number; readonly pauseMs: number }>();
  /** The 429s that wait for their turn, and a promise that resolves when they were compared. */
  #crowd: { refused: Refused; readonly compared: Promise<void> } | undefined;
  #lookedAtMs = -Infinity;
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Runs the work after all that was entered before. The work must not reject. */
  async enter(nowMs: number, work: () => Promise<void>): Promise<void> {
    this.#lookedAtMs = nowMs;
    this.#waiting += 1;
    this.#last = this.#last.then(work);
    await this.#last;
    this.#waiting -= 1;
  }

  /** Does the same for a 429. Those that wait for their turn are compared as one. */
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

  /** Remembers the start of a pause. */
  startPause({ begins, pauseMs }: Pause, nowMs: number): void {
    for (const name of begins) this.#pauses.set(name, { untilMs: nowMs + pauseMs, pauseMs });
  }

  /** Returns how long a limit still pauses; 0 if its pause was shorter than this one. */
  getRemainingPauseMs(name: string, pauseMs: number, nowMs: number): number {
    const pause = this.#pauses.get(name);
    if (pause === undefined || pauseMs > pause.pauseMs) return 0;
    return Math.max(pause.untilMs - nowMs, 0);
  }

  /** Whether a comparison is running, or began less than this long ago. */
  wasEnteredWithin(ms: number, nowMs: number): boolean {
    const elapsedMs = nowMs - this.#lookedAtMs;
    return this.#waiting > 0 || (elapsedMs >= 0 && elapsedMs < ms);
  }
}

function mergeRefused(one: Refused, other: Refused): Refused {
  return {
    seen: mergeStrictest(one.seen, other.seen),
    givenBack: addAmounts(one.givenBack, other.givenBack),
  };
}

/**
 * The most queues of one limiter, as models may have any name. The least recently used one is
 * forgotten.
 */
const MAX_QUEUES = 1000;

/**
 * The queues of each limiter. All its clients share them: there may be a client for each request.
 */
const QUEUES_MEMO = new WeakMap<RateLimiter, BoundedMap<string, AccountQueue>>();

/** Finds or makes the queue of an account on a resource. */
export function findQueue(limiter: RateLimiter, entityId: string, resource: string): AccountQueue {
  const queues = QUEUES_MEMO.get(limiter) ?? new BoundedMap<string, AccountQueue>(MAX_QUEUES);
  QUEUES_MEMO.set(limiter, queues);
  const key = `${entityId}#${resource}`;
  const queue = queues.get(key) ?? new AccountQueue();
  queues.set(key, queue);
  return queue;
}
