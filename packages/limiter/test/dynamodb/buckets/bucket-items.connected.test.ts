import { expect, it } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded, type AcquireRequest } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import {
  booleanOf,
  numberOf,
  stringOf,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { keysOf, useProxiedTable } from "../../support/proxied-table.ts";

const START_MS = Date.now();
const rpm = Limit.perMinute("rpm", 60);
const tpm = Limit.perMinute("tpm", 6000);

describeWithEngine("faults of the original on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  const open = async (
    clock = new ManualClock(START_MS),
  ): Promise<{ repository: DynamoRepository; limiter: RateLimiter }> => {
    const repository = await table.open("app", { clock });
    return { repository, limiter: new RateLimiter({ repository }) };
  };
  const bucketItems = async (): Promise<readonly AttributeMap[]> =>
    (await table.items()).filter((item) => item["rf"] !== undefined);
  const ttlMs = async (): Promise<number> => numberOf((await bucketItems())[0]!["ttl"])! * 1000;
  const requestsOf = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
    const before = table.proxy.seen.length;
    await work();
    return table.proxy.seen.slice(before).map(({ operation }) => operation);
  };

  it("adds a limit to buckets that exist, full, and goes on granting [W-32]", async () => {
    const { repository, limiter } = await open();
    await repository.setLimits("e", [rpm]);
    await take(limiter, { rpm: 10 });
    await repository.setLimits("e", [rpm, tpm]);
    await take(limiter, { rpm: 10, tpm: 1000 });
    expect(await limiter.available("e", "r")).toEqual({ rpm: 40, tpm: 5000 });
  });

  it("stores all parameters of an added limit that the call does not name [W-33]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    await repository.setLimits("e", [rpm]);
    await take(limiter, { rpm: 10 });
    await repository.setLimits("e", [rpm, tpm]);
    await take(limiter, { rpm: 10 });
    const [item] = await bucketItems();
    for (const field of ["tk", "cp", "ra", "rp"]) expect(item).toHaveProperty(`b_tpm_${field}`);
    await clock.advance(60_000);
    await take(limiter, { rpm: 60, tpm: 6000 });
  });

  it("tells the parent on the bucket of an entity that this process has never met", async () => {
    const { repository } = await open();
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("project");
    await repository.createEntity("e", { parentId: "project", cascade: true });
    await take((await open()).limiter, { rpm: 1 });
    const items = (await bucketItems()).filter((item) => stringOf(item["entity_id"]) === "e");
    expect(items.map((item) => [booleanOf(item["cascade"]), stringOf(item["parent_id"])])).toEqual([
      [true, "project"],
    ]);
  });

  it("creates no bucket when a lease of a deleted one is settled [W-34]", async () => {
    const { repository, limiter } = await open();
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("e");
    const [settled, rolledBack] = [
      await limiter.acquire(call({ rpm: 1 })),
      await limiter.acquire(call({ rpm: 1 })),
    ];
    await repository.deleteEntity("e");
    settled.settle({ rpm: 5 });
    await settled.commit();
    await rolledBack.rollback();
    expect(keysOf(await bucketItems())).toEqual([]);
    await take(limiter, { rpm: 60 });
    await expect(take(limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("takes limits whose names are no words of an expression [W-35]", async () => {
    const { repository, limiter } = await open();
    const names = ["a-b", "a.b", "size", "tk", "b_x_tk"];
    await repository.setSystemDefaults(names.map((name) => Limit.perMinute(name, 10)));
    const amounts = Object.fromEntries(names.map((name) => [name, 4]));
    await take(limiter, amounts);
    await take(limiter, amounts);
    expect(await limiter.available("e", "r")).toEqual(
      Object.fromEntries(names.map((name) => [name, 2])),
    );
    await expect(take(limiter, amounts)).rejects.toThrow(RateLimitExceeded);
  });

  it("keeps a child's refill when another process refilled the parent [W-42]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    const other = (await open(clock)).limiter;
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("p");
    await repository.createEntity("e", { parentId: "p", cascade: true });
    await take(limiter, { rpm: 60 });
    await clock.advance(60_000);
    await (await other.acquire({ entityId: "p", resource: "r", consume: { rpm: 1 } })).commit();
    await take(limiter, { rpm: 59 });
    expect(await limiter.available("e", "r")).toEqual({ rpm: 0 });
  });

  it("writes a parent that lacks a limit of its child without reading [W-43]", async () => {
    const { repository, limiter } = await open();
    await repository.createEntity("p");
    await repository.createEntity("e", { parentId: "p", cascade: true });
    await repository.setLimits("e", [rpm, tpm]);
    await repository.setLimits("p", [tpm]);
    await take(limiter, { rpm: 1, tpm: 10 });
    expect(await requestsOf(() => take(limiter, { rpm: 1, tpm: 10 }))).toEqual([
      "UpdateItem",
      "UpdateItem",
    ]);
    const buckets = [...(await repository.getBuckets("e")), ...(await repository.getBuckets("p"))];
    expect(
      buckets.map(({ entityId, limitName, available }) => [entityId, limitName, available]),
    ).toEqual([
      ["e", "rpm", 58],
      ["e", "tpm", 5980],
      ["p", "tpm", 5980],
    ]);
  });

  it("keeps a bucket until its debt is earned back, and renews that with every take [W-51]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    await repository.setSystemDefaults([rpm]);
    await take(limiter, { rpm: 1 });
    const first = await ttlMs();
    await clock.advance(30_000);
    await take(limiter, { rpm: 1 });
    expect(await ttlMs()).toBe(first + 30_000);
    const lease = await limiter.acquire(call({ rpm: 1 }));
    lease.settle({ rpm: 60_000 });
    await lease.commit();
    // A thousand minutes of debt.
    expect(await ttlMs()).toBeGreaterThan(clock.now() + 1000 * 60_000);
  });

  it("charges debts that add up beyond the safe range, each in one write, with a refill and without one", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    const most = Math.floor(Number.MAX_SAFE_INTEGER / 1000);
    await repository.setSystemDefaults([Limit.perSecond("tpm", 100), Limit.perSecond("rps", 100)]);
    const leases = await Promise.all(
      Array.from({ length: 6 }, () => limiter.acquire(call({ tpm: 0 }))),
    );
    const { writes, failedConditions } = repository.getStatistics();
    for (const [index, lease] of leases.entries()) {
      // What overflowed must be refilled before it is charged; what was just refilled need not.
      if (index % 2 === 0) await clock.advance(1000);
      lease.settle({ tpm: most, rps: 1 });
      await lease.commit();
    }
    expect(repository.getStatistics()).toMatchObject({ writes: writes + 6, failedConditions });
    const owed = (await repository.getBuckets("e")).find(({ limitName }) => limitName === "tpm");
    expect(owed!.totalConsumedMilli).toBe(6 * most * 1000);
  });

  it("refills in the same request as it takes, and after another's refill in a second one, without a read [W-76]", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await open(clock);
    const other = (await open(clock)).limiter;
    await repository.setSystemDefaults([rpm]);
    await take(limiter, { rpm: 60 });
    await clock.advance(10_000);
    expect(await requestsOf(() => take(limiter, { rpm: 10 }))).toEqual(["UpdateItem"]);
    await clock.advance(10_000);
    await take(other, { rpm: 1 });
    expect(await requestsOf(() => take(limiter, { rpm: 9 }))).toEqual(["UpdateItem", "UpdateItem"]);
  });
});

function call(consume: Record<string, number>): AcquireRequest {
  return { entityId: "e", resource: "r", consume };
}

async function take(limiter: RateLimiter, consume: Record<string, number>): Promise<void> {
  await (await limiter.acquire(call(consume))).commit();
}
