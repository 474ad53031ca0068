import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { uniform } from "../load/entities.ts";
import type { Scenario } from "./scenario.ts";
import { pickAmongUsers } from "./worker-state.ts";

const pick = pickAmongUsers((count, seed) => uniform({ count, seed }));

/** One call on one resource with one limit. */
export async function callApi(session: RateLimiterSession, context: UserContext): Promise<void> {
  await session.acquire({ entityId: pick(context), resource: "api", consume: { rpm: 1 } });
}

/** The smallest scenario. */
export const simple: Scenario = {
  description: "One resource, one limit, one call a user.",
  file: new URL(import.meta.url),
  defaults: { durationSeconds: 30, rate: 50, users: 20 },
  setup: [{ setSystemDefaults: ["rpm:30/min"] }],
  users: [{ name: "caller", flow: [{ function: "callApi" }] }],
};
