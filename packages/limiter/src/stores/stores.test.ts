import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ValidationError } from "../core/errors.ts";
import { Limit } from "../core/limit.ts";
import { RateLimiter } from "../limiter/rate-limiter.ts";
import { MemoryRepository } from "../repository/memory/index.ts";
import { faultyRepository, ManualClock } from "../testing/index.ts";
import {
  expressRateLimitStore,
  fastifyRateLimitStore,
  nestThrottlerStorage,
  type HitStore,
} from "./index.ts";

const clock = new ManualClock();

function limiterOnMemory(): RateLimiter {
  return new RateLimiter({ repository: new MemoryRepository({ clock }) });
}

function store(limit: unknown, limiter = limiterOnMemory()): HitStore {
  const made = expressRateLimitStore({ limiter, resource: "web" });
  made.init({ windowMs: 60_000, limit });
  return made;
}

describe("options", () => {
  it.each([expressRateLimitStore, fastifyRateLimitStore, nestThrottlerStorage])(
    "%o throws for what is missing or wrong when it is made",
    (make) => {
      const limiter = limiterOnMemory();
      const wrong: readonly (readonly [object, RegExp])[] = [
        [{ resource: "web" }, /Invalid limiter: must be a RateLimiter/],
        [{ limiter: {}, resource: "web" }, /Invalid limiter: must be a RateLimiter/],
        [{ limiter }, /Invalid resource: must be a string/],
        [{ limiter, resource: "a b" }, /Invalid resource: must begin/],
        [{ limiter, resource: "web", limitName: "" }, /Invalid limitName: must not be empty/],
        [{ limiter, resource: "web", limit: 3 }, /did you mean limiter|is not an option of/],
      ];
      for (const [options, sentence] of wrong)
        expect(() => make(options as never)).toThrow(sentence);
    },
  );
});

