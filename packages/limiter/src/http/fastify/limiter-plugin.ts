import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";
import type { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import { ValidationError } from "../../core/errors.ts";
import type { HeaderFields } from "../headers/options.ts";
import { listWith, NodeClient } from "../node-response.ts";
import { checkHttpOptions, type HttpLimitOptions } from "../options.ts";
import { headersWithoutType, LIST_FIELDS, markShown, replyToError, type Reply } from "../reply.ts";
import { RequestLimit } from "../request-limit.ts";

/** The options that only the Fastify hooks have. */
export interface FastifyOptions {
  /**
   * Answers refusals, as a handler of Fastify does: what it returns is sent. The status 429 and the
   * headers are set. @default a problem in JSON
   * @example limitRequests({ ...options, respond: () => ({ error: "Later, please" }) });
   */
  readonly respond?: (
    refusal: RateLimitExceeded,
    request: FastifyRequest,
    reply: FastifyReply,
  ) => unknown;
}

/** When a request is limited, from the earliest to the latest. */
const HOOKS = ["onRequest", "preParsing", "preValidation", "preHandler"] as const;

type LimitHook = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/**
 * Limits the requests of all routes of the instance that it is registered on, and of instances that
 * are registered afterwards. `hook` says when; after "onRequest" a request has no body yet.
 *
 * The headers are set on Fastify's reply. A handler that hijacks it, or writes to `reply.raw`, has
 * to pass them on itself; `reply.getHeaders()` returns them.
 * @example
 * await app.register(limiterPlugin, {
 *   limiter,
 *   entity: (request) => clientAddress(request),
 *   resource: "web",
 *   consume: { rpm: 1 },
 * });
 */
export const limiterPlugin: FastifyPluginAsync<
  HttpLimitOptions<FastifyRequest> &
    FastifyOptions & {
      /** The hook in which requests are limited. @default "onRequest" */
      readonly hook?: "onRequest" | "preParsing" | "preValidation" | "preHandler";
    }
> = async (instance, { hook = "onRequest", ...options }) => {
  if (!HOOKS.includes(hook))
    throw new ValidationError("hook", hook, `must be one of ${HOOKS.join(", ")}`);
  const errors = new WeakMap<FastifyRequest, unknown>();
  const limit = buildHook(options, "limiterPlugin", (request) => errors.get(request));
  instance.addHook("onError", async (request, _reply, error) => void errors.set(request, error));
  // The hooks differ in their arguments, of which the limit needs the first two.
  instance.addHook(hook as "onRequest", limit);
};

// Fastify gives every plugin an instance of its own, whose hooks apply to no other, unless the
// plugin has these symbols. The package fastify-plugin sets the same ones.
Object.assign(limiterPlugin, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "zae-limiter",
  [Symbol.for("plugin-meta")]: { name: "zae-limiter", fastify: "5.x" },
});

/**
 * Limits the requests of one route, as its hook `onRequest`, or a later one that knows the body.
 * @example
 * app.post("/chat", {
 *   preHandler: limitRequests({
 *     limiter,
 *     entity: (request) => hashedId("key", request.headers.authorization ?? ""),
 *     resource: "chat",
 *     consume: { rpm: 1 },
 *   }),
 *   handler,
 * });
 */
export function limitRequests(
  options: HttpLimitOptions<FastifyRequest> & FastifyOptions,
): (request: FastifyRequest, reply: FastifyReply) => Promise<unknown> {
  return buildHook(options, "limitRequests");
}

/**
 * Answers what handlers throw: 429 for `RateLimitExceeded`, 503 for `RateLimiterUnavailable`.
 * Returns false if the error is neither, or if headers were sent; then another handler has to
 * answer.
 * @example
 * app.setErrorHandler((error, request, reply) => {
 *   if (!answerRefusals(error, request, reply)) reply.send(error);
 * });
 */
export function answerRefusals(
  error: unknown,
  _request: FastifyRequest,
  reply: FastifyReply,
): boolean {
  const answer = replyToError(error);
  if (answer === undefined || reply.sent || reply.raw.headersSent) return false;
  send(reply, answer);
  return true;
}

function buildHook(
  options: HttpLimitOptions<FastifyRequest> & FastifyOptions,
  owner: string,
  getError?: (request: FastifyRequest) => unknown,
): LimitHook {
  checkHttpOptions(options, owner, ["respond"]);
  const limit = new RequestLimit(options);
  const { respond } = options;
  return async (request, reply) => {
    const client = new NodeClient(reply.raw);
    const result = await limit.admit(request, client);
    if (result.verdict === "granted") {
      client.endWithResponse(result.lease, getError && (() => getError(request)));
      return addHeaders(reply, result.headers);
    }
    if (result.verdict === "not limited") return undefined;
    // The client left. Without this, Fastify would run the handler.
    if (result.verdict === "gone") return reply.hijack();
    const isRefused = result.verdict === "refused";
    if (reply.raw.headersSent) throw isRefused ? result.refusal : result.error;
    if (!isRefused || respond === undefined) return send(reply, result.reply);
    prepare(reply, result.reply.status, headersWithoutType(result.reply));
    markShown(result.refusal);
    return answerWith(reply, await respond(result.refusal, request, reply));
  };
}

/**
 * As bytes: Fastify would add a charset to the content type of a string, and serialize it again.
 */
function send(reply: FastifyReply, answer: Reply): FastifyReply {
  prepare(reply, answer.status, answer.headers);
  // A handler that failed may have set headers that describe a body it did not send.
  reply.removeHeader("content-length").removeHeader("content-encoding");
  return reply.send(Buffer.from(answer.body));
}

/** Not by `reply.code`: if `respond` throws, that is a mistake of the application, so a 500. */
function prepare(reply: FastifyReply, status: number, fields: HeaderFields): void {
  reply.raw.statusCode = status;
  addHeaders(reply, fields);
}

/**
 * Sets header fields, unless they were sent. They are Fastify's and not the raw response's: Node
 * would then check and copy all fields of the response one by one (0.6 µs for each request).
 */
function addHeaders(reply: FastifyReply, fields: HeaderFields): void {
  if (reply.raw.headersSent) return;
  for (const name in fields) {
    const there = LIST_FIELDS.has(name) ? reply.getHeader(name) : undefined;
    reply.header(name, listWith(there, fields[name]!));
  }
}

/** Sends what `respond` returned, unless it has sent something itself, or will. */
function answerWith(reply: FastifyReply, payload: unknown): FastifyReply {
  return payload === undefined || payload === reply || reply.sent ? reply : reply.send(payload);
}
