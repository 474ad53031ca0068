import { RateLimiterUnavailable } from "../../../core/errors.ts";
import type { MaybePromise } from "../../port.ts";
import type { BucketKey } from "../items/bucket-key.ts";

/** The most rounds of takes from one bucket: each follows a take by another process. */
export const MAX_TAKE_ROUNDS = 12;

/** Counts the rounds of takes that one acquire makes. */
export class TakeRounds {
  #left: number;

  constructor(buckets: number) {
    this.#left = buckets * MAX_TAKE_ROUNDS;
  }

  /** Throws when there were too many. */
  begin(key: BucketKey): void {
    if (this.#left === 0) throw contended(key);
    this.#left -= 1;
  }
}

/** The most acquires in progress: each takes a kilobyte, and what its caller holds. */
const MAX_UNDER_WAY = 20_000;

/**
 * Bounds what one process keeps in its queues; more than this is a leak, not load. Only acquires
 * are rejected: everything else that is written ends a lease that was granted, so there is never
 * more of it than there are leases.
 */
export class Admission {
  readonly #most: number;
  #underWay = 0;

  constructor(most = MAX_UNDER_WAY) {
    this.#most = most;
  }

  /** Runs one acquire, unless too many are in progress. One that returns at once is not counted. */
  admit<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    if (this.#underWay >= this.#most) throw overloaded(this.#underWay);
    const outcome = work();
    return outcome instanceof Promise ? this.#counted(outcome) : outcome;
  }

  async #counted<T>(outcome: Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await outcome;
    } finally {
      this.#underWay -= 1;
    }
  }
}

/** The error of a call that lost every race with other processes. */
export function contended({ entityId, resource }: BucketKey): RateLimiterUnavailable {
  return new RateLimiterUnavailable("Too much contention on this bucket. Try again.", {
    entityId,
    resource,
  });
}

function overloaded(underWay: number): RateLimiterUnavailable {
  return new RateLimiterUnavailable(
    `This process is overloaded: ${underWay} acquires are waiting for DynamoDB. ` +
      "Try again later, or make fewer calls at once.",
  );
}
