import { getRequestListener } from "@hono/node-server";
import { Hono, type Context } from "hono";
import { RateLimiterUnavailable, RateLimitExceeded } from "zae-limiter";
import { answerRefusals, limitRequests } from "zae-limiter/hono";
import { getLease, limitHandler } from "zae-limiter/http";
import {
  listen,
  optionsFor,
  type Answer,
  type Call,
  type CallOptions,
  type Handler,
  type RunningServer,
  type ServerAdapter,
} from "./server-adapter.ts";
import { http1, type Transport } from "./transport.ts";

export const honoServer = honoOver(http1);
export const honoBodyServer = honoBodyOver(http1);
export const webHandler = webHandlerOver(http1);
export const nodeHandler = nodeHandlerOver(http1);

/** Hono on its server for Node, where the lease ends with the response of Node. */
export function honoOver(transport: Transport): ServerAdapter {
  return honoAdapter("Hono on Node", transport, (app) => app.fetch);
}

/** Hono without the bindings of a platform, as everywhere else: the lease ends with the body. */
export function honoBodyOver(transport: Transport): ServerAdapter {
  return honoAdapter("Hono", transport, (app) => (request) => app.fetch(request));
}

/** A handler of the web standard, behind a server that converts Node's requests. */
export function webHandlerOver(transport: Transport): ServerAdapter {
  return handlerAdapter("limitHandler", transport, (bindings) => void bindings);
}

/** The same with the bindings of that server: the lease ends with the response of Node. */
export function nodeHandlerOver(transport: Transport): ServerAdapter {
  return handlerAdapter("limitHandler on Node", transport, (bindings) => bindings);
}

function handlerAdapter(
  name: string,
  transport: Transport,
  passed: (bindings: unknown) => unknown,
): ServerAdapter {
  return { name, start };

  function start(middlewares: readonly CallOptions[], handler: Handler): Promise<RunningServer> {
    const errors: unknown[] = [];
    let limited = async (request: Request, _bindings: unknown): Promise<Response> =>
      toResponse(await handler(webCall(request, request)));
    for (const options of middlewares.toReversed()) {
      const { respondWith } = options;
      limited = limitHandler(
        {
          ...optionsFor(options, (request: Request) => webCall(request, request)),
          ...(respondWith && {
            respond: (refusal) => new Response(respondWith(refusal), { status: 429 }),
          }),
        },
        limited,
      );
    }
    return serve(
      async (request, bindings) => {
        try {
          return await limited(request, passed(bindings));
        } catch (error) {
          errors.push(error);
          return new Response(null, { status: 500 });
        }
      },
      errors,
      transport,
    );
  }
}

type Fetch = (request: Request, bindings?: unknown) => Response | Promise<Response>;

function honoAdapter(
  name: string,
  transport: Transport,
  fetchOf: (app: Hono) => Fetch,
): ServerAdapter {
  function start(
    middlewares: readonly CallOptions[],
    handler: Handler,
    answers?: typeof answerRefusals,
  ): Promise<RunningServer> {
    const errors: unknown[] = [];
    const app = new Hono();
    app.onError((error, context) => {
      const isOurs = error instanceof RateLimitExceeded || error instanceof RateLimiterUnavailable;
      if (isOurs && answers !== undefined) return answers(error, context);
      errors.push(error);
      return context.body(null, 500);
    });
    for (const options of middlewares) {
      const { respondWith } = options;
      app.use(
        limitRequests({
          ...optionsFor(options, honoCall),
          ...(respondWith && {
            respond: (refusal, context) => context.text(respondWith(refusal), 429),
          }),
        }),
      );
    }
    app.all("*", async (context) => toResponse(await handler(honoCall(context))));
    return serve(fetchOf(app), errors, transport);
  }
  return {
    name,
    start: (middlewares, handler) => start(middlewares, handler),
    startAnsweringRefusals: (handler) => start([], handler, answerRefusals),
  };
}

function honoCall(context: Context): Call {
  return webCall(context.req.raw, context);
}

function webCall(request: Request, owner: object): Call {
  const { pathname, search } = new URL(request.url);
  return {
    path: pathname + search,
    header: (name) => request.headers.get(name) ?? undefined,
    body: () => request.text(),
    lease: () => getLease(owner),
  };
}

function toResponse({ status = 200, headers = {}, body = "" }: Answer): Response {
  return new Response(typeof body === "string" ? body : toStream(body), { status, headers });
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

/** The server replaces them with lighter classes, which are faster on Node. */
const { Request, Response } = globalThis;

/** Serves with the classes of the server, as by default, and removes them at the end. */
export async function serve(
  fetch: Fetch,
  errors: readonly unknown[],
  transport: Transport = http1,
): Promise<RunningServer> {
  const server = await listen(transport.create(getRequestListener(fetch)), errors);
  return {
    ...server,
    close: async () => {
      await server.close();
      Object.assign(globalThis, { Request, Response });
    },
  };
}
