import { Limit } from "zae-limiter";
import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { uniform } from "../load/entities.ts";
import { maxRps } from "./max-rps.ts";
import type { Scenario } from "./scenario.ts";
import { simple } from "./simple.ts";
import { pickAmongUsers } from "./worker-state.ts";

const PARENT = "project";
const pick = pickAmongUsers((count, seed) => uniform({ count, seed, prefix: "child-" }));

/** A call of a child, which also takes from its parent. */
export async function callAsChild(
  session: RateLimiterSession,
  context: UserContext,
): Promise<void> {
  await session.acquire({ entityId: pick(context), resource: "api", consume: { rpm: 1 } });
}

/** Makes the parent and as many children as there are users. */
export async function createFamily(
  session: RateLimiterSession,
  { vars }: UserContext,
): Promise<void> {
  await session.manage("ensureEntity", PARENT);
  const rpm = Number(vars["parentRpm"] ?? 0);
  if (rpm > 0) await session.manage("setLimits", PARENT, [Limit.perMinute("rpm", rpm)]);
  for (let child = 0; child < Number(vars["users"]); child += 1)
    await session.manage("ensureEntity", `child-${child}`, { parentId: PARENT, cascade: true });
}

const file = new URL(import.meta.url);
const family = { function: "createFamily" };

/** `simple` with a parent that all users take from. */
export const simpleCascade: Scenario = {
  ...simple,
  description: "As simple, where each call also takes from a common parent.",
  file,
  setup: [...simple.setup, family],
  variables: { parentRpm: 400 },
  users: [{ name: "child", flow: [{ function: "callAsChild" }] }],
};

/** `max-rps` with a parent that all users take from. */
export const maxRpsCascade: Scenario = {
  ...maxRps,
  description: "As max-rps, where each call also takes from a common parent.",
  file,
  setup: [...maxRps.setup, family],
  users: [
    {
      name: "child",
      flow: [{ loop: [{ function: "callAsChild" }], forSeconds: "{{ durationSeconds }}" }],
    },
  ],
};

/** Many children of one parent, whose limit is what holds them. */
export const hotParent: Scenario = {
  description: "Many entities cascade into one parent, which refuses before they do.",
  file,
  defaults: { durationSeconds: 30, rate: 100, users: 100 },
  setup: [{ setSystemDefaults: ["rpm:120/min"] }, family],
  variables: { parentRpm: 1200 },
  users: [{ name: "child", flow: [{ function: "callAsChild" }] }],
};
