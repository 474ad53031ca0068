// Servers without a framework: node:http, and handlers of the web standard such as those of
// Next.js, whose further arguments must keep their types.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { RateLimiter } from "zae-limiter";
import { clientAddress, hashedId, limitHandler, limitListener } from "zae-limiter/http";
import { typeOf } from "./same.ts";

/** A server of node:http. */
export function server(limiter: RateLimiter): Server {
  const listener = limitListener(
    {
      limiter,
      entity: (request) => {
        typeOf(request).is<IncomingMessage>(true);
        return clientAddress(request);
      },
      resource: "web",
      consume: { rpm: 1 },
    },
    (request, response) => {
      typeOf(request).is<IncomingMessage>(true);
      typeOf(response).is<ServerResponse>(true);
      response.end();
    },
  );
  return createServer(listener);
}

/** A route handler that gets the parameters of its path beside the request. */
export function route(limiter: RateLimiter) {
  const handler = limitHandler(
    {
      limiter,
      entity: (request) => {
        typeOf(request).is<Request>(true);
        return hashedId("key", request.headers.get("authorization") ?? "");
      },
      resource: "web",
      consume: { rpm: 1 },
      respond: () => new Response(undefined, { status: 429 }),
    },
    async (request, context: { readonly params: Promise<{ readonly id: string }> }) => {
      typeOf(request.url).is<string>(true);
      return new Response((await context.params).id);
    },
  );
  type Expected = (
    request: Request,
    context: { readonly params: Promise<{ readonly id: string }> },
  ) => Promise<Response>;
  typeOf(handler).is<Expected>(true);
  return handler satisfies Expected;
}
