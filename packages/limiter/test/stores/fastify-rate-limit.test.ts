import fastifyRateLimit, { type RateLimitPluginOptions } from "@fastify/rate-limit";
import fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { RateLimiter } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { fastifyRateLimitStore } from "zae-limiter/stores";
import { faultyRepository, ManualClock } from "zae-limiter/testing";
import { describe, expect, it } from "vitest";
import { statusesAtOnce } from "../support/requests-at-once.ts";

/** What the plugin returns for a look or a count. */
interface Seen {
  readonly remaining: number;
  readonly ttlInSeconds: number;
  readonly isExceeded: boolean;
}

interface Served extends AsyncDisposable {
  readonly url: string;
}

async function serve(
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
    await using server = await serve(limiter);
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

  it("routes with options of their own count separately, and groups together", async () => {
    const group = { max: 2, timeWindow: "1 day", groupId: "OTP" };
    await using server = await serve(onMemory(), { timeWindow: "1 day" }, (app) => {
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
    await using server = await serve(onMemory(), {
      max: (request) => Number((request.query as { readonly max: string }).max),
      timeWindow: () => 86_400_000,
    });
    expect(await statusesAtOnce(`${server.url}/?max=4`, 2)).toEqual([200, 200]);
    expect(await statusesAtOnce(`${server.url}/?max=8`, 1)).toEqual([200]);
    expect(await statusesAtOnce(`${server.url}/?max=4`, 2)).toEqual([200, 429]);
    expect(await statusesAtOnce(`${server.url}/?max=0`, 1)).toEqual([429]);
    expect(await statusesAtOnce(`${server.url}/?max=1.5`, 1)).toEqual([500]);
  });

  it("a look takes nothing, and shows how the next request would be decided", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    const seen: Seen[] = [];
    await using server = await serve(limiter, { global: false }, (app) => {
      const check = app.createRateLimit({ max: 2, timeWindow: "1 minute" });
      const look = async (request: FastifyRequest): Promise<string> => {
        const looked = await check(request, { increment: false });
        seen.push(looked as Seen, (await check(request)) as Seen);
        return "handled";
      };
      app.get("/look", (request) => look(request));
    });
    for (let request = 0; request < 3; request += 1) await fetch(`${server.url}/look`);
    expect(seen.map(({ remaining }) => remaining)).toEqual([2, 1, 1, 0, 0, 0]);
    expect(seen.map(({ ttlInSeconds }) => ttlInSeconds)).toEqual([0, 30, 30, 60, 30, 30]);
    const isExceeded = [false, false, false, false, true, true];
    expect(seen.map((each) => each.isExceeded)).toEqual(isExceeded);
    await clock.advance(30_000);
    await fetch(`${server.url}/look`);
    expect(seen.slice(-2).map((each) => each.isExceeded)).toEqual([false, false]);
  });

  it("counts failed logins only, as a guard of a route does", async () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter({ repository: new MemoryRepository({ clock }) });
    await using server = await serve(limiter, { global: false }, (app) => {
      const check = app.createRateLimit({ max: 5, timeWindow: "1 minute" });
      app.get("/login", async (request, reply) => {
        const status = await check(request, { increment: false });
        if (!status.isAllowed && status.isExceeded) return reply.code(429).send();
        if ((request.query as { readonly password?: string }).password === "right")
          return reply.code(200).send();
        await check(request);
        return reply.code(401).send();
      });
    });
    const statuses: number[] = [];
    const logIn = async (password: string, times: number): Promise<readonly number[]> => {
      statuses.length = 0;
      for (let time = 0; time < times; time += 1)
        statuses.push((await fetch(`${server.url}/login?password=${password}`)).status);
      return statuses;
    };
    expect(await logIn("right", 10)).toEqual(Array(10).fill(200));
    expect(await logIn("wrong", 30)).toEqual([...Array(5).fill(401), ...Array(25).fill(429)]);
    expect(await logIn("right", 1)).toEqual([429]);
    await clock.advance(60_000);
    expect(await logIn("right", 12)).toEqual(Array(12).fill(200));
  });

  it.each([
    [{ continueExceeding: true }, /continueExceeding: cannot be kept/],
    [{ exponentialBackoff: true }, /exponentialBackoff: cannot be kept/],
    [{ ban: 2 }, /Invalid ban: cannot be kept/],
    [{ timeWindow: 1500 }, /Invalid timeWindow: must be whole seconds/],
  ])("refuses %o when it is registered", async (options, sentence) => {
    await expect(serve(onMemory(), options)).rejects.toThrow(sentence);
    await expect(
      serve(onMemory(), {}, (app) => {
        app.get("/own", { config: { rateLimit: options } }, () => "handled");
      }),
    ).rejects.toThrow(sentence);
  });

  it("bans with the first refusal if the options say so", async () => {
    await using server = await serve(onMemory(), { max: 1, timeWindow: "1 day", ban: 0 });
    expect(await statusesAtOnce(server.url, 2)).toEqual([200, 403]);
  });

  it("an unavailable store is an error, or is skipped, as the plugin says", async () => {
    const repository = faultyRepository(new MemoryRepository(), (operation) =>
      operation === "consume" ? "error-before" : undefined,
    );
    const limiter = new RateLimiter({ repository });
    await using strict = await serve(limiter);
    expect((await fetch(strict.url)).status).toBe(500);
    await using lenient = await serve(limiter, { skipOnError: true });
    expect((await fetch(lenient.url)).status).toBe(200);
  });
});
