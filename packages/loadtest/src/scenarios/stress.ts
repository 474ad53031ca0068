import type { UserContext } from "../engine/artillery.ts";
import type { RateLimiterSession } from "../engine/session.ts";
import { spiker, uniform, zipf } from "../load/entities.ts";
import type { Scenario } from "./scenario.ts";
import { pickAmongUsers, startRandom } from "./worker-state.ts";

/** A burst of 1500 calls a minute, as the calls of one second. */
const BURST_CALLS = 25;

/** How many entities have bursts. */
const SPIKERS = 20;

const between = startRandom();
const pickOther = pickAmongUsers((count, seed) => zipf({ count, seed, exponent: 1.5 }));
const pickSpiker = pickAmongUsers((_, seed) =>
  uniform({ count: SPIKERS, seed, prefix: "spiker-" }),
);
const isBursting = spiker({ probability: 0.1, burstSeconds: 30 });

/** The one entity that makes half of all calls. */
export async function callAsWhale(session: RateLimiterSession): Promise<void> {
  await call(session, "whale", "whale");
}

/** An entity that is quiet, but for bursts. */
export async function callAsSpiker(
  session: RateLimiterSession,
  context: UserContext,
): Promise<void> {
  const entityId = pickSpiker(context);
  const count = isBursting(entityId, session.repository.clock.now() / 1000) ? BURST_CALLS : 1;
  for (let index = 0; index < count; index += 1) await call(session, entityId, "spiker");
}

/** One of the others, few of which make most calls. */
export async function callAsOther(
  session: RateLimiterSession,
  context: UserContext,
): Promise<void> {
  await call(session, pickOther(context), "other");
}

async function call(session: RateLimiterSession, entityId: string, name: string): Promise<void> {
  await session.acquire({
    entityId,
    resource: "gpt-4",
    consume: { rpm: 1, tpm: 800 },
    settle: { tpm: between(200, 2000) },
    name,
  });
}

/** Traffic that is as uneven as it gets. */
export const stress: Scenario = {
  description:
    "16,000 entities: a whale makes half of the calls, spikers 3 %, the rest is Zipf 1.5.",
  file: new URL(import.meta.url),
  defaults: { durationSeconds: 60, rate: 100, users: 16_000 },
  setup: [{ setSystemDefaults: ["rpm:300/min", "tpm:100000/min"] }],
  users: [
    { name: "whale", weight: 50, flow: [{ function: "callAsWhale" }] },
    { name: "spiker", weight: 3, flow: [{ function: "callAsSpiker" }] },
    { name: "other", weight: 47, flow: [{ function: "callAsOther" }] },
  ],
};
