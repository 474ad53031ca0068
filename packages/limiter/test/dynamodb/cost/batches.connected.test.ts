/*
 * What calls cost that share writes, through the public surface: requests are counted behind the
 * client, by a proxy, and compared with what `getStatistics` returns.
 */
import { beforeEach, expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const CALLERS = 64;
const START_MS = Date.UTC(2030, 0, 1);

describeWithEngine("what a bucket costs that many callers share", (engine) => {
  const table = useProxiedTable(engine);
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock(START_MS);
  });

  const open = async (
    limit: Limit,
  ): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
    const repository = await table.open("app", { clock });
    await repository.setSystemDefaults([limit]);
    return { limiter: new RateLimiter({ repository }), repository };
  };

  it("an acquire of one of many callers costs at most 0.05 write units, and every one is charged", async () => {
    const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
    await take(limiter, { rpm: 1 });
    const rounds = 40;
    const caller = async (): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        await take(limiter, { rpm: 1 });
        clock.set(clock.now() + 1);
      }
    };
    const before = repository.getStatistics();
    const sent = await table.listOperations(() =>
      Promise.all(Array.from({ length: CALLERS }, caller)),
    );
    const acquires = CALLERS * rounds;
    expect(new Set(sent)).toEqual(new Set(["UpdateItem"]));
    expect(sent.length / acquires).toBeLessThanOrEqual(0.05);
    const after = repository.getStatistics();
    expect(after.writes + after.failedConditions - before.writes - before.failedConditions).toBe(
      sent.length,
    );
    expect(after.requests - before.requests).toBe(sent.length);
    expect(after.batchedOperations - before.batchedOperations).toBe(acquires);
    expect(
      (after.batchedOperations - before.batchedOperations) / (after.batches - before.batches),
    ).toBeGreaterThanOrEqual(20);
    expect(await table.consumed(repository)).toBe(acquires + 1);
  });

  it("calls that are settled and rolled back cost no more", async () => {
    const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
    await take(limiter, { rpm: 1 });
    const rounds = 20;
    const caller = async (_: unknown, index: number): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        const lease = await limiter.acquire(call({ rpm: 2 }));
        if (index % 2 === 0) lease.settle({ rpm: 3 });
        await (index % 2 === 0 ? lease.commit() : lease.rollback());
      }
    };
    const sent = await table.listOperations(() =>
      Promise.all(Array.from({ length: CALLERS }, caller)),
    );
    expect(sent.length / (2 * CALLERS * rounds)).toBeLessThanOrEqual(0.05);
    expect(await table.consumed(repository)).toBe((CALLERS / 2) * rounds * 3 + 1);
  });

  it("a parent is like any other bucket: its children's calls share few writes", async () => {
    const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
    await repository.createEntity("parent");
    const children = Array.from({ length: CALLERS }, (_, index) => `child-${index}`);
    await Promise.all(
      children.map((child) =>
        repository.createEntity(child, { parentId: "parent", cascade: true }),
      ),
    );
    const round = async (): Promise<void> =>
      void (await Promise.all(children.map((entityId) => take(limiter, { rpm: 1 }, entityId))));
    await round();
    const sent = await table.sentDuring(async () => {
      for (let rounds = 0; rounds < 4; rounds += 1) await round();
    });
    // A request has at most one write of a bucket.
    const writes = sent.filter(({ input }) => JSON.stringify(input).includes("#parent#"));
    expect(writes.length / (4 * CALLERS)).toBeLessThanOrEqual(0.05);
    expect(await table.consumed(repository, "parent")).toBe(5 * CALLERS);
  });
});
