/* What our stores do differently from the middlewares' own, on purpose; see the guide. */
import { ThrottlerStorageService } from "@nestjs/throttler";
import { MemoryStore } from "express-rate-limit";
import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { expressRateLimitStore, nestThrottlerStorage } from "zae-limiter/stores";
import { ManualClock } from "zae-limiter/testing";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { startFastify } from "../support/peer-servers.ts";

const WINDOW_MS = 60_000;

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

describe("what our stores do differently", () => {
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

  it("a window refills gradually, and no client gets two whole ones at its edge", async () => {
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
