/*
 * An account that other clients use too. Four limiters on one repository stand for four processes,
 * and only the test moves the clock. A seed (`SEED`) decides how long calls take and when the
 * foreign client calls. Our bucket is full at the start, and the provider's is empty.
 */
import { describe, expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { Account } from "../../../../../examples/local-provider/account.ts";
import { Mirror } from "../../../src/llm/upstream/upstream-mirror.ts";
import { seedsFromEnvironment } from "../../support/seeded/seeds.ts";

const PROCESSES = 4;
const CALLS_AT_A_TIME = 4;
const CALL_TOKENS = 100;
const MEAN_CALL_MS = 20;

const { first: SEED } = seedsFromEnvironment({ usual: 1 });

/** How a fleet was answered by its provider. */
interface Outcome {
  readonly refusedPerThousand: number;
  /** What was granted to all, as a share of the provider's rate. */
  readonly used: number;
}

describe.each([
  { callsPerSecond: 20, foreignShare: 0.3 },
  { callsPerSecond: 60, foreignShare: 0.3 },
  { callsPerSecond: 60, foreignShare: 0.7 },
])("an account that is shared: $callsPerSecond calls a second, $foreignShare foreign", (shared) => {
  it("has at least five times fewer 429s with a mirror, and uses the provider's rate", async () => {
    const without = await simulate({ ...shared, hasMirror: false, seconds: 5 });
    const withMirror = await simulate({ ...shared, hasMirror: true, seconds: 20 });
    console.log(`429s in a simulated fleet, seed ${SEED}:`, shared, { without, withMirror });
    expect(withMirror.refusedPerThousand * 5).toBeLessThanOrEqual(without.refusedPerThousand);
    expect(withMirror.used).toBeGreaterThanOrEqual(0.85);
  });
});

it("an account without other users is not slowed down", async () => {
  // The provider's bucket is empty at the start, which costs one pause of a second.
  const alone = { callsPerSecond: 50, foreignShare: 0, hasMirror: true, seconds: 40 };
  const { refusedPerThousand, used } = await simulate(alone);
  expect(used).toBeGreaterThanOrEqual(0.95);
  expect(refusedPerThousand).toBeLessThanOrEqual(20);
});

interface Shared {
  readonly callsPerSecond: number;
  readonly foreignShare: number;
  readonly hasMirror: boolean;
  readonly seconds: number;
}

async function simulate(shared: Shared): Promise<Outcome> {
  const { callsPerSecond, foreignShare, hasMirror, seconds } = shared;
  const random = seededRandom(SEED);
  const clock = new ManualClock();
  const tokensPerMinute = callsPerSecond * CALL_TOKENS * 60;
  const account = new Account({
    requestsPerMinute: 1_000_000,
    tokensPerMinute,
    now: () => clock.now(),
  });
  account.take(tokensPerMinute);
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([
    Limit.perMinute("rpm", 1_000_000),
    Limit.perMinute("tpm", tokensPerMinute),
  ]);
  await repository.createEntity("account");
  const ours = { granted: 0, refused: 0 };
  let foreignGranted = 0;

  const call = async (limiter: RateLimiter, key: string, mirror: Mirror | undefined) => {
    const consume = { rpm: 1, tpm: CALL_TOKENS };
    const lease = await limiter.acquire({
      entityId: key,
      resource: "gpt-5",
      consume,
      waitUpToMs: Infinity,
    });
    await clock.sleep(random() * MEAN_CALL_MS);
    const waitMs = account.take(CALL_TOKENS);
    const headers = account.headers("openai", clock.now());
    await clock.sleep(random() * MEAN_CALL_MS);
    if (waitMs === 0) {
      ours.granted += 1;
      await lease.commit();
      void mirror?.observeProviderLimits(headers, 200, "gpt-5");
      return;
    }
    ours.refused += 1;
    await lease.rollback();
    const retryAfterMs = Math.ceil(waitMs);
    const told = { ...headers, "retry-after-ms": String(retryAfterMs) };
    await mirror?.observeProviderLimits(told, 429, "gpt-5", consume);
    await clock.sleep(retryAfterMs);
  };

  const over = new AbortController();
  const loops: Promise<void>[] = [];
  const untilOver = async (turn: () => Promise<void>): Promise<void> => {
    while (!over.signal.aborted) await turn();
  };
  for (let index = 0; index < PROCESSES; index += 1) {
    const key = `key-${index}`;
    await repository.createEntity(key, { parentId: "account", cascade: true });
    const limiter = new RateLimiter({ repository });
    const mirror = hasMirror
      ? new Mirror(limiter, { entityId: "account" }, (model) => model)
      : undefined;
    for (let loop = 0; loop < CALLS_AT_A_TIME; loop += 1)
      loops.push(untilOver(() => call(limiter, key, mirror)));
  }
  if (foreignShare > 0)
    loops.push(
      untilOver(async () => {
        await clock.sleep((random() * 2000) / (foreignShare * callsPerSecond));
        if (account.take(CALL_TOKENS) === 0) foreignGranted += 1;
      }),
    );
  await clock.advance(seconds * 1000);
  const { granted, refused } = ours;
  const used = (granted + foreignGranted) / (callsPerSecond * seconds);
  over.abort();
  await clock.advance(60_000);
  await Promise.all(loops);
  await repository.close();
  return {
    refusedPerThousand: Math.round((1000 * refused) / (granted + refused)),
    used,
  };
}
