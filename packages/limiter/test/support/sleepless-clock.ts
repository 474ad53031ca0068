import { ManualClock } from "zae-limiter/testing";

/** A clock whose sleepers wake at once: pauses take no time. */
export class SleeplessClock extends ManualClock {
  override async sleep(): Promise<void> {}
}
