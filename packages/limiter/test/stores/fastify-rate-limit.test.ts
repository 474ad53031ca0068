import fastifyRateLimit, { type RateLimitPluginOptions } from "@fastify/rate-limit";
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { fastifyRateLimitStore } from "zae-limiter/stores";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { remainingIn, requestsAtOnce, statusesAtOnce } from "../support/requests-at-once.ts";

interface Served extends AsyncDisposable {
  readonly url: string;
}

async function served(
  limiter: RateLimiter,
  options: RateLimitPluginOptions = {},
  routes: (app: FastifyInstance) => void = () => undefined,
): Promise<Served> {
  const app = fastify({ forceCloseConnections: true });
  await app.register(fastifyRateLimit, {
    max: 3,
    timeWindow: "1 minute",
    store: fastifyRateLimitStore({ limiter, resource: "web" }),
    ...options,
  });
  app.get("/", () => "handled");
  routes(app);
  const url = await app.listen({ port: 0, host: "127.0.0.1" });
  return { url, [Symbol.asyncDispose]: () => app.close() };
}

function onMemory(): RateLimiter {
  return new RateLimiter({ repository: new MemoryRepository() });
}

describe("@fastify/rate-limit", () => {
  it("allows up to the limit, refuses with its own headers, and allows what refills", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    await using server = await served(limiter);
    const first = await fetch(server.url);
    expect(first.status).toBe(200);
    expect(first.headers.get("x-ratelimit-remaining")).toBe("2");
    expect(first.headers.get("x-ratelimit-reset")).toBe("20");
    await fetch(server.url);
    expect((await fetch(server.url)).headers.get("x-ratelimit-reset")).toBe("60");
    const refused = await fetch(server.url);
    expect(refused.status).toBe(429);
    expect(refused.headers.get("retry-after")).toBe("20");
    expect(await refused.json()).toMatchObject({
      message: "Rate limit exceeded, retry in 20 seconds",
    });
    await clock.advance(20_000);
    expect((await fetch(server.url)).status).toBe(200);
    expect((await fetch(server.url)).status).toBe(429);
  });

  it("50 at once see 50 different counts, and the 51st is refused", async () => {
    await using server = await served(onMemory(), { max: 50, timeWindow: "1 day" });
    const responses = await requestsAtOnce(server.url, 51);
    expect(remainingIn(responses)).toEqual([...Array(50).keys()]);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(1);
  });

  it("two applications with one limiter share what they allow", async () => {
    const limiter = onMemory();
    await using one = await served(limiter, { max: 4, timeWindow: "1 day" });
    await using other = await served(limiter, { max: 4, timeWindow: "1 day" });
    expect(await statusesAtOnce(one.url, 2)).toEqual([200, 200]);
    expect(await statusesAtOnce(other.url, 3)).toEqual([200, 200, 429]);
  });

  it("routes with options of their own count apart, and groups together", async () => {
    const group = { max: 2, timeWindow: "1 day", groupId: "OTP" };
    await using server = await served(onMemory(), { timeWindow: "1 day" }, (app) => {
      app.get("/own", { config: { rateLimit: { max: 3 } } }, () => "handled");
      app.get("/less", { config: { rateLimit: { max: 1 } } }, () => "handled");
      app.get("/users/:id(^\\d+$)", { config: { rateLimit: { max: 1 } } }, () => "handled");
      app.get("/send", { config: { rateLimit: group } }, () => "handled");
      app.get("/check", { config: { rateLimit: group } }, () => "handled");
    });
    expect(await statusesAtOnce(server.url, 4)).toEqual([200, 200, 200, 429]);
    expect(await statusesAtOnce(`${server.url}/own`, 4)).toEqual([200, 200, 200, 429]);
    expect(await statusesAtOnce(`${server.url}/less`, 2)).toEqual([200, 429]);
    expect(await statusesAtOnce(`${server.url}/users/1`, 1)).toEqual([200]);
    expect(await statusesAtOnce(`${server.url}/users/2`, 1)).toEqual([429]);
    expect(await statusesAtOnce(`${server.url}/send`, 1)).toEqual([200]);
    expect(await statusesAtOnce(`${server.url}/check`, 2)).toEqual([200, 429]);
  });

  it("limits that functions return apply to the client's bucket", async () => {
    await using server = await served(onMemory(), {
      max: (request) => Number((request.query as { readonly max: string }).max),
      timeWindow: () => 86_400_000,
    });
    expect(await statusesAtOnce(`${server.url}/?max=4`, 2)).toEqual([200, 200]);
    expect(await statusesAtOnce(`${server.url}/?max=8`, 1)).toEqual([200]);
    expect(await statusesAtOnce(`${server.url}/?max=4`, 2)).toEqual([200, 429]);
    expect(await statusesAtOnce(`${server.url}/?max=0`, 1)).toEqual([429]);
    expect(await statusesAtOnce(`${server.url}/?max=1.5`, 1)).toEqual([500]);
  });

  it("looks without taking", async () => {
    const seen: unknown[] = [];
    await using server = await served(onMemory(), { global: false }, (app) => {
      const check = app.createRateLimit({ max: 2, timeWindow: "1 day" });
      const look = async (request: FastifyRequest): Promise<string> => {
        seen.push(await check(request, { increment: false }), await check(request));
        return "handled";
      };
      app.get("/look", (request) => look(request));
    });
    for (let request = 0; request < 3; request += 1) await fetch(`${server.url}/look`);
    const remaining = seen.map((each) => (each as { readonly remaining: number }).remaining);
    expect(remaining).toEqual([2, 1, 1, 0, 0, 0]);
    expect(seen.map((each) => (each as { readonly isExceeded: boolean }).isExceeded)).toEqual([
      false,
      false,
      false,
      false,
      false,
      true,
    ]);
  });

  it.each([
    [{ continueExceeding: true }, /continueExceeding: cannot be kept/],
    [{ exponentialBackoff: true }, /exponentialBackoff: cannot be kept/],
    [{ ban: 2 }, /Invalid ban: cannot be kept/],
    [{ timeWindow: 1500 }, /Invalid timeWindow: must be whole seconds/],
  ])("refuses %o when it is registered", async (options, sentence) => {
    await expect(served(onMemory(), options)).rejects.toThrow(sentence);
    await expect(
      served(onMemory(), {}, (app) => {
        app.get("/own", { config: { rateLimit: options } }, () => "handled");
      }),
    ).rejects.toThrow(sentence);
  });

  it("bans with the first refusal if it is told to", async () => {
    await using server = await served(onMemory(), { max: 1, timeWindow: "1 day", ban: 0 });
    expect(await statusesAtOnce(server.url, 2)).toEqual([200, 403]);
  });

  it("an unavailable store is an error, or is skipped, as the plugin says", async () => {
    const repository = faultyRepository(new MemoryRepository(), (operation) =>
      operation === "consume" ? "error-before" : undefined,
    );
    const limiter = new RateLimiter({ repository });
    await using strict = await served(limiter);
    expect((await fetch(strict.url)).status).toBe(500);
    await using lenient = await served(limiter, { skipOnError: true });
    expect((await fetch(lenient.url)).status).toBe(200);
  });
});
