import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { uniform } from "../load/entities.ts";
import type { LoadParameters, Scenario } from "./scenario.ts";
import { pickAmongUsers } from "./worker-state.ts";

const pick = pickAmongUsers((count, seed) => uniform({ count, seed }));

/** One of the calls that follow each other without a pause. */
export async function takeOne(session: RateLimiterSession, context: UserContext): Promise<void> {
  await session.acquire({ entityId: pick(context), resource: "api", consume: { rpm: 1 } });
}

/**
 * The ceiling: the users start within a second, and each makes one call after the other. Artillery
 * runs an `arrivalCount` in the first worker only, so it is a rate.
 */
export const maxRps: Scenario = {
  description: "A closed loop without pauses and without refusals, for the highest throughput.",
  file: new URL(import.meta.url),
  defaults: { durationSeconds: 10, rate: 1, users: 64 },
  setup: [{ setSystemDefaults: ["rpm:600000000/min"] }],
  users: [
    {
      name: "loop",
      flow: [{ loop: [{ function: "takeOne" }], forSeconds: "{{ durationSeconds }}" }],
    },
  ],
  buildPhases: ({ users }: LoadParameters) => [{ duration: 1, arrivalRate: users }],
};
