import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { expressRateLimitStore } from "zae-limiter/stores";
import { ManualClock } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { listeningOn, type Listening } from "../support/listening.ts";

interface Limited {
  readonly limit?: number;
  readonly windowMs?: number;
  readonly skipFailedRequests?: boolean;
}

async function serve(limiter: RateLimiter, options: Limited = {}): Promise<Listening> {
  const app = new Hono();
  app.use(
    rateLimiter({
      windowMs: 60_000,
      limit: 3,
      standardHeaders: "draft-7",
      keyGenerator: (context) => context.req.header("x-client") ?? "2001:db8::/56",
      store: expressRateLimitStore({ limiter, resource: "web" }),
      ...options,
    }),
  );
  app.get("/", (context) => context.text("handled"));
  app.get("/failing", () => {
    throw new Error("The handler failed.");
  });
  app.onError((_error, context) => context.text("failed", 500));
  return listeningOn(createAdaptorServer({ fetch: app.fetch }));
}

describe("hono-rate-limiter", () => {
  it("allows up to the limit, refuses with its own headers, and allows what refills", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    await using server = await serve(limiter);
    const first = await fetch(server.url);
    expect(first.status).toBe(200);
    expect(first.headers.get("ratelimit")).toBe("limit=3, remaining=2, reset=20");
    await fetch(server.url);
    await fetch(server.url);
    const refused = await fetch(server.url);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("ratelimit")).toBe("limit=3, remaining=0, reset=20");
    expect(refused.headers.get("retry-after")).toBe("20");
    await clock.advance(20_000);
    expect((await fetch(server.url)).status).toBe(200);
    expect((await fetch(server.url)).status).toBe(429);
  });

  it("failed requests are given back, also those whose handler throws", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    await using server = await serve(limiter, {
      limit: 1,
      windowMs: 86_400_000,
      skipFailedRequests: true,
    });
    for (let request = 0; request < 5; request += 1)
      expect((await fetch(`${server.url}/failing`)).status).toBe(500);
    expect((await fetch(server.url)).status).toBe(200);
    for (let request = 0; request < 5; request += 1)
      expect((await fetch(server.url)).status).toBe(429);
  });

  it("after refusals and a window all failures are given back", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    await using server = await serve(limiter, { skipFailedRequests: true });
    for (const status of [...Array(3).fill(200), ...Array(10).fill(429)])
      expect((await fetch(server.url)).status).toBe(status);
    await clock.advance(60_000);
    for (let request = 0; request < 12; request += 1)
      expect((await fetch(`${server.url}/failing`)).status).toBe(500);
    for (const status of [200, 200, 200, 429])
      expect((await fetch(server.url)).status).toBe(status);
  });

  it("a window that the store cannot keep throws when the middleware is made", async () => {
    const limiter = new RateLimiter({ repository: new MemoryRepository() });
    await expect(serve(limiter, { windowMs: 500 })).rejects.toThrow(
      /Invalid windowMs: must be whole seconds/,
    );
  });
});
