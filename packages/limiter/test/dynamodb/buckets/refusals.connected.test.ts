import { beforeEach, expect, it } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded, type Lease } from "zae-limiter";
import type { DynamoOptions, DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const START_MS = Date.UTC(2030, 0, 1);

describeWithEngine("an exhausted bucket", (engine) => {
  const table = useProxiedTable(engine);
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock(START_MS);
  });

  const open = async (
    limit: Limit,
    options: DynamoOptions = {},
  ): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
    const repository = await table.open("app", { clock, ...options });
    await repository.setSystemDefaults([limit]);
    return { limiter: new RateLimiter({ repository }), repository };
  };

  it.each([
    [1, ["UpdateItem"]],
    [4, ["BatchGetItem", "TransactWriteItems"]],
  ])(
    "refusals until it earns come from memory, a thousand times: %i shards [W-55]",
    async (shards, granting) => {
      const { limiter, repository } = await open(Limit.perMinute("rpm", 60));
      await take(limiter, { rpm: 1 });
      if (shards > 1) await repository.splitBucket!("e", "r", { shards });
      await take(limiter, { rpm: 59 });
      // Of several shards, each has to be looked at once.
      if (shards > 1) await getRefusal(limiter);
      const sent = await table.listOperations(async () => {
        for (let refusals = 0; refusals < 1000; refusals += 1) {
          const { retryAfterSeconds } = await getRefusal(limiter);
          expect(retryAfterSeconds).toBe(refusals < 500 ? 1 : 0.001);
          if (refusals === 499) await clock.advance(999);
        }
      });
      expect(sent).toEqual([]);
      expect(repository.getStatistics().refusalsFromMemory).toBe(1000);
      await clock.advance(1);
      expect(await table.listOperations(() => take(limiter, { rpm: 1 }))).toEqual(granting);
      await getRefusal(limiter);
    },
  );

  it("the table is asked once in `refusalMemoryMs`, however long it takes", async () => {
    const { limiter, repository } = await open(Limit.perDay("rpm", 60));
    await take(limiter, { rpm: 60 });
    const sent = await table.listOperations(async () => {
      for (let refusals = 0; refusals < 1000; refusals += 1) {
        await getRefusal(limiter);
        await clock.advance(10);
      }
    });
    expect(sent).toEqual(Array.from({ length: 9 }, () => "BatchGetItem"));
    expect(repository.getStatistics().refusalsFromMemory).toBe(991);
  });

  it("a process without a memory of refusals asks before each of them, and writes nothing [W-55]", async () => {
    const { limiter } = await open(Limit.perDay("rpm", 60), { refusalMemoryMs: 0 });
    await take(limiter, { rpm: 60 });
    for (let refusals = 0; refusals < 5; refusals += 1)
      expect(await table.listOperations(() => getRefusal(limiter))).toEqual(["BatchGetItem"]);
  });

  it.each<[string, (lease: Lease) => Promise<void>]>([
    ["a rollback", async (lease) => lease.rollback()],
    [
      "a settlement",
      async (lease) => {
        lease.settle({ rpm: 10 });
        await lease.commit();
      },
    ],
  ])("what %s of this process gave back is granted at once, without a read", async (_, end) => {
    const { limiter } = await open(Limit.perDay("rpm", 60));
    const lease = await limiter.acquire(call({ rpm: 60 }));
    await getRefusal(limiter);
    await end(lease);
    expect(await table.listOperations(() => take(limiter, { rpm: 50 }))).toEqual(["UpdateItem"]);
  });

  it("what another process gave back is granted after `refusalMemoryMs`, and never later", async () => {
    const { limiter } = await open(Limit.perDay("rpm", 60));
    const { limiter: other } = await open(Limit.perDay("rpm", 60));
    await take(limiter, { rpm: 1 });
    const lease = await other.acquire(call({ rpm: 59 }));
    await getRefusal(limiter);
    await clock.advance(999);
    await lease.rollback();
    await getRefusal(limiter);
    await clock.advance(1);
    await take(limiter, { rpm: 1 });
  });
});

async function getRefusal(limiter: RateLimiter): Promise<RateLimitExceeded> {
  const error = await limiter.acquire(call({ rpm: 1 })).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RateLimitExceeded);
  return error as RateLimitExceeded;
}
