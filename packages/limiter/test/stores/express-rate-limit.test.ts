import express, { type ErrorRequestHandler, type RequestHandler } from "express";
import { rateLimit, type Options } from "express-rate-limit";
import { rateLimit as rateLimit7 } from "express-rate-limit-7";
import { EventEmitter, once } from "node:events";
import { Limit, RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { expressRateLimitStore } from "zae-limiter/stores";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { listening, type Listening } from "../support/listening.ts";
import { temporaryFile } from "../support/temporary-file.ts";
import { remainingIn, requestsAtOnce, statusesAtOnce } from "../support/requests-at-once.ts";

/** For tests in which the middleware is expected to log errors. */
const SILENT = { error: () => undefined, warn: () => undefined };

function getLimited(limiter: RateLimiter, options: Partial<Options> = {}): RequestHandler {
  return rateLimit({
    windowMs: 60_000,
    limit: 3,
    standardHeaders: "draft-8",
    store: expressRateLimitStore({ limiter, resource: "web" }),
    ...options,
  });
}

const showError: ErrorRequestHandler = (error: Error, _request, response, _next) => {
  response.status(500).send(error.message);
};

async function serve(...handlers: readonly RequestHandler[]): Promise<Listening> {
  const app = express();
  for (const handler of handlers) app.use(handler);
  app.get("/", (request, response) => {
    response.status(Number(request.query["status"] ?? 200)).send("handled");
  });
  app.use(showError);
  return listening(app);
}

describe("express-rate-limit", () => {
  it("allows up to the limit, refuses with its own headers, and allows what refills", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    await using server = await serve(getLimited(limiter));
    const first = await fetch(server.url);
    expect(first.status).toBe(200);
    expect(first.headers.get("ratelimit")).toBe('"3-in-1min"; r=2; t=20');
    expect(first.headers.get("x-ratelimit-remaining")).toBe("2");
    expect((await fetch(server.url)).headers.get("ratelimit")).toBe('"3-in-1min"; r=1; t=40');
    expect((await fetch(server.url)).headers.get("ratelimit")).toBe('"3-in-1min"; r=0; t=60');
    const refused = await fetch(server.url);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("ratelimit")).toBe('"3-in-1min"; r=0; t=20');
    expect(refused.headers.get("retry-after")).toBe("20");
    await clock.advance(19_999);
    expect((await fetch(server.url)).status).toBe(429);
    await clock.advance(1);
    expect((await fetch(server.url)).status).toBe(200);
    expect((await fetch(server.url)).status).toBe(429);
  });

  it("50 concurrent requests get 50 different counts, and the 51st is refused", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    await using server = await serve(getLimited(limiter, { limit: 50, windowMs: 86_400_000 }));
    const responses = await requestsAtOnce(server.url, 51);
    expect(remainingIn(responses)).toEqual([...Array(50).keys()]);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(1);
  });

  it("two servers on one SQLite file share what they allow", async () => {
    const file = temporaryFile();
    await using one = await SqliteRepository.open(file);
    await using other = await SqliteRepository.open(file);
    const day = { limit: 50, windowMs: 86_400_000 };
    await using left = await serve(getLimited(new RateLimiter({ repository: one }), day));
    await using right = await serve(getLimited(new RateLimiter({ repository: other }), day));
    const all = await Promise.all([requestsAtOnce(left.url, 40), requestsAtOnce(right.url, 40)]);
    const remaining = remainingIn(all.flat());
    expect(remaining).toHaveLength(50);
    expect(all.flat().filter(({ status }) => status === 429)).toHaveLength(30);
    // Calls that share a transaction see its final count: at most their own turn, never more.
    expect(remaining.filter((count, turn) => count > turn)).toEqual([]);
  });

  it("the same limit on one resource is one bucket, and the middleware warns that it counts twice", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    const problems: unknown[] = [];
    const logger = { error: (problem: unknown) => problems.push(problem), warn: () => undefined };
    await using server = await serve(
      getLimited(limiter, { logger }),
      getLimited(limiter, { logger }),
    );
    expect((await fetch(server.url)).headers.get("x-ratelimit-remaining")).toBe("1");
    expect(problems).toMatchObject([{ code: "ERR_ERL_DOUBLE_COUNT" }]);
  });

  it("failed requests are given back, and refused ones give nothing back", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    const store = expressRateLimitStore({ limiter, resource: "web" });
    const day = { windowMs: 86_400_000, limit: 2 };
    await using server = await serve(
      getLimited(limiter, { ...day, store, skipFailedRequests: true }),
    );
    for (let request = 0; request < 5; request += 1) {
      expect((await fetch(`${server.url}/?status=404`)).status).toBe(404);
      await expect.poll(() => available(limiter, day)).toBe(2);
    }
    expect(await statusesAtOnce(server.url, 2)).toEqual([200, 200]);
    expect(await statusesAtOnce(server.url, 20)).toEqual(Array(20).fill(429));
    // Their responses have ended, so all of their decrements have run.
    expect(await statusesAtOnce(server.url, 5)).toEqual(Array(5).fill(429));
    await store.shutdown();
  });

  it("successful requests are given back", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    const day = { windowMs: 86_400_000, limit: 2 };
    await using server = await serve(getLimited(limiter, { ...day, skipSuccessfulRequests: true }));
    for (let request = 0; request < 5; request += 1) {
      expect((await fetch(server.url)).status).toBe(200);
      await expect.poll(() => available(limiter, day)).toBe(2);
    }
    const failing = `${server.url}/?status=401`;
    for (const status of [401, 401, 429]) expect((await fetch(failing)).status).toBe(status);
  });

  it("only failures count: after an attack and a window all successes are given back", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    const minute = { windowMs: 60_000, limit: 3 };
    await using server = await serve(
      getLimited(limiter, { ...minute, skipSuccessfulRequests: true }),
    );
    const failing = `${server.url}/?status=401`;
    for (const status of [401, 401, 401, ...Array(10).fill(429)])
      expect((await fetch(failing)).status).toBe(status);
    await clock.advance(60_000);
    for (let request = 0; request < 12; request += 1) {
      expect((await fetch(server.url)).status).toBe(200);
      await expect.poll(() => available(limiter, minute)).toBe(3);
    }
  });

  it.each([
    ["7", rateLimit7 as unknown as typeof rateLimit],
    ["8", rateLimit],
  ])("version %s gives back the request of a client that disconnects", async (_version, make) => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    const day = { windowMs: 86_400_000, limit: 1 };
    const store = expressRateLimitStore({ limiter, resource: "web" });
    const arrivals = new EventEmitter();
    const arrived = once(arrivals, "hanging");
    const hanging: RequestHandler = (request, _response, next) =>
      request.query["hang"] === undefined ? next() : void arrivals.emit("hanging");
    await using server = await serve(
      make({ ...day, store, skipFailedRequests: true, validate: false }),
      hanging,
    );
    const client = new AbortController();
    const aborted = fetch(`${server.url}/?hang`, { signal: client.signal }).catch(() => undefined);
    await arrived;
    expect((await fetch(server.url)).status).toBe(429);
    client.abort();
    await aborted;
    await expect.poll(() => available(limiter, day)).toBe(1);
    expect((await fetch(server.url)).status).toBe(200);
    expect((await fetch(server.url)).status).toBe(429);
  });

  it("stored limits decide if the limit is a function", async () => {
    const repository = new MemoryRepository();
    const limiter = new RateLimiter({ repository });
    await using server = await serve(getLimited(limiter, { limit: () => 1000 }));
    expect(await (await fetch(server.url)).text()).toMatch(/no limits are configured/);
    await repository.setResourceDefaults("web", [
      { name: "requests", capacity: 2, refillAmount: 1, refillPeriodSeconds: 3600 },
    ]);
    expect(await statusesAtOnce(server.url, 4)).toEqual([200, 200, 429, 429]);
    expect((await fetch(server.url)).headers.get("ratelimit")).toMatch(/; r=0; t=3600$/);
  });

  it("a stored session counts in windows that begin with their first request", async () => {
    const clock = new ManualClock();
    const repository = new MemoryRepository({ clock });
    await repository.setResourceDefaults("web", [
      Limit.session("requests", 2, { windowSeconds: 60 }),
    ]);
    const limiter = new RateLimiter({ repository });
    await using server = await serve(getLimited(limiter, { limit: () => 2 }));
    expect(await statusesAtOnce(server.url, 3)).toEqual([200, 200, 429]);
    await clock.advance(59_000);
    expect((await fetch(server.url)).headers.get("ratelimit")).toMatch(/; r=0; t=1$/);
    await clock.advance(1000);
    expect(await statusesAtOnce(server.url, 3)).toEqual([200, 200, 429]);
  });

  it("what the store cannot keep is logged when the middleware is made, and fails each request", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    const problems: unknown[] = [];
    const logger = { error: (problem: unknown) => problems.push(problem), warn: () => undefined };
    await using server = await serve(getLimited(limiter, { windowMs: 1500, logger }));
    expect(String(problems[0])).toMatch(/Invalid windowMs: must be whole seconds/);
    const response = await fetch(server.url);
    expect(response.status).toBe(500);
    expect(await response.text()).toMatch(/must be whole seconds .* \(got 1500\)/);
  });

  it("an unavailable store and a closed limiter are errors, or let pass, as the middleware says", async () => {
    const repository = faultyRepository(new MemoryRepository(), (operation) =>
      operation === "consume" ? "error-before" : undefined,
    );
    const limiter = new RateLimiter({ repository });
    await using strict = await serve(getLimited(limiter));
    expect((await fetch(strict.url)).status).toBe(500);
    await using lenient = await serve(
      getLimited(limiter, { passOnStoreError: true, logger: SILENT }),
    );
    expect((await fetch(lenient.url)).status).toBe(200);
    const closed = new RateLimiter({ repository: new MemoryRepository() });
    await closed.close();
    await using server = await serve(getLimited(closed));
    expect(await (await fetch(server.url)).text()).toMatch(/This limiter was closed/);
  });
});

async function available(
  limiter: RateLimiter,
  { limit, windowMs }: { readonly limit: number; readonly windowMs: number },
): Promise<number | undefined> {
  const refillPeriodSeconds = windowMs / 1000;
  const limits = [
    { name: "requests", capacity: limit, refillAmount: limit, refillPeriodSeconds },
  ] as const;
  return (await limiter.available("127.0.0.1", "web", { limits }))["requests"];
}
