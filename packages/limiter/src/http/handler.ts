import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { ValidationError } from "../core/errors.ts";
import type { MaybePromise } from "../repository/port.ts";
import type { RequestLease } from "./request-lease.ts";
import { findOutgoing, NodeClient } from "./node-response.ts";
import { checkHttpOptions, type HttpLimitOptions } from "./options.ts";
import { RequestLimit } from "./request-limit.ts";
import { WebClient, WebRequest } from "./web-request.ts";
import {
  checkResponse,
  buildGoneResponse,
  toResponse,
  withFields,
  withMissingFields,
} from "./web-response.ts";

/**
 * Limits a handler of the web standard, such as a route of Next.js or a server of Bun or Deno. The
 * lease ends when the body of the response was read to its end or cancelled, when the client goes
 * away, or when the handler throws. While a body is not read, its lease stays open, and the
 * charge stays. With the bindings of @hono/node-server it ends with the response of Node.
 * @example
 * const POST = limitHandler(
 *   {
 *     limiter,
 *     entity: (request) => hashedId("key", request.headers.get("authorization") ?? ""),
 *     resource: "chat",
 *     consume: { rpm: 1 },
 *   },
 *   async (request) => Response.json({ length: (await request.text()).length }),
 * );
 */
export function limitHandler<A extends readonly unknown[]>(
  options: HttpLimitOptions<Request> & {
    /**
     * Makes the response to a request that was refused. Header fields that it lacks, such as
     * `Retry-After`, are added. @default 429 with a problem in JSON
     * @example limitHandler({ ...options, respond: () => Response.json({ ok: false }) }, handler);
     */
    readonly respond?: (refusal: RateLimitExceeded, request: Request) => MaybePromise<Response>;
  },
  handler: (request: Request, ...rest: A) => MaybePromise<Response>,
): (request: Request, ...rest: A) => Promise<Response> {
  checkHttpOptions(options, "limitHandler", ["respond"]);
  if (typeof handler !== "function")
    throw new ValidationError("handler", handler, "must be a function that returns a Response");
  const limit = new RequestLimit(options);
  const { respond } = options;
  return async (request, ...rest) => {
    const outgoing = findOutgoing(rest[0]);
    const node = outgoing && new NodeClient(outgoing);
    const result = await limit.admit(request, node ?? new WebClient(request));
    switch (result.verdict) {
      case "not limited":
        return handler(request, ...rest);
      case "gone":
        return buildGoneResponse();
      case "unavailable":
        return toResponse(result.reply);
      case "refused":
        if (respond === undefined) return toResponse(result.reply);
        return withMissingFields(await respond(result.refusal, request), result.reply);
      case "granted":
    }
    const { lease, headers } = result;
    const limited = node === undefined ? new WebRequest(lease, request) : endOnNode(lease, node);
    try {
      const response = await handler(request, ...rest);
      checkResponse(response, `the handler ${handler.name}`.trimEnd());
      return limited.onResponse(response, headers);
    } catch (error) {
      limited.onThrown(error);
      throw error;
    }
  };
}

/** The same two methods as those of a request whose body is watched. */
function endOnNode<Q>(
  lease: RequestLease<Q>,
  node: NodeClient,
): Pick<WebRequest<Q>, "onResponse" | "onThrown"> {
  let thrown: unknown;
  node.endWithResponse(lease, () => thrown);
  return { onResponse: withFields, onThrown: (error) => (thrown = error) };
}
