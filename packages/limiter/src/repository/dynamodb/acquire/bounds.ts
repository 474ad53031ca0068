/* The bounds of one acquire and of all that are under way, and the errors when they are met. */
import { RateLimiterUnavailable } from "../../../core/errors.ts";
import type { MaybePromise } from "../../port.ts";
import { MAX_READS } from "../cache/known-buckets.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import { MAX_OVERTAKEN } from "../write/bucket-writer.ts";
import { MAX_TRIES } from "./take-from-shards.ts";

/** The most decisions of one acquire: it is decided again when the images change meanwhile. */
export const MAX_DECISIONS = 8;

/** The most rounds of takes from one bucket: each follows a take by another process. */
export const MAX_TAKE_ROUNDS = 12;

/**
 * The most requests for one attempt at a write: one that it shares and, if that does not suffice,
 * one alone, or a read of the item whose condition failed (shared-requests.ts).
 */
const REQUESTS_OF_A_WRITE = 2;

/**
 * The most requests that one acquire sends for a bucket with this many shards; retries of a request
 * are not counted. Configuration is read once more for each shard that shows other limits.
 */
export function mostRequests(shards: number): number {
  const readAll = MAX_READS;
  const home = readAll + 3 * Math.log2(shards);
  const round = MAX_TRIES * MAX_OVERTAKEN * REQUESTS_OF_A_WRITE + 2 * readAll + 1;
  return 1 + MAX_DECISIONS * readAll + home + MAX_TAKE_ROUNDS * round + shards;
}

/** The error of a call that lost every race with other processes. */
export function buildContentionError({ entityId, resource }: BucketKey): RateLimiterUnavailable {
  return new RateLimiterUnavailable("Too much contention on this bucket. Try again.", {
    entityId,
    resource,
  });
}

/** The most acquires in progress: each takes a kilobyte, besides what its caller holds. */
const MAX_UNDER_WAY = 20_000;

/**
 * Bounds what one process keeps in its queues; more than this is a leak, not load. Only acquires
 * and charges are rejected: everything else that is written ends a lease that was granted, so there
 * is never more of it than there are leases.
 */
export class OverloadGuard {
  readonly #most: number;
  #underWay = 0;

  constructor(most = MAX_UNDER_WAY) {
    this.#most = most;
  }

  /** Throws when too many acquires and charges are in progress. */
  check(): void {
    if (this.#underWay >= this.#most) throw buildOverloadError(this.#underWay);
  }

  /** Counts a call while it is in progress. One that returned at once is not counted. */
  count<T>(outcome: MaybePromise<T>): MaybePromise<T> {
    if (outcome instanceof Promise) {
      this.#underWay += 1;
      outcome.then(this.#end, this.#end);
    }
    return outcome;
  }

  readonly #end = (): void => {
    this.#underWay -= 1;
  };
}

/** The error of a call when too many are in progress. */
function buildOverloadError(underWay: number): RateLimiterUnavailable {
  return new RateLimiterUnavailable(
    `This process is overloaded: ${underWay} calls are waiting for DynamoDB. ` +
      "Try again later, or make fewer calls at once.",
  );
}
