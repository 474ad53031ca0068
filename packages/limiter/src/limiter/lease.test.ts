import {
  LeaseExpiredError,
  Limit,
  PermissionDenied,
  RateLimiter,
  RateLimiterUnavailable,
  RateLimitExceeded,
  ValidationError,
  type Amounts,
  type Lease,
  type RateLimiterOptions,
  type Repository,
} from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock, type Fault } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";

const CALL = { entityId: "e", resource: "r", consume: { rpm: 1, tpm: 100 } };

interface Scene {
  readonly clock: ManualClock;
  readonly repository: MemoryRepository;
  readonly limiter: RateLimiter;
  readonly failures: [RateLimiterUnavailable, Lease][];
  /** The fault of each operation of the store, if any. */
  readonly faults: Map<string, Fault[]>;
  readonly available: (resource?: string) => Promise<Record<string, number>>;
}

async function scene(
  options: Partial<RateLimiterOptions> = {},
  wrap = (repository: Repository): Repository => repository,
): Promise<Scene> {
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock });
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)]);
  const faults = new Map<string, Fault[]>();
  const failures: [RateLimiterUnavailable, Lease][] = [];
  const limiter = new RateLimiter({
    repository: wrap(faultyRepository(repository, (operation) => faults.get(operation)?.shift())),
    onSettlementFailed: (...failure) => failures.push(failure),
    ...options,
  });
  const reader = new RateLimiter({ repository });
  return {
    clock,
    repository,
    limiter,
    failures,
    faults,
    available: (resource = "r") => reader.available("e", resource),
  };
}

describe("the life of a lease", () => {
  it("writes differences once, at commit, and may go into debt", async () => {
    const { limiter, repository, available } = await scene();
    const lease = await limiter.acquire(CALL);
    lease.adjust({ tpm: 50 });
    lease.release({ rpm: 1 });
    lease.settle({ tpm: 1500 });
    lease.adjust({ tpm: 1 });
    expect(lease.consumed).toEqual({ rpm: 0, tpm: 1501 });
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
    const { writes } = repository.getStatistics();
    await lease.commit();
    expect(repository.getStatistics().writes).toBe(writes + 1);
    expect(await available()).toEqual({ rpm: 10, tpm: -501 });
  });

  it("writes nothing when the estimate was right", async () => {
    const { limiter, repository } = await scene();
    const lease = await limiter.acquire(CALL);
    lease.settle({ tpm: 100 });
    lease.adjust({ rpm: 3 });
    lease.release({ rpm: 3 });
    const { writes } = repository.getStatistics();
    await lease.commit();
    expect(repository.getStatistics().writes).toBe(writes);
  });

  it("gives everything back on rollback, whatever was adjusted", async () => {
    const { limiter, available } = await scene();
    const lease = await limiter.acquire(CALL);
    await lease.consume({ tpm: 200 });
    lease.settle({ tpm: 900 });
    expect(await available()).toEqual({ rpm: 9, tpm: 700 });
    await lease.rollback();
    expect(await available()).toEqual({ rpm: 10, tpm: 1000 });
  });

  it("rejects a second commit, and does not throw it", async () => {
    const { limiter } = await scene();
    const lease = await limiter.acquire(CALL);
    await lease.commit();
    const second = lease.commit();
    await expect(second).rejects.toThrow(LeaseExpiredError);
  });

  it.each(["commit", "rollback"] as const)(
    "throws from every member after %s, and disposing does nothing",
    async (end) => {
      const { limiter, available } = await scene();
      const lease = await limiter.acquire(CALL);
      await lease[end]();
      const before = await available();
      const uses = [
        () => lease.consumed,
        () => lease.resources,
        () => lease.resourceLease("r"),
        () => lease.adjust({ rpm: 1 }),
        () => lease.release({ rpm: 1 }),
        () => lease.settle({ rpm: 1 }),
      ];
      for (const use of uses) expect(use).toThrow(LeaseExpiredError);
      for (const use of [lease.consume({ rpm: 1 }), lease.commit(), lease.rollback()])
        await expect(use).rejects.toThrow(LeaseExpiredError);
      await lease[Symbol.asyncDispose]();
      expect(await available()).toEqual(before);
    },
  );

  it("rolls back at the end of the block unless it was committed", async () => {
    const { limiter, available } = await scene();
    const leave = await limiter.acquire(CALL);
    await leave[Symbol.asyncDispose]();
    expect(await available()).toEqual({ rpm: 10, tpm: 1000 });
  });

  it("commits when the work returns, and gives back and rethrows when it throws", async () => {
    const { limiter, available } = await scene();
    expect(await limiter.acquire(CALL, () => 42)).toBe(42);
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
    const fault = new Error("work failed");
    await expect(limiter.acquire(CALL, () => Promise.reject(fault))).rejects.toBe(fault);
    await expect(
      limiter.acquire(CALL, () => {
        throw fault;
      }),
    ).rejects.toBe(fault);
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
  });

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
});