describe("the count that a middleware gets", () => {
  it("what is granted never counts as more than the limit, even in debt", async () => {
    const limiter = limiterOnMemory();
    const one = store(3, limiter);
    const request = { entityId: "a", resource: "web", consume: { requests: 1 } };
    const limits = [
      { name: "requests", capacity: 3, refillAmount: 3, refillPeriodSeconds: 60 },
    ] as const;
    const lease = await limiter.acquire({ ...request, limits });
    lease.adjust({ requests: 5 });
    // The request is decided before the settlement, and its count is read after it.
    const [{ totalHits }] = await Promise.all([one.increment("a"), lease.commit()]);
    expect(totalHits).toBe(3);
    expect((await one.increment("a")).totalHits).toBe(4);
    expect((await one.get("a"))?.totalHits).toBe(4);
  });

  it("a look counts as the next request would: more than the limit if that would be refused", async () => {
    const repository = new MemoryRepository({ clock });
    await repository.createEntity("team");
    await repository.createEntity("a", { parentId: "team", cascade: true });
    await repository.setLimits("team", [Limit.perMinute("requests", 2)], { resource: "web" });
    const one = store(3, new RateLimiter({ repository }));
    expect(await one.get("a")).toBeUndefined();
    for (const hits of [1, 4]) {
      await one.increment("a");
      expect((await one.get("a"))?.totalHits).toBe(hits);
    }
    // The refused request and the look say when the next one fits: by the parent's limit.
    expect((await one.get("a"))!.resetTime.getTime() - Date.now()).toBeGreaterThan(29_000);
    const stored = store(() => 1000, new RateLimiter({ repository }));
    await repository.setLimits("b", [Limit.perMinute("requests", 1)], { resource: "web" });
    await stored.increment("b");
    expect((await stored.get("b"))?.totalHits).toBe(2 ** 31);
  });

  it("a limit of 0 refuses everything, and a look shows it", async () => {
    const none = store(0);
    expect(await none.increment("a")).toMatchObject({ totalHits: 1 });
    expect(await none.get("a")).toMatchObject({ totalHits: 1 });
  });

  it("a request that is let through without the store counts as one", async () => {
    const repository = faultyRepository(new MemoryRepository({ clock }), (operation) =>
      operation === "consume" ? "error-before" : undefined,
    );
    const one = store(3, new RateLimiter({ repository, onUnavailable: "allow" }));
    expect((await one.increment("a")).totalHits).toBe(1);
    expect((await one.increment("a")).totalHits).toBe(1);
  });

  it("a request is given back if its count is unknown, because the middleware fails it", async () => {
    const memory = new MemoryRepository({ clock });
    const repository = new Proxy(memory, {
      get(target, property) {
        if (property === "remembered") return () => Promise.reject(new Error("It is lost."));
        const member: unknown = Reflect.get(target, property, target);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    await expect(store(3, new RateLimiter({ repository })).increment("a")).rejects.toThrow(
      "It is lost.",
    );
    expect(await store(3, new RateLimiter({ repository: memory })).get("a")).toBeUndefined();
  });

  it("stored limits that refuse are more than any limit that a function returns", async () => {
    const repository = new MemoryRepository({ clock });
    await repository.setResourceDefaults("web", [
      { name: "requests", capacity: 1, refillAmount: 1, refillPeriodSeconds: 60 },
    ]);
    const one = store(() => 1000, new RateLimiter({ repository }));
    expect((await one.increment("a")).totalHits).toBe(1);
    expect((await one.increment("a")).totalHits).toBe(2 ** 31);
  });
});

describe("skipFailedRequests", () => {
  it("whatever fails, and whenever: requests that run or succeeded count, and nothing else", async () => {
    const step = fc.record({ begins: fc.boolean(), which: fc.nat(), fails: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const one = expressRateLimitStore({ limiter: limiterOnMemory(), resource: "web" });
        one.init({ windowMs: 86_400_000, limit: 3, skipFailedRequests: true });
        // A look at an empty bucket counts one more, as the next request would.
        const used = async (): Promise<number> => Math.min(3, (await one.get("a"))?.totalHits ?? 0);
        const running: { readonly isGranted: boolean }[] = [];
        let succeeded = 0;
        const end = async (which: number, fails: boolean): Promise<void> => {
          const [request] = running.splice(which % running.length, 1);
          // A refused request fails too: its status is 429.
          if (fails || !request!.isGranted) await one.decrement("a");
          else succeeded += 1;
        };
        for (const { begins, which, fails } of steps) {
          if (begins) running.push({ isGranted: (await one.increment("a")).totalHits <= 3 });
          else if (running.length > 0) await end(which, fails);
          const granted = running.filter(({ isGranted }) => isGranted).length;
          expect(await used()).toBeGreaterThanOrEqual(granted + succeeded);
          expect(granted + succeeded).toBeLessThanOrEqual(3);
        }
        while (running.length > 0) await end(0, true);
        expect(await used()).toBe(succeeded);
      }),
    );
  });
});

describe("keys", () => {
  it.each(["", "::1", "2001:db8::/56", "ä b", "x".repeat(5000), "enc:a"])(
    "%j has a count of its own",
    async (key) => {
      const one = store(3);
      expect((await one.increment(key)).totalHits).toBe(1);
      expect((await one.increment(`${key}.`)).totalHits).toBe(1);
      expect((await one.increment(key)).totalHits).toBe(2);
    },
  );

  it.each([undefined, null, {}])("%o is an error: all clients would share it", async (key) => {
    const one = store(3);
    await expect(one.increment(key as never)).rejects.toThrow(/Invalid key: must be a text, not/);
  });
});

describe("what cannot be kept", () => {
  it.each([
    [{ windowMs: 1500, limit: 1 }, /Invalid windowMs: must be whole seconds/],
    [{ windowMs: 0, limit: 1 }, /Invalid windowMs: must be whole seconds/],
    [{ windowMs: Infinity, limit: 1 }, /Invalid windowMs: must be whole seconds/],
    [{ windowMs: 60_000, limit: 1.5 }, /Invalid limit: must be a whole number/],
    [{ windowMs: 60_000, limit: -1 }, /Invalid limit: must be greater than 0/],
    [{ windowMs: 60_000, limit: undefined }, /Invalid limit: must be a number/],
  ])("init of %o throws, and so does each request", async (options, sentence) => {
    const one = expressRateLimitStore({ limiter: limiterOnMemory(), resource: "web" });
    expect(() => one.init(options as never)).toThrow(sentence);
    await expect(one.increment("a")).rejects.toThrow(sentence);
    await expect(one.get("a")).rejects.toThrow(ValidationError);
  });

  it("a store that no middleware has initialized has no limit", async () => {
    const one = expressRateLimitStore({ limiter: limiterOnMemory(), resource: "web" });
    await expect(one.increment("a")).rejects.toThrow(/has no limit yet/);
  });

  it("decrement without the options that hold leases, and resetKey", async () => {
    const one = store(3);
    await one.increment("a");
    await expect(one.decrement("a")).rejects.toThrow(/nothing is held that could be given back/);
    await expect(one.resetKey("a")).rejects.toThrow(/a bucket cannot be reset/);
    expect((await one.get("a"))?.totalHits).toBe(1);
  });
});
