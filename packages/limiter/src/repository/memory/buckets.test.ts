import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

/** More buckets than are kept when they are full. */
const CROWD = 12_000;

async function crowd(limiter: RateLimiter): Promise<void> {
  for (let index = 0; index < CROWD; index += 1) await limiter.acquire({ entityId: `crowd-${index}`, resource: "r", consume: { rpm: 1 } });
}

it("settles on a bucket that was forgotten meanwhile, under the limits of today", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock, recordUsage: false });
  const limiter = new RateLimiter({ repository });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const lease = await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 } });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 20)]);
  await clock.advance(60_000);
  await crowd(limiter);
  expect(await repository.getBuckets("e")).toEqual([]);
  lease.settle({ rpm: 3 });
  await lease.commit();
  const { statuses } = await limiter.check({ entityId: "e", resource: "r", consume: {} });
  expect(statuses[0]?.limit.capacity).toBe(20);
});

it("forgets full buckets when there are many, and never debt", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock, recordUsage: false });
  const limiter = new RateLimiter({ repository });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  await limiter.acquire({ entityId: "debtor", resource: "r", consume: {} }, (lease) => lease.settle({ rpm: 1000 }));
  await limiter.acquire({ entityId: "idle", resource: "r", consume: { rpm: 1 } });
  await clock.advance(60_000);
  await crowd(limiter);
  expect(await repository.getBuckets("idle")).toEqual([]);
  expect(await limiter.available("idle", "r")).toEqual({ rpm: 10 });
  expect(await limiter.available("debtor", "r")).toEqual({ rpm: -980 });
});
