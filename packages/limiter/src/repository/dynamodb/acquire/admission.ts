import type { MaybePromise } from "../../port.ts";
import { overloaded } from "./bounds.ts";

/** The most acquires in progress: each takes a kilobyte, and what its caller holds. */
const MAX_UNDER_WAY = 20_000;

/**
 * Bounds what one process keeps in its queues; more than this is a leak, not load. Only acquires
 * and charges are rejected: everything else that is written ends a lease that was granted, so there
 * is never more of it than there are leases.
 */
export class Admission {
  readonly #most: number;
  #underWay = 0;

  constructor(most = MAX_UNDER_WAY) {
    this.#most = most;
  }

  /** Throws when too many acquires and charges are in progress. */
  check(): void {
    if (this.#underWay >= this.#most) throw overloaded(this.#underWay);
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
