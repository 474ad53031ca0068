import type { RequestListener } from "node:http";
import { getRequestListener } from "@hono/node-server";
import fastifyRateLimit from "@fastify/rate-limit";
import express, { type RequestHandler } from "express";
import { rateLimit } from "express-rate-limit";
import Fastify, { type FastifyInstance, type FastifyRequest } from "fastify";
import { Hono, type MiddlewareHandler } from "hono";
import { rateLimiter } from "hono-rate-limiter";
import { Limit, RateLimiter } from "zae-limiter";
import { limitRequests as limitExpress } from "zae-limiter/express";
import { limiterPlugin } from "zae-limiter/fastify";
import { limitRequests as limitHono } from "zae-limiter/hono";
import { MemoryRepository } from "zae-limiter/memory";

/** The frameworks, as the tables name them. */
export const FRAMEWORKS = ["Express", "Fastify", "Hono"] as const;
/** One of them. */
export type Framework = (typeof FRAMEWORKS)[number];

/** What stands in front of the handler. */
export const LIMITS = ["bare", "one limit", "two limits, parent", "peer"] as const;
/** One of them. */
export type Limits = (typeof LIMITS)[number];

/** Whether every request fits, or none after the first. */
export type Load = "granted" | "refused";

/** The middleware that people use with a framework today. */
export const PEERS: Readonly<Record<Framework, string>> = {
  Express: "express-rate-limit",
  Fastify: "@fastify/rate-limit",
  Hono: "hono-rate-limiter",
};

/** The header that says who sends a request. */
export const KEY = "x-key";

/** How many keys the load has. */
export const KEYS = 100;

/** The entity of a key. */
export function keyAt(index: number): string {
  return `customer-${index}`;
}

/** So many that no request is ever refused; still exact for all. */
const NEVER_REACHED = 1_000_000_000;

/** So long that no window ends within a run, and no bucket is full again. */
const WINDOW_SECONDS = 3600;

/** A server for one contestant. */
export async function buildListener(
  framework: Framework,
  limits: Limits,
  load: Load,
): Promise<RequestListener> {
  const capacity = load === "granted" ? NEVER_REACHED : 1;
  const ours = limits === "one limit" || limits === "two limits, parent";
  const limiter = ours ? await limiterWith(limits, capacity) : undefined;
  const options = {
    limiter: limiter!,
    resource: "web",
    consume: limits === "one limit" ? { rpm: 1 } : { rpm: 1, tpm: 1 },
  };
  if (framework === "Express") {
    const entity = (request: Parameters<RequestHandler>[0]): string => request.get(KEY)!;
    if (ours) return withExpress(limitExpress({ ...options, entity }));
    return withExpress(limits === "peer" ? expressPeer(capacity, entity) : undefined);
  }
  if (framework === "Fastify") {
    const app = Fastify();
    const entity = (request: FastifyRequest): string => request.headers[KEY] as string;
    if (ours) await app.register(limiterPlugin, { ...options, entity });
    else if (limits === "peer")
      await app.register(fastifyRateLimit, {
        max: capacity,
        timeWindow: WINDOW_SECONDS * 1000,
        keyGenerator: entity,
      });
    return withFastify(app);
  }
  if (ours)
    return withHono(limitHono({ ...options, entity: (context) => context.req.header(KEY) }));
  return withHono(limits === "peer" ? honoPeer(capacity) : undefined);
}

async function limiterWith(limits: Limits, capacity: number): Promise<RateLimiter> {
  const repository = new MemoryRepository();
  const names = limits === "one limit" ? ["rpm"] : ["rpm", "tpm"];
  const slowly = { refillAmount: 1, refillPeriodSeconds: WINDOW_SECONDS };
  await repository.setSystemDefaults(
    names.map((name) => Limit.custom({ name, capacity, ...slowly })),
  );
  if (limits === "two limits, parent") {
    await repository.createEntity("company");
    // The parent has room for all of its children, so the entity decides.
    const room = capacity * KEYS;
    await repository.setLimits(
      "company",
      names.map((name) => Limit.custom({ name, capacity: room, ...slowly })),
    );
    for (let index = 0; index < KEYS; index += 1)
      await repository.createEntity(keyAt(index), { parentId: "company", cascade: true });
  }
  return new RateLimiter({ repository });
}

function withExpress(limit: RequestHandler | undefined): RequestListener {
  const app = express();
  if (limit !== undefined) app.use(limit);
  app.get("/", (_request, response) => void response.send("hello"));
  return app;
}

async function withFastify(app: FastifyInstance): Promise<RequestListener> {
  app.get("/", async () => "hello");
  await app.ready();
  return (request, response) => app.routing(request, response);
}

function withHono(limit: MiddlewareHandler | undefined): RequestListener {
  const app = new Hono();
  if (limit !== undefined) app.use(limit);
  app.get("/", (context) => context.text("hello"));
  const listener = getRequestListener(app.fetch);
  return (request, response) => void listener(request, response);
}

function expressPeer(
  limit: number,
  keyGenerator: (request: Parameters<RequestHandler>[0]) => string,
): RequestHandler {
  return rateLimit({
    windowMs: WINDOW_SECONDS * 1000,
    limit,
    keyGenerator,
    standardHeaders: "draft-8",
    legacyHeaders: false,
    validate: false,
  });
}

function honoPeer(limit: number): MiddlewareHandler {
  return rateLimiter({
    windowMs: WINDOW_SECONDS * 1000,
    limit,
    keyGenerator: (context) => context.req.header(KEY)!,
    standardHeaders: "draft-7",
  });
}
