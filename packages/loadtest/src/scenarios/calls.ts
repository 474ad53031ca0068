import { Limit } from "zae-limiter";
import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { uniform } from "../load/entities.ts";
import type { LoadParameters, Scenario } from "./scenario.ts";
import { pickAmongUsers } from "./worker-state.ts";

const PARENT = "project";
const pick = pickAmongUsers((count, seed) => uniform({ count, seed }));

/** One call of one of the users, which takes from the parent too if they were made children. */
export async function callApi(session: RateLimiterSession, context: UserContext): Promise<void> {
  await session.acquire({ entityId: pick(context), resource: "api", consume: { rpm: 1 } });
}

/** Makes all users children of one parent, which may have a limit of its own. */
export async function createFamily(
  session: RateLimiterSession,
  { vars }: UserContext,
): Promise<void> {
  await session.manage("ensureEntity", PARENT);
  const rpm = Number(vars["parentRpm"] ?? 0);
  if (rpm > 0) await session.manage("setLimits", PARENT, [Limit.perMinute("rpm", rpm)]);
  for (let child = 0; child < Number(vars["users"]); child += 1)
    await session.manage("ensureEntity", `user-${child}`, { parentId: PARENT, cascade: true });
}

const file = new URL(import.meta.url);
const call = { function: "callApi" };
const family = { function: "createFamily" };

/** The smallest scenario. */
export const simple: Scenario = {
  description: "One resource, one limit, one call a user.",
  file,
  defaults: { durationSeconds: 30, rate: 50, users: 20 },
  setup: [{ setSystemDefaults: ["rpm:30/min"] }],
  users: [{ name: "caller", flow: [call] }],
};

/** `simple` with a parent that all users take from. */
export const simpleCascade: Scenario = {
  ...simple,
  description: "As simple, where each call also takes from a common parent.",
  setup: [...simple.setup, family],
  variables: { parentRpm: 400 },
};

/**
 * The ceiling: the users start within a second, and each makes one call after the other. Artillery
 * runs an `arrivalCount` in the first worker only, so it is a rate.
 */
export const maxRps: Scenario = {
  description: "A closed loop without pauses and without refusals, for the highest throughput.",
  file,
  defaults: { durationSeconds: 10, rate: 1, users: 64 },
  setup: [{ setSystemDefaults: ["rpm:600000000/min"] }],
  users: [{ name: "loop", flow: [{ loop: [call], forSeconds: "{{ durationSeconds }}" }] }],
  buildPhases: ({ users }: LoadParameters) => [{ duration: 1, arrivalRate: users }],
};

/** `max-rps` with a parent that all users take from. */
export const maxRpsCascade: Scenario = {
  ...maxRps,
  description: "As max-rps, where each call also takes from a common parent.",
  setup: [...maxRps.setup, family],
};

/** Many children of one parent, whose limit is what holds them. */
export const hotParent: Scenario = {
  description: "Many entities cascade into one parent, which refuses before they do.",
  file,
  defaults: { durationSeconds: 30, rate: 100, users: 100 },
  setup: [{ setSystemDefaults: ["rpm:120/min"] }, family],
  variables: { parentRpm: 1200 },
  users: [{ name: "child", flow: [call] }],
};
