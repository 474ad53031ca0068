import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { beforeEach, expect, it } from "vitest";
import { StoreRepository } from "../management/store-repository.ts";
import { MemoryStore } from "./memory-store.ts";

/** Above this many buckets full ones are dropped in these tests; the real number is 10 000. */
const MANY = 100;

let clock: ManualClock;
let repository: Repository;
let limiter: RateLimiter;

beforeEach(() => {
  clock = new ManualClock();
  const store = new MemoryStore({ nowMs: () => clock.now(), recordUsage: true, forgetAbove: MANY });
  const { namespaceId } = store.namespaces.register("default", () => "id", clock.now());
  repository = new StoreRepository({
    store,
    namespaceName: "default",
    namespaceId,
    options: { clock },
  });
  limiter = new RateLimiter({ repository });
});

it("holds a bounded number of buckets when each is used once", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  for (let index = 0; index < 10 * MANY; index += 1) {
    if (index % 20 === 0) await clock.advance(1000);
    await take(`key-${index}`, { rps: 1 });
  }
  expect(await hold()).toBeLessThan(MANY + 40);
});

it("keeping or dropping a full bucket changes no decision", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10, { burst: 20 })]);
  await take("idle", { rps: 20 });
  await clock.advance(2000);
  expect(await limiter.available("idle", "gpt-4")).toEqual({ rps: 20 });
  await crowd();
  expect(await repository.getBuckets("idle")).toEqual([]);
  expect(await limiter.available("idle", "gpt-4")).toEqual({ rps: 20 });
  await take("idle", { rps: 20 });
  expect(
    (await limiter.tryAcquire({ entityId: "idle", resource: "gpt-4", consume: { rps: 1 } }))
      .granted,
  ).toBe(false);
});

it("keeps buckets that are not full, and especially debt", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10), Limit.perDay("tpd", 1000)]);
  await take("debtor", { rps: 1 }, { tpd: 5000 });
  await take("user", { tpd: 1 });
  await crowd();
  expect((await limiter.available("debtor", "gpt-4"))["tpd"]).toBe(-4000 + earnedPerDay(1000));
  expect((await limiter.available("user", "gpt-4"))["tpd"]).toBe(999);
});

it("keeps a limit that left the policy until it is full, so that it does not come back full", async () => {
  const daily = Limit.perDay("tpd", 1000);
  await repository.setSystemDefaults([Limit.perSecond("rps", 10), daily]);
  await take("user", { tpd: 1000 });
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  await take("user", { rps: 1 });
  await crowd();
  await repository.setSystemDefaults([Limit.perSecond("rps", 10), daily]);
  expect((await limiter.available("user", "gpt-4"))["tpd"]).toBe(earnedPerDay(1000));
});

it("a lease gives back to a forgotten bucket without lifting it above its capacity, and settles into it", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  const undone = await limiter.acquire({
    entityId: "idle",
    resource: "gpt-4",
    consume: { rps: 5 },
  });
  const settled = await limiter.acquire({
    entityId: "idle",
    resource: "gpt-4",
    consume: { rps: 5 },
  });
  await crowd();
  expect(await repository.getBuckets("idle")).toEqual([]);
  await undone.rollback();
  expect(await limiter.available("idle", "gpt-4")).toEqual({ rps: 10 });
  settled.adjust({ rps: 30 });
  await settled.commit();
  expect(await limiter.available("idle", "gpt-4")).toEqual({ rps: -20 });
});

it("a bucket that a lease brings back is decided with the current limits", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  const lease = await limiter.acquire({ entityId: "idle", resource: "gpt-4", consume: { rps: 5 } });
  await crowd();
  await repository.setSystemDefaults([Limit.perSecond("rps", 3)]);
  lease.adjust({ rps: 1 });
  await lease.commit();
  await clock.advance(60_000);
  expect(await limiter.available("idle", "gpt-4")).toEqual({ rps: 3 });
});

