import { Limit, RateLimiter, type Repository } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";

const CALL = { entityId: "e", resource: "r", consume: { rpm: 1, tpm: 100 } };

async function newRepository(): Promise<MemoryRepository> {
  const repository = new MemoryRepository({ clock: new ManualClock() });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)]);
  return repository;
}

it("never hides that a change was invalid, whatever happens to the commit", async () => {
  const repository = await newRepository();
  const bug = new TypeError("a bug of the backend");
  const broken: Repository = new Proxy(
    faultyRepository(repository, () => undefined),
    {
      get: (target, property) =>
        property === "settle" ? () => Promise.reject(bug) : Reflect.get(target, property, target),
    },
  );
  const failures: unknown[] = [];
  const limiter = new RateLimiter({
    repository: broken,
    onSettlementFailed: (error) => failures.push(error),
  });
  const settling = limiter.acquire(CALL, (lease) => lease.settle({ tpm: 50, tokens: 50 }));
  await expect(settling).rejects.toThrow("no such limit; the limits are rpm, tpm");
  expect(failures).toMatchObject([{ code: "ERR_LIMITER_UNAVAILABLE", cause: bug }]);
  expect(await limiter.available("e", "r")).toEqual({ rpm: 9, tpm: 900 });
});

it("recognises an invalid change behind several errors, and does not follow causes forever", async () => {
  const limiter = new RateLimiter({ repository: await newRepository() });
  const wrapped = limiter.acquire(CALL, (lease) => {
    try {
      lease.settle({ tokens: 1 });
    } catch (error) {
      let outer: unknown = error;
      for (let count = 0; count < 5; count += 1) outer = new Error("wrapped", { cause: outer });
      throw outer;
    }
  });
  await expect(wrapped).rejects.toThrow("wrapped");
  expect(await limiter.available("e", "r")).toEqual({ rpm: 9, tpm: 900 });
  const endless = new Error("its own cause");
  endless.cause = endless;
  await expect(limiter.acquire(CALL, () => Promise.reject(endless))).rejects.toBe(endless);
  expect(await limiter.available("e", "r")).toEqual({ rpm: 9, tpm: 900 });
});

it("does not touch a lease that the work has ended after an invalid change", async () => {
  const limiter = new RateLimiter({ repository: await newRepository() });
  const ended = limiter.acquire(CALL, async (lease) => {
    let invalid: unknown;
    try {
      lease.settle({ tpm: 50, tokens: 1 });
    } catch (error) {
      invalid = error;
    }
    await lease.rollback();
    throw invalid;
  });
  await expect(ended).rejects.toThrow("no such limit");
  expect(await limiter.available("e", "r")).toEqual({ rpm: 10, tpm: 1000 });
});
