import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";
import { bucketLimits, fullBucket } from "./bucket.ts";
import { withLimits } from "./limit-change.ts";

const call = { entityId: "e", resource: "r" };
const large = Limit.perDay("tpd", 100);
const small = Limit.perDay("tpd", 10);
const other = Limit.perDay("rpd", 10);

it("does not fill a limit that was lowered to its balance, removed, and added again", async () => {
  const limiter = new RateLimiter({
    repository: new MemoryRepository({ clock: new ManualClock() }),
  });
  await (await limiter.acquire({ ...call, consume: { tpd: 90 }, limits: [large] })).commit();
  for (const limits of [[small], [other], [large]])
    await (await limiter.acquire({ ...call, consume: {}, limits })).commit();
  expect(await limiter.available("e", "r", { limits: [large] })).toEqual({ tpd: 10 });
});

it("charges a settlement to a limit that was full when it left the policy", async () => {
  const repository = new MemoryRepository({ clock: new ManualClock() });
  await repository.setSystemDefaults([large]);
  const limiter = new RateLimiter({ repository });
  const lease = await limiter.acquire({ ...call, consume: {} });
  await (await limiter.acquire({ ...call, consume: {}, limits: [other] })).commit();
  lease.settle({ tpd: 30 });
  await lease.commit();
  expect(await limiter.available("e", "r")).toEqual({ tpd: 70 });
});

it("drops full hidden limits of a bucket that has had very many limits", () => {
  let bucket = fullBucket([], 0);
  for (let index = 0; index < 200; index += 1)
    bucket = withLimits(bucket, bucketLimits([Limit.perDay(`limit-${index}`, 5)]), 0);
  expect(bucket.limits.length).toBeLessThanOrEqual(65);
  expect(bucket.balances).toHaveLength(bucket.limits.length * 3);
});
