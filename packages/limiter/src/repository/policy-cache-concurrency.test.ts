import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { expect, it } from "vitest";
import type { ConfigKey } from "../core/bucket/policy.ts";
import { PolicyCache } from "./policy-cache.ts";
import type { StoredConfig } from "./store.ts";

interface PendingRead {
  readonly keys: readonly ConfigKey[];
  answer(rate: number): void;
  fail(error: Error): void;
}

/**
 * A cache over a store whose reads end when the test decides, with the given rate at the system
 * level.
 */
function slowCache(ttlMs = 60_000): {
  readonly cache: PolicyCache;
  readonly reads: PendingRead[];
  readonly clock: ManualClock;
} {
  const clock = new ManualClock();
  const reads: PendingRead[] = [];
  const read = (keys: readonly ConfigKey[]): Promise<readonly StoredConfig[]> =>
    new Promise((resolve, reject) => {
      const answer = (rate: number): void =>
        resolve(
          keys.map(({ level }) => ({
            limits: level === "system" ? [Limit.perMinute("rpm", rate)] : undefined,
          })),
        );
      reads.push({ keys, answer, fail: reject });
    });
  return { cache: new PolicyCache({ read, clock, ttlMs }), reads, clock };
}

const capacity = async (asked: ReturnType<PolicyCache["resolve"]>): Promise<number | undefined> =>
  (await asked)?.limits[0]?.capacity;

it("concurrent lookups of one key share one read [W-57]", async () => {
  const { cache, reads } = slowCache();
  const asked = [1, 2, 3].map(() => capacity(cache.resolve("key-1", "gpt-4")));
  expect(reads.length).toBe(1);
  reads[0]?.answer(5);
  expect(await Promise.all(asked)).toEqual([5, 5, 5]);
  expect(await capacity(cache.resolve("key-1", "gpt-4"))).toBe(5);
  expect(reads.length).toBe(1);
});

it("lookups of two entities read only what is not being read already [W-57]", async () => {
  const { cache, reads } = slowCache();
  const first = capacity(cache.resolve("key-1", "gpt-4"));
  const second = capacity(cache.resolve("key-2", "gpt-4"));
  expect(reads.map(({ keys }) => keys.length)).toEqual([4, 2]);
  reads[1]?.answer(5);
  reads[0]?.answer(5);
  expect(await Promise.all([first, second])).toEqual([5, 5]);
});

it("cached policies are returned while something else is being read [W-57]", async () => {
  const { cache, reads } = slowCache();
  const first = cache.resolve("key-1", "gpt-4");
  reads[0]?.answer(5);
  await first;
  const waiting = cache.resolve("key-2", "gpt-4");
  expect(cache.resolve("key-1", "gpt-4")).not.toBeInstanceOf(Promise);
  reads[1]?.answer(5);
  await waiting;
});

it("a read that was overtaken by a write does not fill the cache [W-57]", async () => {
  const { cache, reads } = slowCache();
  const before = capacity(cache.resolve("key-1", "gpt-4"));
  cache.evict({ level: "system" });
  const after = capacity(cache.resolve("key-1", "gpt-4"));
  expect(reads.length).toBe(2);
  reads[1]?.answer(6);
  reads[0]?.answer(5);
  await before;
  expect(await after).toBe(6);
  expect(await capacity(cache.resolve("key-1", "gpt-4"))).toBe(6);
});

it("the error of a failed read reaches everyone who waits for it, and is not cached", async () => {
  const { cache, reads } = slowCache();
  const asked = [cache.resolve("key-1", "gpt-4"), cache.resolve("key-1", "gpt-4")];
  reads[0]?.fail(new Error("throttled"));
  for (const { status } of await Promise.allSettled(asked)) expect(status).toBe("rejected");
  const again = capacity(cache.resolve("key-1", "gpt-4"));
  reads[1]?.answer(5);
  expect(await again).toBe(5);
});

it("caches a bounded number of levels", async () => {
  const cache = new PolicyCache({
    read: (keys) => keys.map(() => ({ limits: undefined })),
    clock: { now: () => 0 },
    ttlMs: 60_000,
  });
  for (let index = 0; index < 6000; index += 1) await cache.resolve(`key-${index}`, "gpt-4");
  expect(cache.stats().size).toBe(10_000);
});

it("without a time to live, every lookup reads, and nothing is cached", async () => {
  const { cache, reads } = slowCache(0);
  for (const rate of [5, 6]) {
    const asked = capacity(cache.resolve("key-1", "gpt-4"));
    reads.at(-1)?.answer(rate);
    expect(await asked).toBe(rate);
  }
  expect(cache.stats()).toEqual({ hits: 0, misses: 2, size: 0, ttlMs: 0 });
});
