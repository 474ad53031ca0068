import { Limit, RateLimiter, RateLimitExceeded, ValidationError } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

it("takes, settles into debt, refuses, and serves again when the debt is earned back", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 100), Limit.perMinute("tpm", 1000)]);
  const limiter = new RateLimiter({ repository });
  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
  await limiter.acquire(call, (lease) => lease.settle({ tpm: 1500 }));
  expect(await limiter.available("key-1", "gpt-4")).toEqual({ rpm: 99, tpm: -500 });
  const verdict = await limiter.tryAcquire(call);
  expect(verdict.granted).toBe(false);
  if (!verdict.granted) {
    expect(verdict.refusal).toBeInstanceOf(RateLimitExceeded);
    expect(verdict.refusal.retryAfterSeconds).toBe(30);
    expect(verdict.refusal.primaryViolation.limitName).toBe("tpm");
  }
  await clock.advance(29_999);
  expect((await limiter.tryAcquire(call)).granted).toBe(false);
  await clock.advance(1);
  expect((await limiter.tryAcquire(call)).granted).toBe(true);
});

it("serves waiting calls in order of arrival", async () => {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  const limiter = new RateLimiter({ repository });
  const order: string[] = [];
  const call = (name: string, rps: number): Promise<void> =>
    limiter
      .acquire({ entityId: "e", resource: "r", consume: { rps }, waitUpToMs: 10_000 })
      .then((lease) => (order.push(name), lease.commit()));
  const all = [call("a", 10), call("b", 10), call("c", 1)];
  await clock.advance(900);
  expect(order).toEqual(["a"]);
  await clock.advance(100);
  expect(order).toEqual(["a", "b"]);
  await clock.advance(100);
  expect(order).toEqual(["a", "b", "c"]);
  await Promise.all(all);
});

it("gives back what it took, even if the caller has changed its request meanwhile", async () => {
  const repository = new MemoryRepository({ clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  const limiter = new RateLimiter({ repository });
  const consume = { rpm: 1 };
  await (await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 5 } })).commit();
  const lease = await limiter.acquire({
    entityId: "e",
    resource: "r",
    consume,
    also: { s: consume },
  });
  consume.rpm = 4;
  expect(lease.consumed).toEqual({ rpm: 1 });
  await lease.rollback();
  expect(await limiter.available("e", "r")).toEqual({ rpm: 5 });
});

it("refuses an invalid repository, callback or work before anything is taken", async () => {
  const repository = new MemoryRepository();
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  for (const options of [
    undefined,
    {},
    { repository: {} },
    { repository, onSettlementFailed: "log" },
  ])
    expect(() => new RateLimiter(options as never)).toThrow(ValidationError);
  const limiter = new RateLimiter({ repository });
  const call = { entityId: "e", resource: "r", consume: { rpm: 1 } };
  await expect(limiter.acquire(call, "work" as never)).rejects.toThrow(ValidationError);
  expect(await repository.getBuckets("e")).toEqual([]);
});
