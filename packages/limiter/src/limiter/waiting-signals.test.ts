import { Limit, RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { afterEach, describe, expect, it, vi } from "vitest";

const CALLS = 50_000;
/** 50 000 calls take about two seconds on an idle machine. */
const MINUTE = { timeout: 60_000 };

const warnings: Error[] = [];
const onWarning = (warning: Error): void => {
  // These have a code: leases that these tests leave open.
  if (!("code" in warning)) warnings.push(warning);
};
afterEach(() => {
  process.off("warning", onWarning);
  warnings.length = 0;
});

/** Counts how many listeners were added to a signal, and how many were removed. */
function counting(signal: AbortSignal): () => { added: number; removed: number } {
  const added = vi.spyOn(signal, "addEventListener");
  const removed = vi.spyOn(signal, "removeEventListener");
  return () => ({ added: added.mock.calls.length, removed: removed.mock.calls.length });
}

interface Scene {
  readonly clock: ManualClock;
  readonly repository: MemoryRepository;
  readonly limiter: RateLimiter;
  readonly wait: (entityId: string, signal?: AbortSignal) => Promise<unknown>;
}

async function scene(): Promise<Scene> {
  process.on("warning", onWarning);
  const clock = new ManualClock();
  const repository = new MemoryRepository({ clock, recordUsage: false });
  await repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  const limiter = new RateLimiter({ repository });
  const wait: Scene["wait"] = (entityId, signal) =>
    limiter
      .acquire({
        entityId,
        resource: "r",
        consume: { rps: 10 },
        waitUpToMs: Infinity,
        ...(signal && { signal }),
      })
      .catch((error: unknown) => error);
  await wait("e");
  return { clock, repository, limiter, wait };
}

describe("one signal for many waiting calls", () => {
  it("gets one listener, which the last call removes, and ends all of them", MINUTE, async () => {
    const { clock, wait } = await scene();
    const abort = new AbortController();
    const counts = counting(abort.signal);
    const calls = Array.from({ length: CALLS }, () => wait("e", abort.signal));
    await clock.advance(0);
    expect(counts()).toEqual({ added: 1, removed: 0 });
    abort.abort("shutdown");
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["shutdown"]));
    expect(counts()).toEqual({ added: 1, removed: 1 });
    expect(warnings).toEqual([]);
  });

  it("keeps its listener while one call waits, and gets a new one for later calls", async () => {
    const { clock, limiter, wait } = await scene();
    const abort = new AbortController();
    const counts = counting(abort.signal);
    const first = wait("e", abort.signal);
    const second = wait("e", abort.signal);
    await clock.advance(1000);
    await first;
    expect(counts()).toEqual({ added: 1, removed: 0 });
    await clock.advance(1000);
    await second;
    expect(counts()).toEqual({ added: 1, removed: 1 });
    const third = wait("e", abort.signal);
    await clock.advance(0);
    expect(counts()).toEqual({ added: 2, removed: 1 });
    abort.abort("enough");
    expect(await third).toBe("enough");
    await limiter.close();
  });

  it("does not end calls of other signals, or without one", async () => {
    const { clock, limiter, wait } = await scene();
    const abort = new AbortController();
    const aborted = wait("e", abort.signal);
    const others = [wait("e", new AbortController().signal), wait("e")];
    await clock.advance(0);
    abort.abort("enough");
    expect(await aborted).toBe("enough");
    await clock.advance(0);
    await limiter.close();
    for (const error of await Promise.all(others))
      expect(error).toBeInstanceOf(RateLimiterUnavailable);
  });
});

describe("closing the repository", () => {
  it("ends waiting calls of all its limiters and of repositories made from it, without a warning", async () => {
    const { clock, repository, limiter, wait } = await scene();
    await repository.registerNamespace("tenant");
    const tenant = await repository.namespace("tenant");
    await tenant.setSystemDefaults([Limit.perSecond("rps", 10)]);
    const limiters = Array.from(
      { length: 20 },
      (_, index) => new RateLimiter({ repository: index % 2 === 0 ? repository : tenant }),
    );
    const request = { resource: "r", consume: { rps: 10 } };
    const waiting = limiters.map(async (one, index) => {
      const entityId = `e-${index}`;
      await one.acquire({ ...request, entityId });
      return one
        .acquire({ ...request, entityId, waitUpToMs: Infinity })
        .catch((error: unknown) => error);
    });
    const more = [wait("e"), wait("e")];
    await clock.advance(0);
    await tenant.close();
    await clock.advance(0);
    expect((await limiter.tryAcquire({ ...request, entityId: "f" })).granted).toBe(true);
    await repository.close();
    const errors = await Promise.all([...waiting, ...more]);
    expect(new Set(errors)).toEqual(new Set([repository.closed.reason]));
    expect(repository.closed.reason).toBeInstanceOf(RateLimiterUnavailable);
    expect(warnings).toEqual([]);
  });

  it("ends a call that is just reading its limits, even if it may be granted without the store", async () => {
    const { clock, repository, wait } = await scene();
    const slow = faultyRepository(repository, (operation) =>
      operation === "read" ? { delayMs: 10 } : undefined,
    );
    const limiter = new RateLimiter({ repository: slow, onUnavailable: "allow" });
    const request = { entityId: "e", resource: "r", consume: { rps: 10 }, waitUpToMs: Infinity };
    const calls = [limiter.acquire(request), limiter.acquire(request)].map((call) =>
      call.catch((error: unknown) => error),
    );
    await clock.advance(5);
    await repository.close();
    await clock.advance(5);
    const { reason } = repository.closed;
    expect(await Promise.all(calls)).toEqual([reason, reason]);
    expect(await wait("e")).toBeInstanceOf(RateLimiterUnavailable);
  });

  it("leaves no listener on a repository when no call waits", async () => {
    const { clock, repository, limiter, wait } = await scene();
    const counts = counting(repository.closed);
    const calls = [wait("e"), wait("e"), wait("f")];
    await clock.advance(0);
    expect(counts()).toEqual({ added: 1, removed: 0 });
    await clock.advance(3000);
    await Promise.all(calls);
    const { added, removed } = counts();
    expect(removed).toBe(added);
    await limiter.close();
  });
});
