import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { MaybePromise } from "../port.ts";

/**
 * Acquires that one process keeps under way: at about a kilobyte each, and with what their callers
 * hold, beyond is a leak, not a load.
 */
const MAX_UNDER_WAY = 20_000;

/**
 * Bounds what one process keeps in its queues. Only acquires are turned away: whatever else is
 * written ends a lease that was granted, so there is never more of it than there are leases.
 */
export class Admission {
  readonly #most: number;
  #underWay = 0;

  constructor(most = MAX_UNDER_WAY) {
    this.#most = most;
  }

  /**
   * Does the work of one acquire, unless too many are under way. One that is answered at once never
   * is.
   */
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

function overloaded(underWay: number): RateLimiterUnavailable {
  return new RateLimiterUnavailable(
    `This process is overloaded: ${underWay} acquires wait for DynamoDB already. Try again later, or call less at once.`,
  );
}