it("a bucket that is full only for a call's own limits is not forgotten: it would come back fuller", async () => {
  await repository.setSystemDefaults([Limit.perHour("rph", 3600)]);
  await take("user", { rph: 1 });
  const limits = [Limit.perSecond("rph", 5)];
  const lease = await limiter.acquire({
    entityId: "user",
    resource: "gpt-4",
    consume: { rph: 1 },
    limits,
  });
  await lease.commit();
  await clock.advance(1000);
  await crowd();
  expect((await limiter.available("user", "gpt-4"))["rph"]).toBe(5);
});

it("buckets of calls that bring their own limits are forgotten like others", async () => {
  const limits = [Limit.perSecond("rps", 10)];
  for (let index = 0; index < 10 * MANY; index += 1) {
    if (index % 20 === 0) await clock.advance(1000);
    const lease = await limiter.acquire({
      entityId: `key-${index}`,
      resource: "gpt-4",
      consume: { rps: 1 },
      limits,
    });
    await lease.commit();
  }
  expect(await hold("rps")).toBeLessThan(MANY + 40);
});

it("a call on a forgotten bucket counts as one request, even if it is rolled back", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  await take("idle", { rps: 1 });
  const lease = await limiter.acquire({ entityId: "idle", resource: "gpt-4", consume: { rps: 5 } });
  await crowd();
  expect(await repository.getBuckets("idle")).toEqual([]);
  await lease.consume({ rps: 1 });
  await lease.rollback();
  expect((await repository.getUsageSummary({ entityId: "idle" })).requests).toBe(1);
});

it("a bucket is not forgotten while a call uses it: neither a new one nor a parent's", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  await repository.createEntity("parent");
  for (let index = 0; index < 30; index += 1)
    await repository.createEntity(`child-${index}`, { parentId: "parent", cascade: true });
  await repository.setLimits("parent", [Limit.perSecond("rps", 30)]);
  await crowd();
  for (let index = 0; index < 30; index += 1) {
    await take(`child-${index}`, { rps: 1 });
    expect((await limiter.available("parent", "gpt-4"))["rps"]).toBe(29 - index);
    expect((await repository.getBuckets(`child-${index}`))[0]?.tokensMilli).toBe(9000);
  }
});

it("idle buckets that became full under older limits are forgotten when they are full under the new ones", async () => {
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  for (let index = 0; index < 50; index += 1) await take(`key-${index}`, { rps: 1 });
  await clock.advance(1000);
  await repository.setSystemDefaults([Limit.perSecond("rps", 20)]);
  await crowd();
  await crowd();
  expect(await hold()).toBe(0);
});

it("an entity whose levels have too many limits together breaks no other entity's calls", async () => {
  const rate = Limit.perSecond("rps", 10);
  await repository.setSystemDefaults([rate]);
  await take("misconfigured", { rps: 1 });
  const many = Array.from({ length: 31 }, (_, index) => Limit.perDay(`daily-${index}`, 5));
  await repository.setLimits("misconfigured", many, { inherit: true });
  await repository.setSystemDefaults([rate, Limit.perDay("tpd", 1000)]);
  await crowd();
  await expect(take("misconfigured", { rps: 1 })).rejects.toThrow("at most 32 limits");
});

async function take(
  entityId: string,
  consume: Record<string, number>,
  more: Record<string, number> = {},
): Promise<void> {
  const lease = await limiter.acquire({ entityId, resource: "gpt-4", consume });
  lease.adjust(more);
  await lease.commit();
}

let crowds = 0;

/** Lets ten seconds pass, and adds so many entities that every idle bucket is checked. */
async function crowd(): Promise<void> {
  crowds += 1;
  await clock.advance(10_000);
  const limits = [Limit.perDay("crowd", 5)];
  for (let index = 0; index < 3 * MANY; index += 1) {
    const lease = await limiter.acquire({
      entityId: `crowd-${crowds}-${index}`,
      resource: "crowd",
      consume: { crowd: 1 },
      limits,
    });
    await lease.commit();
  }
}

/** What a daily limit earns in the ten seconds of `crowd`, in whole tokens. */
function earnedPerDay(rate: number): number {
  return Math.floor((rate * 10) / 86_400);
}

async function hold(limitName = "rps"): Promise<number> {
  return (await repository.getResourceCapacity("gpt-4", limitName)).entities.length;
}
