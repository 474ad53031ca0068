/*
 * One of several server processes on one file. Each framework has a port of its own; all of them
 * take from the same repository. Headers of a request say what it is called (x-name), who sends it
 * (x-entity), what it takes (x-cost), and how long it may wait (the path /wait or /now). What has
 * happened is told when the parent asks. Usage: node server.js FILE
 */
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import express from "express";
import Fastify from "fastify";
import { Hono, type Context } from "hono";
import { RateLimiter } from "zae-limiter";
import { limitRequests as limitExpress } from "zae-limiter/express";
import { limitRequests as limitFastify } from "zae-limiter/fastify";
import { limitRequests as limitHono } from "zae-limiter/hono";
import { limitListener } from "zae-limiter/http";
import { SqliteRepository } from "zae-limiter/sqlite";

/** What a server has seen so far, each in its order. */
export interface Seen {
  /** Requests, before any middleware saw them. */
  readonly arrived: readonly Moment[];
  /** Handlers that ran: the time was read after the grant. */
  readonly ran: readonly Moment[];
  /** Requests whose connection was closed, or whose response was sent. */
  readonly closed: readonly string[];
  /** Leases that were ended: their store has answered. */
  readonly settled: number;
}

/** A request by its name, and when something happened to it. */
export interface Moment {
  readonly name: string;
  readonly atMs: number;
}

/** What the parent sends: "see" is answered with what was seen, "let-go" ends held requests. */
export type Order = "see" | "let-go";

/** The frameworks, by the names of their ports. */
export const FRAMEWORKS = ["express", "fastify", "hono", "node"] as const;
/** One of them. */
export type Framework = (typeof FRAMEWORKS)[number];

/** Longer than the limits need: who could not be granted in time is refused at once. */
const LONGEST_WAIT_MS = 7 * 86_400_000;

if (process.argv[1]?.endsWith("server.js")) await serve(process.argv[2]!);

async function serve(path: string): Promise<void> {
  const repository = await SqliteRepository.open(path);
  const limiter = new RateLimiter({ repository });
  const seen = {
    arrived: [] as Moment[],
    ran: [] as Moment[],
    closed: [] as string[],
    settled: 0,
  };
  const held: (() => void)[] = [];

  /** The options of every framework: `header` reads one of a request. */
  const optionsFor = <Q>(waitUpToMs: number, header: (request: Q, name: string) => string) => ({
    limiter,
    entity: (request: Q) => header(request, "x-entity"),
    resource: "http",
    consume: (request: Q) => ({ tokens: Number(header(request, "x-cost")) }),
    waitUpToMs,
    settle: ({ request }: { readonly request: Q }) =>
      header(request, "x-end") === "give-back" ? ("give-back" as const) : undefined,
    waitUntil: (settled: Promise<void>) => void settled.then(() => (seen.settled += 1)),
  });
  /** What every handler does: it tells that it ran, and goes on when it is let go. */
  const handle = async (header: (name: string) => string): Promise<string> => {
    const atMs = Date.now();
    seen.ran.push({ name: header("x-name"), atMs });
    if (header("x-hold") === "yes") await new Promise<void>((resolve) => held.push(resolve));
    return "done";
  };
  const paths = [
    ["/now", 0],
    ["/wait", LONGEST_WAIT_MS],
  ] as const;

  const withExpress = express();
  const withFastify = Fastify({
    serverFactory: (listener) => watch(listener),
  });
  const withHono = new Hono();
  for (const [route, waitUpToMs] of paths) {
    withExpress.get(
      route,
      limitExpress(optionsFor(waitUpToMs, (request, name) => request.get(name) ?? "")),
      (request, response) => {
        void handle((name) => request.get(name) ?? "").then((text) => response.send(text));
      },
    );
    withFastify.get(
      route,
      {
        onRequest: limitFastify(
          optionsFor(waitUpToMs, (request, name) => String(request.headers[name])),
        ),
      },
      (request) => handle((name) => String(request.headers[name])),
    );
    withHono.get(
      route,
      limitHono(optionsFor(waitUpToMs, (context: Context, name) => context.req.header(name) ?? "")),
      async (context) => context.text(await handle((name) => context.req.header(name) ?? "")),
    );
  }
  const [nowListener, waitListener] = paths.map(([, waitUpToMs]) =>
    limitListener(
      optionsFor(waitUpToMs, (request: IncomingMessage, name) => String(request.headers[name])),
      (request, response) => {
        void handle((name) => String(request.headers[name])).then((text) => response.end(text));
      },
    ),
  );

  /** Writes down what arrives and what is closed, outside of the framework and its middleware. */
  function watch(listener: RequestListener) {
    return createServer((request, response) => {
      const name = String(request.headers["x-name"]);
      seen.arrived.push({ name, atMs: Date.now() });
      response.once("close", () => seen.closed.push(name));
      listener(request, response);
    });
  }

  await withFastify.ready();
  const servers = {
    express: watch(withExpress),
    fastify: withFastify.server,
    hono: watch(getRequestListener(withHono.fetch)),
    node: watch((request, response) =>
      (request.url === "/wait" ? waitListener : nowListener)!(request, response),
    ),
  };
  const ports: Partial<Record<Framework, number>> = {};
  for (const framework of FRAMEWORKS) {
    const server = servers[framework];
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    ports[framework] = (server.address() as AddressInfo).port;
  }
  process.on("message", (order: Order) => {
    if (order === "see") process.send?.(seen);
    else for (const letGo of held.splice(0)) letGo();
  });
  process.send?.(ports);
}
