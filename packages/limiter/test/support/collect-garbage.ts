import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What is collected has been found after fewer turns; what is not collected takes all of them. */
const TURNS = 20;

/** Collects garbage until the test has seen what it waits for, or for a few turns. */
export async function collectGarbage(isSeen: () => boolean): Promise<void> {
  for (let turn = 0; turn < TURNS && !isSeen(); turn += 1) {
    await setImmediate();
    collect();
  }
}
