import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

/** How many buckets the memory backend keeps before it begins to drop full ones. */
const KEPT = 10_000;

it("charges a new bucket even if the sweep for full ones reaches it in the same call", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock, recordUsage: false });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 1)]);
  const limiter = new RateLimiter({ repository });
  // None of these is full again, so the sweep, which looks at two for each new one, walks on until
  // it meets the newest.
  const grantedTwice: string[] = [];
  for (let index = 0; index < KEPT * 2 + 10; index += 1) {
    const call = { entityId: `key-${index}`, resource: "gpt-4", consume: { rpm: 1 } };
    await (await limiter.acquire(call)).commit();
    if (index > KEPT * 2 - 10 && (await limiter.tryAcquire(call)).granted)
      grantedTwice.push(call.entityId);
  }
  expect(grantedTwice).toEqual([]);
});

it("charges a full parent even if its bucket is dropped while the child's is created", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock, recordUsage: false });
  await repository.setSystemDefaults([Limit.perSecond("rps", 1)]);
  const limiter = new RateLimiter({ repository });
  await repository.createEntity("parent");
  const take = async (entityId: string): Promise<void> =>
    (await limiter.acquire({ entityId, resource: "r", consume: { rps: 1 } })).commit();
  await take("parent");
  for (let index = 1; index < KEPT; index += 1) await take(`key-${index}`);
  await clock.advance(1000);
  await repository.createEntity("child", { parentId: "parent", cascade: true });
  await take("child");
  expect(await limiter.available("parent", "r")).toEqual({ rps: 0 });
});
