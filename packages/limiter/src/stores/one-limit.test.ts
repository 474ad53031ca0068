import { describe, expect, it } from "vitest";
import { ValidationError } from "../core/errors.ts";
import { Limit } from "../core/limit.ts";
import { RateLimiter } from "../limiter/rate-limiter.ts";
import { MemoryRepository } from "../repository/memory/index.ts";
import { ManualClock } from "../testing/index.ts";
import {
  expressRateLimitStore,
  fastifyRateLimitStore,
  nestThrottlerStorage,
  type FastifyHitStore,
  type HitStore,
  type StoreOptions,
} from "./index.ts";

const MINUTE = 60_000;

function onMemory(repository = newMemory()): RateLimiter {
  return new RateLimiter({ repository });
}

function newMemory(): MemoryRepository {
  return new MemoryRepository({ clock: new ManualClock() });
}

function begin(
  limiter: RateLimiter,
  limit: unknown,
  options: Partial<StoreOptions> & { readonly windowMs?: number } = {},
): HitStore {
  const { windowMs = MINUTE, ...others } = options;
  const store = expressRateLimitStore({ limiter, resource: "web", ...others });
  store.init({ windowMs, limit });
  return store;
}

function registered(limiter: RateLimiter, max: unknown): FastifyHitStore {
  const Store = fastifyRateLimitStore({ limiter, resource: "web" });
  return new Store({ max, timeWindow: MINUTE });
}

function increment(store: FastifyHitStore, max: number, key = "a"): Promise<number> {
  return new Promise((resolve, reject) => {
    store.incr(key, (error, hits) => (error ? reject(error) : resolve(hits!.current)), MINUTE, max);
  });
}

async function listResources(repository: MemoryRepository, key = "a"): Promise<readonly string[]> {
  return (await repository.getBuckets(key)).map(({ resource }) => resource).sort();
}

describe("where requests are counted", () => {
  it("express-rate-limit: in the resource, where usage, a parent's limits and `available` are", async () => {
    const repository = newMemory();
    await repository.createEntity("team");
    await repository.createEntity("a", { parentId: "team", cascade: true });
    await repository.setLimits("team", [Limit.perMinute("requests", 2)], { resource: "web" });
    const limiter = onMemory(repository);
    const store = begin(limiter, 3);
    for (const hits of [1, 2, 4]) expect((await store.increment("a")).totalHits).toBe(hits);
    expect(await listResources(repository)).toEqual(["web"]);
    const limits = [Limit.perMinute("requests", 3)];
    expect(await limiter.available("a", "web", { limits })).toEqual({ requests: 0 });
    const { total } = await repository.getUsageSummary({ entityId: "a", resource: "web" });
    expect(total).toEqual({ requests: 2 });
  });

  it("@fastify/rate-limit: in the resource, its routes, its groups, and by hand", async () => {
    const repository = newMemory();
    const plugin = registered(onMemory(repository), 9);
    const routeInfo = { method: "POST", url: "/login" };
    const options = { max: 5, timeWindow: MINUTE };
    await increment(plugin, 9);
    await increment(plugin.child({ ...options, routeInfo }), 5);
    await increment(plugin.child({ ...options, routeInfo, groupId: "OTP" }), 5);
    await increment(plugin.child({ ...options, routeInfo: {} }), 5);
    await increment(plugin.child({ ...options, max: 6, routeInfo: {} }), 6);
    expect(await listResources(repository)).toEqual([
      "web",
      "web:POST/login",
      "web:by-hand:5/60s",
      "web:by-hand:6/60s",
      "web:group:OTP",
    ]);
  });

  it("@nestjs/throttler: in the resource, and in that of a throttler with a name", async () => {
    const repository = newMemory();
    const storage = nestThrottlerStorage({ limiter: onMemory(repository), resource: "api" });
    const long = "a throttler with a long name of many words, more than a resource may have";
    for (const name of ["default", "short", long, `${long}.`])
      expect(await storage.increment("a", MINUTE, 3, MINUTE, name)).toMatchObject({ totalHits: 1 });
    expect(await listResources(repository)).toEqual([
      "api",
      expect.stringMatching(/^api-[\da-f]{32}$/),
      expect.stringMatching(/^api-[\da-f]{32}$/),
      "api:short",
    ]);
  });
});

