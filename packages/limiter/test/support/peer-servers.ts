/*
 * The middlewares whose stores this library can be, each with its own store or with ours, behind
 * one interface: a request is refused, or runs until the test says how it ends.
 */
import fastifyRateLimit from "@fastify/rate-limit";
import { ThrottlerStorageService } from "@nestjs/throttler";
import express from "express";
import * as expressRateLimit8 from "express-rate-limit";
import * as expressRateLimit7 from "express-rate-limit-7";
import fastify, { type FastifyInstance } from "fastify";
import { Hono, type Context } from "hono";
import { MemoryStore as HonoMemoryStore, rateLimiter, webSocketLimiter } from "hono-rate-limiter";
import { setImmediate } from "node:timers/promises";
import type { RateLimiter } from "zae-limiter";
import {
  expressRateLimitStore,
  fastifyRateLimitStore,
  nestThrottlerStorage,
  type HitStore,
} from "zae-limiter/stores";
import { listening } from "./listening.ts";

/** What a middleware is made with. Without a limiter it has its own store. */
export interface PeerOptions {
  readonly limiter: RateLimiter | undefined;
  readonly limit: number;
  readonly windowMs: number;
  readonly mode: Mode;
}

/** Which requests a middleware gives back. */
export interface Mode {
  readonly skipFailedRequests?: boolean;
  readonly skipSuccessfulRequests?: boolean;
  /** What `requestWasSuccessful` makes of a status. */
  readonly isSuccess?: (status: number) => boolean;
}

/** Ends a request with a status, and resolves when the store has been updated. */
export type Respond = (status: number) => Promise<void>;

export interface PeerServer extends AsyncDisposable {
  /** Undefined if the request was refused. */
  request(key: string): Promise<Respond | undefined>;
  /** Undefined if the middleware cannot look. */
  readonly look?: (key: string) => Promise<Look>;
}

/** What a middleware says of a client without taking. */
export interface Look {
  readonly isExceeded: boolean;
  readonly remaining: number;
}

/** A request to a server; its number identifies it to the handler. */
type Send = (key: string, id: string) => Promise<{ readonly status: number }>;

function startExpress({ rateLimit, MemoryStore }: typeof expressRateLimit8) {
  return async ({ limiter, mode, ...quota }: PeerOptions): Promise<PeerServer> => {
    const { isSuccess = (status) => status < 400, ...skip } = mode;
    const store = limiter === undefined ? new MemoryStore() : ourStore(limiter);
    const settled = watchDecrements(store);
    const closings = new Map<string, () => void>();
    const app = express();
    app.use((request, response, next) => {
      response.once("close", closings.get(request.get("x-id")!)!);
      next();
    });
    app.use(
      rateLimit({
        ...quota,
        ...skip,
        requestWasSuccessful: (_request, response) => isSuccess(response.statusCode),
        keyGenerator: (request) => request.get("x-key")!,
        store,
        validate: false,
      }),
    );
    const held = heldRequests(async (key, id) => {
      const closed = new Promise<void>((resolve) => closings.set(id, resolve));
      const response = await fetch(server.url, { headers: { "x-key": key, "x-id": id } });
      await response.text();
      await closed;
      await settled();
      return response;
    });
    app.get("/", (request, response) => {
      void held.arrive(request.get("x-id")!).then((status) => response.status(status).end());
    });
    const server = await listening(app);
    return {
      request: held.request,
      look: lookAt(store, quota.limit),
      [Symbol.asyncDispose]: async () => {
        await store.shutdown();
        await server[Symbol.asyncDispose]();
      },
    };
  };
}

/** The types of 7 are those of 8 without what 8 added. */
export const startExpress7 = startExpress(expressRateLimit7 as unknown as typeof expressRateLimit8);
export const startExpress8 = startExpress(expressRateLimit8);

export async function startHono({ limiter, mode, ...quota }: PeerOptions): Promise<PeerServer> {
  const { isSuccess = (status) => status < 400, ...skip } = mode;
  const store = limiter === undefined ? new HonoMemoryStore() : ourStore(limiter);
  const settled = watchDecrements(store);
  const app = new Hono();
  app.use(
    rateLimiter({
      ...quota,
      ...skip,
      requestWasSuccessful: (context: Context) => isSuccess(context.res.status),
      keyGenerator: (context: Context) => context.req.header("x-key")!,
      store,
    }),
  );
  const held = heldRequests(async (key, id) => {
    const response = await app.request("/", { headers: { "x-key": key, "x-id": id } });
    await settled();
    return response;
  });
  app.get("/", async (context) => {
    const status = await held.arrive(context.req.header("x-id")!);
    return new Response(null, { status });
  });
  return {
    request: held.request,
    look: lookAt(store, quota.limit),
    [Symbol.asyncDispose]: async () => store.shutdown(),
  };
}

