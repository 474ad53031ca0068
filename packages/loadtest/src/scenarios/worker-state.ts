import { threadId } from "node:worker_threads";
import { seededRandom } from "zae-limiter/testing";
import type { UserContext } from "../engine/artillery.ts";
import type { EntityPicker } from "../load/entities.ts";

/** The seed of this worker: each worker makes choices of its own, the same in every run. */
const WORKER_SEED = threadId + 1;

/** The random numbers of one scenario in this worker. */
export function startRandom(): (from: number, to: number) => number {
  const random = seededRandom(WORKER_SEED);
  return (from, to) => from + Math.floor(random() * (to - from + 1));
}

/** A picker among as many entities as the script has users, made at the first call. */
export function pickAmongUsers(
  make: (count: number, seed: number) => EntityPicker,
): (context: UserContext) => string {
  let pick: EntityPicker | undefined;
  return ({ vars }) => (pick ??= make(Number(vars["users"] ?? 1), WORKER_SEED))();
}
