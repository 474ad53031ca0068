import {
  Limit,
  RateLimiter,
  RateLimiterUnavailable,
  ValidationError,
  type RateLimiterOptions,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";

// What the contract does not show on every backend.

const CALL = { entityId: "e", resource: "r", consume: { rpm: 1, tpm: 100 } };

interface Scene {
  readonly clock: ManualClock;
  readonly limiter: RateLimiter;
  /** The fault of each operation of the store, if any. */
  readonly faults: Map<string, Fault[]>;
  readonly available: (resource?: string) => Promise<Record<string, number>>;
}

async function scene(options: Partial<RateLimiterOptions> = {}): Promise<Scene> {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)]);
  const faults = new Map<string, Fault[]>();
  const limiter = new RateLimiter({
    repository: faultyRepository(repository, (operation) => faults.get(operation)?.shift()),
    ...options,
  });
  const reader = new RateLimiter({ repository });
  return { clock, limiter, faults, available: (resource = "r") => reader.available("e", resource) };
}

describe("a lease", () => {
  it("does not change with the request that it came from", async () => {
    const { limiter, available } = await scene();
    const consume: Record<string, number> = { rpm: 1 };
    const also = { s: { rpm: 1 } };
    const lease = await limiter.acquire({ ...CALL, consume, also });
    consume["rpm"] = 500;
    consume["other"] = 1;
    also.s.rpm = 500;
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 0 });
    await limiter.acquire({ ...CALL, consume: { rpm: 9 }, also: { s: { rpm: 9 } } });
    await lease.rollback();
    expect(await available()).toEqual({ rpm: 1, tpm: 1000 });
    expect(await available("s")).toEqual({ rpm: 1, tpm: 1000 });
  });

  it("refuses a total that is too large to count, and a resource that it lacks", async () => {
    const { limiter } = await scene();
    const lease = await limiter.acquire(CALL);
    expect(() => lease.adjust({ tpm: 9_007_199_254_740 })).toThrow(ValidationError);
    expect(() => lease.resourceLease("nope")).toThrow(ValidationError);
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 100 });
  });

  it("includes takes in progress in a total that is settled meanwhile", async () => {
    const { clock, limiter, faults } = await scene();
    const lease = await limiter.acquire(CALL);
    faults.set("consume", [{ delayMs: 50 }, { delayMs: 100 }]);
    const takes = [lease.consume({ tpm: 200 }), lease.consume({ rpm: 100 }).catch(() => "refused")];
    lease.settle({ tpm: 250, rpm: 2 });
    await clock.advance(100);
    await Promise.all(takes);
    expect(lease.consumed).toEqual({ rpm: 2, tpm: 250 });
    await lease.consume({ tpm: 5 });
    expect(lease.consumed).toEqual({ rpm: 2, tpm: 255 });
  });
});

describe("a store that fails", () => {
  it("lets a degraded lease take and settle any limit, and writes nothing later", async () => {
    const { limiter, faults, available } = await scene({ onUnavailable: "allow" });
    faults.set("consume", ["error-before"]);
    const lease = await limiter.acquire(CALL);
    expect(lease.degraded).toBe(true);
    lease.settle({ tpm: 5000 });
    await lease.consume({ tpm: 5, unknown: 1 });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 5005, unknown: 1 });
    await lease.commit();
    expect(await available()).toEqual({ rpm: 10, tpm: 1000 });
  });

  it("rejects a commit after three attempts, refunds nothing, and does not report it", async () => {
    const failures: unknown[] = [];
    const { limiter, faults, available } = await scene({
      onSettlementFailed: (error) => failures.push(error),
    });
    const lease = await limiter.acquire(CALL);
    lease.settle({ tpm: 50 });
    faults.set("settle", Array<Fault>(4).fill("error-before"));
    await expect(lease.commit()).rejects.toThrow(RateLimiterUnavailable);
    expect(faults.get("settle")).toHaveLength(1);
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
    expect(failures).toEqual([]);
  });
});