describe("another limit, as of a deployment", () => {
  it("carries the bucket over: nothing is minted, and the rest of it refills", async () => {
    const repository = newMemory();
    const old = begin(onMemory(repository), 100);
    for (let request = 0; request < 30; request += 1) await old.increment("a");
    const deployed = begin(onMemory(repository), 120);
    // 70 are left, as before, and one is taken.
    expect((await deployed.increment("a")).totalHits).toBe(120 - 69);
    expect((await old.increment("a")).totalHits).toBe(100 - 68);
    const smaller = begin(onMemory(repository), 10);
    expect((await smaller.increment("a")).totalHits).toBe(10 - 9);
    expect((await deployed.increment("a")).totalHits).toBe(120 - 8);
  });

  it("applies with each request, if the middleware passes limits only then", async () => {
    const storage = nestThrottlerStorage({ limiter: onMemory(), resource: "api" });
    const hit = async (limit: number): Promise<number> =>
      (await storage.increment("a", MINUTE, limit, MINUTE, "default")).totalHits;
    for (const hits of [1, 2, 3]) expect(await hit(4)).toBe(hits);
    expect(await hit(8)).toBe(8);
    expect(await hit(4)).toBe(5);
    const plugin = registered(onMemory(), () => 4);
    for (const hits of [1, 2, 3]) expect(await increment(plugin, 4)).toBe(hits);
    expect(await increment(plugin, 8)).toBe(8);
    expect(await increment(plugin, 4)).toBe(5);
  });
});

describe("different limits of one limiter for one resource", () => {
  const SENTENCE =
    "Invalid resource: another middleware of this limiter has 100/60s for it, and this one has 5/60s; give each its own resource (got 'web')";

  it("the second middleware fails, and the first one goes on", async () => {
    const limiter = onMemory();
    const wide = begin(limiter, 100);
    const narrow = expressRateLimitStore({ limiter, resource: "web" });
    const init = (): void => narrow.init({ windowMs: MINUTE, limit: 5 });
    expect(init).toThrow(ValidationError);
    expect(init).toThrow(SENTENCE);
    await expect(narrow.increment("a")).rejects.toThrow(SENTENCE);
    expect((await wide.increment("a")).totalHits).toBe(1);
  });

  it("a store that both use fails both, because it does not know which of them calls", async () => {
    const store = begin(onMemory(), 100);
    store.init({ windowMs: MINUTE, limit: 100 });
    expect((await store.increment("a")).totalHits).toBe(1);
    expect(() => store.init({ windowMs: MINUTE, limit: 5 })).toThrow(SENTENCE);
    await expect(store.increment("a")).rejects.toThrow(SENTENCE);
  });

  it.each([
    [100, MINUTE * 60, "100/60s for it, and this one has 100/3600s"],
    [0, MINUTE, "100/60s for it, and this one has 0/60s"],
    [() => 100, MINUTE, "100/60s for it, and this one has stored limits"],
  ])("a limit of %o in %i ms is not 100 in a minute", (limit, windowMs, sentence) => {
    const limiter = onMemory();
    begin(limiter, 100);
    expect(() => begin(limiter, limit, { windowMs })).toThrow(sentence);
  });

  it("the same limit, or another resource, limit name or limiter, is allowed", () => {
    const limiter = onMemory();
    begin(limiter, 100);
    begin(limiter, 100);
    const login = begin(limiter, 5, { resource: "login" });
    const logins = begin(limiter, 5, { limitName: "logins" });
    // For express-rate-limit, stores with the same prefix are one bucket.
    expect(login.prefix).toBe("login:requests:");
    expect(logins.prefix).toBe("web:logins:");
    begin(onMemory(), 5);
  });

  it("a window that the store cannot keep registers no limit", () => {
    const limiter = onMemory();
    expect(() => begin(limiter, 100, { windowMs: 1500 })).toThrow(/whole seconds/);
    begin(limiter, 5);
  });

  it("@fastify/rate-limit: plugins, routes and groups, unless a function returns the limit", () => {
    const limiter = onMemory();
    const plugin = registered(limiter, 100);
    expect(() => registered(limiter, 5)).toThrow(
      "this one has 5/60s; give each its own resource or groupId",
    );
    registered(limiter, () => 5);
    const routeInfo = { method: "POST", url: "/login" };
    const child = (max: number, groupId?: string): FastifyHitStore =>
      plugin.child({ max, timeWindow: MINUTE, routeInfo, groupId });
    child(5);
    child(5);
    expect(() => child(6)).toThrow(/has 5\/60s .* \(got 'web:POST\/login'\)/);
    child(6, "OTP");
    expect(() => child(7, "OTP")).toThrow(/has 6\/60s .* \(got 'web:group:OTP'\)/);
    expect(() => begin(limiter, 5)).toThrow(SENTENCE);
  });
});
