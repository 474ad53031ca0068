import { ManualClock } from "zae-limiter/testing";

/** A clock that says how many sleep. */
export class WatchedClock extends ManualClock {
  sleeping = 0;

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    this.sleeping += 1;
    try {
      await super.sleep(ms, signal);
    } finally {
      this.sleeping -= 1;
    }
  }
}
