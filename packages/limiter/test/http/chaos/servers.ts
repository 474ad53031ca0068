/* A server for each framework and protocol, with the same limit and the same handler. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { Server } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import express4 from "express-4";
import Fastify, { type FastifyInstance } from "fastify";
import { Hono, type Context } from "hono";
import { limitRequests as limitExpress } from "zae-limiter/express";
import { limiterPlugin } from "zae-limiter/fastify";
import { limitRequests as limitHono } from "zae-limiter/hono";
import { limitHandler, limitListener, type HttpLimitOptions } from "zae-limiter/http";
import type { Answer, RawResponse } from "./behavior.ts";
import type { Protocol } from "./plan.ts";

/** The part of a run that servers need. */
export interface Handling {
  /** Options for a framework's request; `urlOf` reads that. */
  options<Q>(urlOf: (request: Q) => string): HttpLimitOptions<Q>;
  handle(url: string, raw: RawResponse): Promise<Answer>;
  /** The same for handlers of the web standard, which cannot write to a response. */
  handleWithoutWriting(url: string, raw: RawResponse): Promise<Answer>;
}

type Listening = Partial<Record<Protocol, Server>>;

const toUrl = ({ url }: { readonly url?: string | undefined }): string => url ?? "";

/** Servers that do not listen yet, by the name of their adapter. */
export const ADAPTERS: Readonly<Record<string, (handling: Handling) => Promise<Listening>>> = {
  async node(handling) {
    const listener = limitListener(
      handling.options<IncomingMessage>(toUrl),
      (request, response) => {
        handling
          .handle(toUrl(request), response)
          .then((answer) => send(response, answer))
          .catch(() => {
            if (response.headersSent) return response.destroy();
            response.statusCode = 500;
            return response.end();
          });
      },
    );
    return {
      http1: createServer(listener),
      // Requests and responses of HTTP/2 are compatible with those of node:http.
      http2: createHttp2Server(listener as unknown as Http2Listener),
    };
  },
  express5: async (handling) => ({ http1: createServer(expressApp(express, handling)) }),
  express4: async (handling) => ({ http1: createServer(expressApp(express4, handling)) }),
  async fastify(handling) {
    // Handlers see no difference. The time-out would keep each session for 72 s by default.
    const http2App = Fastify({ http2: true, http2SessionTimeout: 1000 });
    const apps = [Fastify(), http2App as unknown as FastifyInstance];
    for (const app of apps) {
      await app.register(limiterPlugin, handling.options(toUrl));
      app.all("*", async (request, reply) => {
        const answer = await handling.handle(request.url, reply.raw);
        if (answer === undefined) return reply.hijack();
        return typeof answer === "string" ? answer : Readable.from(answer);
      });
      await app.ready();
    }
    return { http1: apps[0]!.server, http2: apps[1]!.server };
  },
  async hono(handling) {
    const app = new Hono<{ Bindings: Bindings }>();
    app.onError((_error, context) => context.text("failed", 500));
    app.use(limitHono(handling.options((context: Context) => context.req.path)));
    app.all("*", (context) => respond(handling, context.req.raw, context.env));
    return honoServers(app.fetch);
  },
  async handler(handling) {
    const limited = limitHandler(
      handling.options<Request>(({ url }) => new URL(url).pathname),
      (request, bindings: Bindings) => respond(handling, request, bindings),
    );
    return honoServers(limited);
  },
};

/** What its server passes on with a request. */
interface Bindings {
  readonly outgoing: ServerResponse;
}

type Http2Listener = Parameters<typeof createHttp2Server>[1];

function expressApp(create: typeof express, handling: Handling): RequestListener {
  const app = create();
  // In this mode it prints no errors.
  app.set("env", "test");
  app.use(limitExpress(handling.options(toUrl)));
  app.use((request, response, next) => {
    handling
      .handle(request.url, response)
      .then((answer) => send(response, answer))
      .catch(next);
  });
  return app;
}

function honoServers(fetch: (request: Request, bindings: Bindings) => unknown): Listening {
  // Over HTTP/2, too, its response is compatible with that of node:http.
  const options = { fetch: fetch as Parameters<typeof createAdaptorServer>[0]["fetch"] };
  return {
    http1: createAdaptorServer(options),
    http2: createAdaptorServer({ ...options, createServer: createHttp2Server }),
  };
}

/** A handler of the web standard may destroy the response of Node. It has no way to write to it. */
async function respond(
  handling: Handling,
  request: Request,
  { outgoing }: Bindings,
): Promise<Response> {
  // Over HTTP/2, this server destroys the response to a request whose body was not read.
  request.text().catch(() => {});
  const answer = await handling.handleWithoutWriting(new URL(request.url).pathname, outgoing);
  return new Response(typeof answer === "object" ? toStream(answer) : (answer ?? "cut off"));
}

/** A handler cannot do anything about a stream that fails or whose client leaves. */
async function send(response: ServerResponse, answer: Answer): Promise<void> {
  if (typeof answer === "string") response.end(answer);
  else if (answer !== undefined) await pipeline(Readable.from(answer), response).catch(() => {});
}

function toStream(pieces: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(new TextEncoder().encode(value));
    },
    cancel: async () => void (await iterator.return?.()),
  });
}
