import { setTimeout as sleep } from "node:timers/promises";

const FACTOR = 200;

/**
 * A clock that runs fast, so that buckets which have left the shared requests for a while come back
 * within a test. Pauses take as long as they say by the clocks of others.
 */
export const FAST_CLOCK = {
  now: (): number => Date.now() + FACTOR * Math.floor(performance.now()),
  sleep: async (ms: number): Promise<void> => sleep(ms),
};
