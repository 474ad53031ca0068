/*
 * What the middlewares' own tests ask of a store, asked of theirs and of ours: those that
 * express-rate-limit and hono-rate-limiter have for memory stores, @nestjs/throttler for its
 * storage, and @fastify/rate-limit for looks. What ours does differently stands at the end, and in
 * the guide.
 */
import { ThrottlerStorageService, type ThrottlerStorage } from "@nestjs/throttler";
import { MemoryStore } from "express-rate-limit";
import { MemoryStore as MemoryStore7 } from "express-rate-limit-7";
import { MemoryStore as HonoMemoryStore } from "hono-rate-limiter";
import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { expressRateLimitStore, nestThrottlerStorage } from "zae-limiter/stores";
import { ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { startFastify } from "../support/peer-servers.ts";

const WINDOW_MS = 60_000;
const INIT = { windowMs: WINDOW_MS, limit: 5, skipFailedRequests: true };

const clock = new ManualClock();

function newLimiter(): RateLimiter {
  return new RateLimiter({ repository: new MemoryRepository({ clock }) });
}

async function pass(ms: number): Promise<void> {
  await clock.advance(ms);
  vi.setSystemTime(Date.now() + ms);
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

/** What the stores of express-rate-limit and hono-rate-limiter have in common. */
interface CountingStore {
  init(options: never): void;
  get(key: string): Counted | undefined | Promise<Counted | undefined>;
  increment(key: string): Counted | Promise<Counted>;
  decrement(key: string): unknown;
  shutdown(): unknown;
}

interface Counted {
  readonly totalHits: number;
  readonly resetTime?: Date | undefined;
}

describe.each<readonly [string, () => CountingStore]>([
  ["express-rate-limit 7's own", () => new MemoryStore7()],
  ["express-rate-limit 8's own", () => new MemoryStore()],
  ["hono-rate-limiter's own", () => new HonoMemoryStore()],
  ["ours", () => expressRateLimitStore({ limiter: newLimiter(), resource: "web" })],
])("a store of express-rate-limit and hono-rate-limiter: %s", (_name, make) => {
  function begin(): CountingStore {
    const store = make();
    store.init(INIT as never);
    onTestFinished(() => void store.shutdown());
    return store;
  }

  it("counts from 1", async () => {
    const store = begin();
    for (const hits of [1, 2, 3]) expect((await store.increment("a")).totalHits).toBe(hits);
  });

  it("shows hits and the time of the reset, without counting", async () => {
    const store = begin();
    expect(await store.get("a")).toBeUndefined();
    await store.increment("a");
    for (let look = 0; look < 3; look += 1) {
      const shown = await store.get("a");
      expect(shown?.totalHits).toBe(1);
      expect(shown?.resetTime?.getTime()).toBeGreaterThan(Date.now());
    }
  });

  it("takes one hit off for a decrement, and never goes below 0", async () => {
    const store = begin();
    await store.increment("a");
    await store.increment("a");
    await store.decrement("a");
    expect((await store.increment("a")).totalHits).toBe(2);
    for (let times = 0; times < 5; times += 1) await store.decrement("a");
    expect((await store.get("a"))?.totalHits ?? 0).toBe(0);
    expect((await store.increment("a")).totalHits).toBe(1);
  });

  it("a decrement of an unknown key changes nothing", async () => {
    const store = begin();
    await store.decrement("a");
    expect((await store.increment("a")).totalHits).toBe(1);
  });

  it("counts from 1 again after a window, each key apart", async () => {
    const store = begin();
    for (let window = 0; window < 3; window += 1) {
      for (let hits = 1; hits <= 5; hits += 1)
        expect((await store.increment("a")).totalHits).toBe(hits);
      expect((await store.increment("a")).totalHits).toBeGreaterThan(5);
      expect((await store.increment("b")).totalHits).toBe(1);
      await pass(WINDOW_MS);
    }
  });
});

describe.each<readonly [string, () => ThrottlerStorage]>([
  ["its own", () => new ThrottlerStorageService()],
  ["ours", () => nestThrottlerStorage({ limiter: newLimiter(), resource: "api" })],
])("a storage of @nestjs/throttler: %s", (_name, make) => {
  it("counts, and says when it has forgotten", async () => {
    expect(await make().increment("a", 1000, 1, 0, "default")).toMatchObject({
      totalHits: 1,
      timeToExpire: 1,
      isBlocked: false,
    });
  });

  it("says how long a refused request has to wait", async () => {
    const storage = make();
    for (const isBlocked of [false, true, true])
      expect(await storage.increment("a", 1000, 1, 1000, "default")).toMatchObject({
        isBlocked,
        totalHits: isBlocked ? 2 : 1,
        ...(isBlocked && { timeToBlockExpire: 1 }),
      });
  });

  it("a key that is refused does not disturb another", async () => {
    const storage = make();
    const hit = async (key: string): Promise<boolean> =>
      (await storage.increment(key, 1000, 3, 1000, "default")).isBlocked;
    for (let round = 0; round < 10; round += 1) {
      expect(await hit("patient")).toBe(false);
      await hit("eager");
      await hit("eager");
      await pass(500);
    }
  });
});

describe.each(["its own", "ours"])("a look of @fastify/rate-limit: %s", (name) => {
  it("takes nothing, sees what was taken, and that it was forgotten after the window", async () => {
    const limiter = name === "ours" ? newLimiter() : undefined;
    await using server = await startFastify({ limiter, limit: 2, windowMs: WINDOW_MS, mode: {} });
    const looked = async (): Promise<number> => (await server.look!("a")).remaining;
    expect(await looked()).toBe(2);
    await server.request("a");
    expect([await looked(), await looked()]).toEqual([1, 1]);
    for (let times = 0; times < 2; times += 1) await server.request("a");
    expect(await server.look!("a")).toMatchObject({ remaining: 0, isExceeded: true });
    await pass(WINDOW_MS);
    expect(await server.look!("a")).toMatchObject({ remaining: 2, isExceeded: false, ttl: 0 });
  });
});

describe("what is different on purpose", () => {
  it("resetKey of express-rate-limit and hono-rate-limiter rejects", async () => {
    const store = expressRateLimitStore({ limiter: newLimiter(), resource: "web" });
    store.init(INIT);
    await store.increment("a");
    await expect(store.resetKey("a")).rejects.toThrow(/a bucket cannot be reset/);
    expect((await store.increment("a")).totalHits).toBe(2);
  });

  it("a client that keeps trying gets what refills meanwhile", async () => {
    const own = new MemoryStore();
    const ours = expressRateLimitStore({ limiter: newLimiter(), resource: "web" });
    onTestFinished(() => own.shutdown());
    for (const [store, isGranted] of [
      [own, false],
      [ours, true],
    ] as const) {
      store.init({ windowMs: WINDOW_MS, limit: 5 } as never);
      for (let request = 0; request < 10; request += 1) await store.increment("a");
      await pass(WINDOW_MS / 5);
      expect((await store.increment("a")).totalHits <= 5).toBe(isGranted);
    }
  });

  it("a window refills by and by, and a whole one is never had twice", async () => {
    const own = new MemoryStore();
    const ours = expressRateLimitStore({ limiter: newLimiter(), resource: "web" });
    onTestFinished(() => own.shutdown());
    for (const [store, granted] of [
      [own, 10],
      [ours, 6],
    ] as const) {
      store.init({ windowMs: WINDOW_MS, limit: 5 } as never);
      await store.increment("a");
      await pass(WINDOW_MS - 1);
      let count = 1;
      for (let request = 0; request < 4; request += 1)
        count += (await store.increment("a")).totalHits <= 5 ? 1 : 0;
      await pass(1);
      for (let request = 0; request < 5; request += 1)
        count += (await store.increment("a")).totalHits <= 5 ? 1 : 0;
      expect(count).toBe(granted);
    }
  });

  it("a block of @nestjs/throttler that is shorter than the ttl forgets nothing", async () => {
    const own = new ThrottlerStorageService();
    const ours = nestThrottlerStorage({ limiter: newLimiter(), resource: "api" });
    onTestFinished(() => own.onApplicationShutdown());
    for (const [storage, totalHits] of [
      [own, 1],
      [ours, 2],
    ] as const) {
      const hit = () => storage.increment("a", 10_000, 2, 5000, "default");
      for (const isBlocked of [false, false, true]) expect((await hit()).isBlocked).toBe(isBlocked);
      await pass(5000);
      expect(await hit()).toMatchObject({ isBlocked: false, totalHits });
    }
  });

  it("a look of @fastify/rate-limit shows an empty bucket as exceeded", async () => {
    for (const limiter of [undefined, newLimiter()]) {
      await using server = await startFastify({ limiter, limit: 1, windowMs: WINDOW_MS, mode: {} });
      await server.request("a");
      expect(await server.look!("a")).toMatchObject({
        remaining: 0,
        isExceeded: limiter !== undefined,
      });
    }
  });
});