describe("bad differences", () => {
  it.each<[string, (lease: Lease) => unknown]>([
    ["more released than consumed", (lease) => lease.release({ tpm: 101 })],
    ["a negative total", (lease) => lease.adjust({ tpm: -101 })],
    ["a negative settlement", (lease) => lease.settle({ tpm: -1 })],
    ["a fraction", (lease) => lease.adjust({ tpm: 0.5 })],
    ["a text", (lease) => lease.settle({ tpm: "5" } as unknown as Amounts)],
    ["an unknown limit", (lease) => lease.adjust({ nope: 1 })],
    ["an unknown limit to release", (lease) => lease.release({ nope: 0 })],
    ["an unknown limit to settle", (lease) => lease.settle({ nope: 1 })],
    ["an unknown resource", (lease) => lease.resourceLease("nope")],
    ["a total that cannot be counted", (lease) => lease.adjust({ tpm: 9_007_199_254_740 })],
  ])("%s is refused, and changes nothing", async (_, use) => {
    const { limiter, available } = await scene();
    const lease = await limiter.acquire(CALL);
    expect(() => use(lease)).toThrow(ValidationError);
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 100 });
    await lease.commit();
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
  });

  it("on two limits change neither if one is bad", async () => {
    const { limiter } = await scene();
    const lease = await limiter.acquire(CALL);
    expect(() => lease.release({ rpm: 1, tpm: 101 })).toThrow(ValidationError);
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 100 });
  });
});