/** Each request is a message. One that fails throws. */
export async function startWebSocket({
  limiter,
  mode,
  ...quota
}: PeerOptions): Promise<PeerServer> {
  const store = limiter === undefined ? new HonoMemoryStore() : ourStore(limiter);
  const settled = watchDecrements(store);
  const limited = webSocketLimiter({
    ...quota,
    ...mode,
    keyGenerator: (context: Context) => context.req.header("x-key")!,
    store,
  });
  const upgrade = limited(() => ({
    async onMessage({ data }) {
      const status = await held.arrive(String(data));
      if (status >= 400) throw new Error("The message failed.");
    },
  }));
  const held = heldRequests(async (key, id) => {
    let status = 200;
    const app = new Hono();
    app.get("/", async (context) => {
      const { onMessage } = await upgrade(context);
      const socket = { close: () => (status = 429) };
      await Promise.resolve(
        onMessage!(new MessageEvent("message", { data: id }), socket as never),
      ).catch(() => (status = 500));
      return context.body(null);
    });
    await app.request("/", { headers: { "x-key": key } });
    await settled();
    return { status };
  });
  return {
    request: held.request,
    look: lookAt(store, quota.limit),
    [Symbol.asyncDispose]: async () => store.shutdown(),
  };
}

export async function startFastify({ limiter, limit, windowMs }: PeerOptions): Promise<PeerServer> {
  const app: FastifyInstance = fastify();
  await app.register(fastifyRateLimit, {
    global: false,
    max: limit,
    timeWindow: windowMs,
    keyGenerator: (request) => String(request.headers["x-key"]),
    ...(limiter !== undefined && { store: fastifyRateLimitStore({ limiter, resource: "web" }) }),
  });
  const checkRateLimit = app.createRateLimit();
  app.get("/look", (request) => checkRateLimit(request, { increment: false }));
  app.get("/take", (request) => checkRateLimit(request));
  const inject = async (url: string, key: string): Promise<Look> =>
    (await app.inject({ url, headers: { "x-key": key } })).json();
  return {
    look: (key) => inject("/look", key),
    request: async (key) =>
      (await inject("/take", key)).isExceeded ? undefined : () => Promise.resolve(),
    [Symbol.asyncDispose]: () => app.close(),
  };
}

/** Its guard makes one call of its storage. */
export function startNest(blockDurationMs: number) {
  return async ({ limiter, limit, windowMs }: PeerOptions): Promise<PeerServer> => {
    const own = new ThrottlerStorageService();
    const storage =
      limiter === undefined ? own : nestThrottlerStorage({ limiter, resource: "web" });
    return {
      request: async (key) => {
        const asked = [key, windowMs, limit, blockDurationMs, "default"] as const;
        const { isBlocked } = await storage.increment(...asked);
        return isBlocked ? undefined : () => Promise.resolve();
      },
      [Symbol.asyncDispose]: async () => own.onApplicationShutdown(),
    };
  };
}

function ourStore(limiter: RateLimiter): HitStore {
  return expressRateLimitStore({ limiter, resource: "web" });
}

/** Returns what resolves when each decrement of a store has been made. */
function watchDecrements(store: { decrement(key: string): unknown }): () => Promise<unknown> {
  const decrement = store.decrement.bind(store);
  let made: Promise<unknown> = Promise.resolve();
  store.decrement = (key) => {
    const done = decrement(key);
    made = Promise.all([made, done]);
    return done;
  };
  return () => setImmediate().then(() => made);
}

/** What the middleware's `getKey` says. */
function lookAt(
  store: { get(key: string): Counted | Promise<Counted> },
  limit: number,
): (key: string) => Promise<Look> {
  return async (key) => {
    const hits = (await store.get(key))?.totalHits ?? 0;
    return { isExceeded: hits > limit, remaining: Math.max(0, limit - hits) };
  };
}

type Counted = { readonly totalHits: number } | undefined;

/** Requests whose handlers wait until the test says how they end. */
function heldRequests(send: Send): {
  readonly request: PeerServer["request"];
  /** Called by the handler: the status to respond with. */
  arrive(id: string): Promise<number>;
} {
  let count = 0;
  const arrivals = new Map<string, (end: (status: number) => void) => void>();
  return {
    async request(key) {
      const id = String((count += 1));
      const arrival = new Promise<(status: number) => void>((resolve) => {
        arrivals.set(id, resolve);
      });
      const response = send(key, id);
      const end = await Promise.race([arrival, response]);
      if (typeof end !== "function") return undefined;
      return async (status) => {
        end(status);
        await response;
      };
    },
    arrive: (id) =>
      new Promise((resolve) => {
        arrivals.get(id)!(resolve);
      }),
  };
}
