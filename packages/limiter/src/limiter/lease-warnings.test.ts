import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Limit, RateLimiter, type AcquireRequest } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A request of a separate entity for each test, so that no test sees leases of another. */
let request: AcquireRequest;
let tests = 0;

const warnings: [string, string][] = [];
beforeEach(() => {
  tests += 1;
  const entityId = `key-${tests}`;
  request = { entityId, resource: "gpt-4", consume: { rpd: 1 } };
  vi.spyOn(process, "emitWarning").mockImplementation((message, options) => {
    if (String(message).includes(` of ${entityId} on gpt-4`))
      warnings.push([(options as { code: string }).code, String(message)]);
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  warnings.length = 0;
});

const codes = (): readonly string[] => warnings.map(([code]) => code);

async function newLimiter(): Promise<RateLimiter> {
  const repository = new MemoryRepository({ clock: new ManualClock(), recordUsage: false });
  await repository.setSystemDefaults([Limit.perDay("rpd", 1_000_000), Limit.perDay("tpd", 1000)]);
  return new RateLimiter({ repository });
}

/** Collects garbage until there is a warning, or for a few turns. */
async function collect(): Promise<void> {
  for (let turn = 0; turn < 20 && warnings.length === 0; turn += 1) {
    // Longer and longer, because garbage of other tests delays the callbacks.
    await new Promise((resolve) => setTimeout(resolve, turn));
    collectGarbage();
  }
}

describe("a settlement without usage", () => {
  it("warns once for each limiter, and names the limits", async () => {
    const limiter = await newLimiter();
    for (const total of [undefined, null!, undefined])
      await limiter.acquire(request, (lease) => lease.settle({ rpd: 1, tpd: total }));
    expect(codes()).toEqual(["WARN_LIMITER_USAGE_MISSING"]);
    expect(warnings[0]![1]).toContain("no total of tpd for a call");
    const other = await newLimiter();
    await other.acquire(request, (lease) => lease.settle({ rpd: undefined, tpd: undefined }));
    expect(warnings[1]![1]).toContain("no total of rpd and tpd");
  });

  it("warns also when another limit of the call is invalid", async () => {
    const limiter = await newLimiter();
    const settling = limiter.acquire(request, (lease) =>
      lease.settle({ tpd: undefined, tokens: 5 }),
    );
    await expect(settling).rejects.toThrow("no such limit");
    expect(codes()).toEqual(["WARN_LIMITER_USAGE_MISSING"]);
  });
});

describe("a lease that was never ended", () => {
  it("warns once when it is collected, for each form without a function", async () => {
    for (const forget of [
      async (limiter: RateLimiter) => void (await limiter.acquire(request)),
      async (limiter: RateLimiter) => void (await limiter.tryAcquire(request)),
    ]) {
      const limiter = await newLimiter();
      warnings.length = 0;
      for (let count = 0; count < 3; count += 1) await forget(limiter);
      await collect();
      expect(codes()).toEqual(["WARN_LIMITER_LEASE_NOT_ENDED"]);
      expect(warnings[0]![1]).not.toContain("acquired here");
    }
  });

  it("does not warn if it was granted without the store, and so took nothing", async () => {
    const broken = faultyRepository(new MemoryRepository(), (operation) =>
      operation === "consume" ? "error-before" : undefined,
    );
    const limiter = new RateLimiter({ repository: broken, onUnavailable: "allow" });
    await (async () => expect((await limiter.acquire(request)).degraded).toBe(true))();
    await collect();
    expect(codes()).toEqual([]);
  });

  it("is found by a sample after the first ones", async () => {
    const limiter = await newLimiter();
    for (let count = 0; count < 100; count += 1) await (await limiter.acquire(request)).commit();
    for (let count = 0; count < 128; count += 1) await limiter.acquire(request);
    await collect();
    expect(codes()).toEqual(["WARN_LIMITER_LEASE_NOT_ENDED"]);
    const registered = vi.spyOn(FinalizationRegistry.prototype, "register");
    for (let count = 0; count < 128; count += 1) await limiter.acquire(request);
    expect(registered, "none is watched after the warning").not.toHaveBeenCalled();
  });

  it("is watched for each of the first hundred, and then for one of 128", async () => {
    const registered = vi.spyOn(FinalizationRegistry.prototype, "register");
    const limiter = await newLimiter();
    const acquire = async (count: number): Promise<number> => {
      registered.mockClear();
      for (let index = 0; index < count; index += 1) await limiter.acquire(request);
      return registered.mock.calls.length;
    };
    expect([await acquire(100), await acquire(1280)]).toEqual([100, 10]);
  });

  it("says where it was acquired, if NODE_DEBUG names the library", async () => {
    vi.stubEnv("NODE_DEBUG", "net,Zae-Limiter");
    const limiter = await newLimiter();
    await (async function forgetful() {
      await limiter.acquire(request);
    })();
    await collect();
    expect(warnings[0]![1]).toMatch(/The lease was acquired here:\n +at (?:async )?forgetful/);
  });

  it("does not warn once it has ended", async () => {
    const limiter = await newLimiter();
    for (let count = 0; count < 20; count += 1) {
      await (await limiter.acquire(request)).commit();
      await (await limiter.acquire(request)).rollback();
      await (await limiter.acquire(request))[Symbol.asyncDispose]();
    }
    await collect();
    expect(warnings).toEqual([]);
  });

  it("costs nothing in the form with a function", async () => {
    const limiter = await newLimiter();
    const registered = vi.spyOn(FinalizationRegistry.prototype, "register");
    for (let count = 0; count < 200; count += 1) await limiter.acquire(request, () => {});
    expect(registered).not.toHaveBeenCalled();
  });

  it("does without FinalizationRegistry and process, as some runtimes do", async () => {
    vi.stubGlobal("FinalizationRegistry", undefined);
    vi.stubGlobal("process", undefined);
    const warned = vi.spyOn(console, "warn").mockReturnValue();
    const limiter = await newLimiter();
    const lease = await limiter.acquire(request);
    lease.settle({ tpd: undefined });
    await lease.commit();
    expect(warned).toHaveBeenCalledTimes(1);
  });
});
