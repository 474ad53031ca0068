import { randomUUID } from "node:crypto";
import { Limit } from "zae-limiter";
import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { uniform } from "../load/entities.ts";
import type { Scenario } from "./scenario.ts";
import { pickAmongUsers, startRandom } from "./worker-state.ts";

// Of config-churn, whose functions are those of this module.
export { callApi } from "./calls.ts";

/** How often a client without manners repeats a refused call. */
const MOST_RETRIES = 5;

const between = startRandom();
const pick = pickAmongUsers((count, seed) => uniform({ count, seed }));

/** A client that repeats a refused call at once, whatever the refusal says. */
export async function retryAtOnce(
  session: RateLimiterSession,
  context: UserContext,
): Promise<void> {
  const call = { entityId: pick(context), resource: "api", consume: { rpm: 1 } };
  for (let attempt = 0; attempt <= MOST_RETRIES; attempt += 1)
    if ((await session.acquire(call, () => true)) === true) return;
}

/** A stream: most end, some are cut off before anything was sent, and some never end. */
export async function stream(session: RateLimiterSession, context: UserContext): Promise<void> {
  const fate = between(1, 10);
  await session.acquire(
    { entityId: pick(context), resource: "gpt-4", consume: { rpm: 1, tpm: 800 }, name: "stream" },
    async (lease) => {
      await session.repository.clock.sleep(between(10, 200));
      if (fate === 1) lease.abandon();
      else if (fate <= 3) lease.giveBack();
      else lease.settle({ tpm: between(200, 2000) });
    },
  );
}

/** An administrator who changes the limits of the resource, or of one entity. */
export async function changeLimits(
  session: RateLimiterSession,
  context: UserContext,
): Promise<void> {
  const limits = [Limit.perMinute("rpm", between(50, 60))];
  if (between(1, 2) === 1) await session.manage("setResourceDefaults", "api", limits);
  else await session.manage("setLimits", pick(context), limits, { resource: "api" });
}

/** A client whose bucket does not exist yet. */
export async function callFirst(session: RateLimiterSession): Promise<void> {
  const call = { entityId: `cold-${randomUUID()}`, resource: "api", consume: { rpm: 1 } };
  for (let index = 0; index < 3; index += 1) await session.acquire(call);
}

const file = new URL(import.meta.url);
const rpm = { setSystemDefaults: ["rpm:30/min"] };

/** Clients that make an overload worse. */
export const retryStorm: Scenario = {
  description: "Refused clients repeat their calls at once, up to five times.",
  file,
  defaults: { durationSeconds: 30, rate: 100, users: 20 },
  setup: [rpm],
  users: [{ name: "client", flow: [{ function: "retryAtOnce" }] }],
};

/** Leases that end late, or never. */
export const abandonedStreams: Scenario = {
  description: "Streams of which a fifth is given back and a tenth never ends.",
  file,
  defaults: { durationSeconds: 30, rate: 50, users: 20 },
  setup: [{ setSystemDefaults: ["rpm:60/min", "tpm:20000/min"] }],
  users: [{ name: "stream", flow: [{ function: "stream" }] }],
};

/** Limits that change all the time. */
export const configChurn: Scenario = {
  description: "Limits of the resource and of entities change while calls are made.",
  file,
  defaults: { durationSeconds: 30, rate: 100, users: 20 },
  setup: [rpm],
  users: [
    { name: "caller", weight: 49, flow: [{ function: "callApi" }] },
    { name: "administrator", weight: 1, flow: [{ function: "changeLimits" }] },
  ],
};

/** Nothing is known of any client. */
export const coldStart: Scenario = {
  description: "Every user is a new entity, whose bucket does not exist yet.",
  file,
  defaults: { durationSeconds: 30, rate: 100, users: 1 },
  setup: [{ setSystemDefaults: ["rpm:2/min"] }],
  users: [{ name: "newcomer", flow: [{ function: "callFirst" }] }],
};