describe("taking more", () => {
  it("throws and takes nothing if it does not fit", async () => {
    const { limiter, available } = await scene();
    const lease = await limiter.acquire(CALL);
    await expect(lease.consume({ rpm: 1, tpm: 901 })).rejects.toThrow(RateLimitExceeded);
    await expect(lease.consume({ nope: 1 })).rejects.toThrow(ValidationError);
    await expect(lease.consume({ tpm: -1 })).rejects.toThrow(ValidationError);
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 100 });
  });

  it("is decided with the limits that the call brought along", async () => {
    const { limiter, repository } = await scene();
    await repository.deleteSystemDefaults();
    const lease = await limiter.acquire({
      ...CALL,
      consume: { own: 1 },
      limits: [Limit.perMinute("own", 3)],
    });
    await lease.consume({ own: 2 });
    await expect(lease.consume({ own: 1 })).rejects.toThrow(RateLimitExceeded);
    expect(lease.consumed).toEqual({ own: 3 });
  });

  it("counts every one of several that run at once, and as one request", async () => {
    const { limiter, repository, available } = await scene();
    const lease = await limiter.acquire(CALL);
    const takes = await Promise.allSettled(
      Array.from({ length: 12 }, () => lease.consume({ tpm: 100 })),
    );
    expect(takes.filter(({ status }) => status === "fulfilled")).toHaveLength(9);
    expect(lease.consumed).toEqual({ rpm: 1, tpm: 1000 });
    await lease.commit();
    expect(await available()).toEqual({ rpm: 9, tpm: 0 });
    const { items } = await repository.getUsageSnapshots({ entityId: "e" });
    expect(items).toMatchObject([{ requests: 1, counters: { rpm: 1, tpm: 1000 } }]);
  });

  it.each(["commit", "rollback"] as const)(
    "is awaited by a %s that comes while it is in progress",
    async (end) => {
      const { clock, limiter, faults, available } = await scene();
      const lease = await limiter.acquire(CALL);
      faults.set("consume", [{ delayMs: 50 }]);
      const taking = lease.consume({ tpm: 200 });
      const ending = lease[end]();
      await clock.advance(50);
      await Promise.all([taking, ending]);
      // 50 ms earn 833 millitokens of 1000 a minute: 700.833 is 700.
      expect(await available()).toEqual(
        end === "commit" ? { rpm: 9, tpm: 700 } : { rpm: 10, tpm: 1000 },
      );
    },
  );

  it("is part of a total that is settled while it is in progress", async () => {
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

describe("several resources", () => {
  it("each have a part of the lease, and end together", async () => {
    const { limiter, available } = await scene();
    const lease = await limiter.acquire({ ...CALL, also: { s: { rpm: 2 } } });
    expect(lease.resources).toEqual(["r", "s"]);
    expect(lease.resourceLease("r").consumed).toEqual(lease.consumed);
    const part = lease.resourceLease("s");
    part.settle({ tpm: 7 });
    await part.consume({ rpm: 1 });
    expect(part.consumed).toEqual({ rpm: 3, tpm: 7 });
    await lease.commit();
    expect([await available("r"), await available("s")]).toEqual([
      { rpm: 9, tpm: 900 },
      { rpm: 7, tpm: 993 },
    ]);
    expect(() => part.consumed).toThrow(LeaseExpiredError);
  });
});

describe("a store that fails", () => {
  it("lets a degraded lease through if it may, and writes nothing later", async () => {
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

  it.each(["settle", "giveBack"])(
    "is asked again for %s, and a lost response does not count twice",
    async (operation) => {
      const { limiter, faults, available } = await scene();
      const lease = await limiter.acquire(CALL);
      lease.settle({ tpm: 300 });
      faults.set(operation, ["error-before", "error-after"]);
      await (operation === "settle" ? lease.commit() : lease.rollback());
      expect(await available()).toEqual(
        operation === "settle" ? { rpm: 9, tpm: 700 } : { rpm: 10, tpm: 1000 },
      );
    },
  );

  it("rejects a commit after three attempts, refunds nothing, and reports it once", async () => {
    const { limiter, faults, available, failures } = await scene();
    const lease = await limiter.acquire(CALL);
    lease.settle({ tpm: 50 });
    faults.set("settle", Array<Fault>(4).fill("error-before"));
    await expect(lease.commit()).rejects.toThrow(RateLimiterUnavailable);
    expect(faults.get("settle")).toHaveLength(1);
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
    expect(failures).toEqual([]);
  });

  it("returns the result of work whose settlement failed, and reports the failure", async () => {
    const { limiter, faults, failures, available } = await scene();
    faults.set("settle", Array<Fault>(3).fill("error-before"));
    const result = await limiter.acquire(CALL, (lease) => (lease.settle({ tpm: 900 }), "result"));
    expect(result).toBe("result");
    expect(failures).toMatchObject([
      [{ code: "ERR_LIMITER_UNAVAILABLE" }, { entityId: "e", resource: "r" }],
    ]);
    expect(await available()).toEqual({ rpm: 9, tpm: 900 });
  });

  it("never hides the error of the work, whatever happens to the rollback", async () => {
    const denied = new PermissionDenied("no rights to write");
    const { limiter, faults, failures } = await scene(
      {},
      (repository) =>
        new Proxy(repository, {
          get: (target, property) =>
            property === "giveBack"
              ? () => Promise.reject(denied)
              : Reflect.get(target, property, target),
        }),
    );
    const fault = new Error("work failed");
    await expect(limiter.acquire(CALL, () => Promise.reject(fault))).rejects.toBe(fault);
    expect(failures).toMatchObject([
      [{ code: "ERR_LIMITER_UNAVAILABLE", cause: denied }, { entityId: "e" }],
    ]);
    const other = await scene();
    other.faults.set("giveBack", Array<Fault>(3).fill("error-before"));
    await expect(other.limiter.acquire(CALL, () => Promise.reject(fault))).rejects.toBe(fault);
    expect(other.failures).toHaveLength(1);
    expect(faults.size).toBe(0);
  });

  it("blocks by default, unless the stored option, the limiter's or the call's says otherwise", async () => {
    const { limiter, repository, faults } = await scene();
    const acquire = (options = {}): Promise<boolean> => {
      faults.set("consume", ["error-before"]);
      return limiter.acquire({ ...CALL, ...options }).then(({ degraded }) => degraded);
    };
    await expect(acquire()).rejects.toThrow(RateLimiterUnavailable);
    await repository.setSystemDefaults([Limit.perMinute("rpm", 10)], { onUnavailable: "allow" });
    expect(await acquire()).toBe(true);
    await expect(acquire({ onUnavailable: "block" })).rejects.toThrow(/entity=e, resource=r/);
  });

  it("never lets a call through on denied access or a bug", async () => {
    for (const error of [new PermissionDenied("no"), new TypeError("bug")]) {
      const { limiter } = await scene(
        { onUnavailable: "allow" },
        (repository) =>
          new Proxy(repository, {
            get: (target, property) =>
              property === "consume"
                ? () => Promise.reject(error)
                : Reflect.get(target, property, target),
          }),
      );
      await expect(limiter.acquire(CALL)).rejects.toBe(error);
    }
  });
});
