import type { Context, Env, ErrorHandler, MiddlewareHandler } from "hono";
import type { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import type { MaybePromise } from "../../repository/port.ts";
import type { RequestLease } from "../request-lease.ts";
import {
  addHeaders as addToOutgoing,
  findOutgoing,
  NodeClient,
  prepareReply,
} from "../node-response.ts";
import { checkHttpOptions, type HttpLimitOptions } from "../options.ts";
import type { HeaderFields } from "../headers/options.ts";
import { LIST_FIELDS, markShown, replyToError, type Reply } from "../reply.ts";
import { RequestLimit } from "../request-limit.ts";
import { WebClient, WebRequest } from "../web-request.ts";
import { buildGoneResponse, withMissingFields } from "../web-response.ts";

/** The options that only the Hono middleware has. */
export interface HonoOptions<E extends Env = Env> {
  /**
   * Makes the response to a request that was refused. Header fields that it lacks, such as
   * `Retry-After`, are added. @default 429 with a problem in JSON
   * @example limitRequests({ ...options, respond: (_, context) => context.text("Later", 429) });
   */
  readonly respond?: (refusal: RateLimitExceeded, context: Context<E>) => MaybePromise<Response>;
}

/**
 * Limits the requests of the routes that it is used for. Hono does not infer the environment of
 * middlewares, so name yours: `limitRequests<AppEnv>({ … })`.
 *
 * On Node's server the lease ends with the response. Elsewhere it ends when the body of the
 * response was read to its end or cancelled, or when the client goes away.
 * @example
 * app.use(
 *   limitRequests({
 *     limiter,
 *     entity: (context) => hashedId("key", context.req.header("authorization") ?? ""),
 *     resource: "web",
 *     consume: { rpm: 1 },
 *   }),
 * );
 */
export function limitRequests<E extends Env = Env>(
  options: HttpLimitOptions<Context<E>> & HonoOptions<E>,
): MiddlewareHandler<E> {
  checkHttpOptions(options, "limitRequests", ["respond"]);
  const limit = new RequestLimit<Context<E>>(options);
  const { respond } = options;
  return async (context, next) => {
    const { raw } = context.req;
    const outgoing = findOutgoing(context.env);
    const node = outgoing && new NodeClient(outgoing);
    const result = await limit.admit(context, node ?? new WebClient(raw));
    switch (result.verdict) {
      case "not limited":
        return next();
      case "gone":
        return buildGoneResponse();
      case "unavailable":
        return answer(context, result.reply);
      case "refused":
        if (respond === undefined) return answer(context, result.reply);
        return buildResponse(context, result, respond);
      case "granted":
    }
    const { lease, headers } = result;
    lease.alsoFor(raw);
    // On Node's server the headers go to Node's response. So responses that were made without the
    // context have them too and need no copy, and a text body stays a text: a watched body costs
    // three times the CPU.
    if (node !== undefined) {
      node.endWithResponse(lease, () => context.error);
      addToOutgoing(node.response, headers);
      return next();
    }
    addHeaders(context, headers);
    return watchBody(context, lease, headers, next);
  };
}

/**
 * An error handler: 429 for `RateLimitExceeded`, 503 for `RateLimiterUnavailable`. Other errors are
 * answered as Hono does without a handler.
 * @example app.onError(answerRefusals);
 */
export const answerRefusals: ErrorHandler = (error, context) => {
  const reply = replyToError(error);
  if (reply !== undefined) return answer(context, reply);
  if ("getResponse" in error) {
    const response = error.getResponse();
    return context.newResponse(response.body, response);
  }
  console.error(error);
  return context.text("Internal Server Error", 500);
};

async function watchBody<E extends Env>(
  context: Context<E>,
  lease: RequestLease<Context<E>>,
  fields: HeaderFields,
  next: () => Promise<void>,
): Promise<void> {
  const limited = new WebRequest(lease, context.req.raw);
  try {
    await next();
  } catch (error) {
    limited.onThrown(error);
    throw error;
  }
  const { res, error } = context;
  const isBare = lacks(res, fields);
  const watched = limited.onResponse(res, isBare ? fields : {}, error);
  replace(context, isBare ? markBare(watched) : watched);
}

function answer(context: Context, { status, headers, body }: Reply): Response {
  addHeaders(context, headers);
  context.header("Content-Type", headers["Content-Type"]);
  // A handler that failed may have set headers that describe a body it did not send.
  context.header("Content-Length", undefined);
  context.header("Content-Encoding", undefined);
  return context.body(body, status);
}

function addHeaders(context: Context, fields: HeaderFields): void {
  const outgoing = findOutgoing(context.env);
  if (outgoing !== undefined) return addToOutgoing(outgoing, fields);
  for (const name in fields) context.header(name, fields[name], { append: LIST_FIELDS.has(name) });
}

/** The application's response to a refusal, with the fields that it left out. */
async function buildResponse<E extends Env>(
  context: Context<E>,
  { refusal, reply }: { readonly refusal: RateLimitExceeded; readonly reply: Reply },
  respond: NonNullable<HonoOptions<E>["respond"]>,
): Promise<Response> {
  const outgoing = findOutgoing(context.env);
  if (outgoing !== undefined) {
    const response = await respond(refusal, context);
    prepareReply(outgoing, reply);
    return response;
  }
  const lists = Object.entries(reply.headers).filter(([name]) => LIST_FIELDS.has(name));
  addHeaders(context, Object.fromEntries(lists));
  markShown(refusal);
  return withMissingFields(await respond(refusal, context), reply);
}

/**
 * Marks a response made without the context, because the fields of an inner middleware may equal
 * ours.
 */
const BARE = Symbol("zae-limiter bare response");

function markBare(response: Response): Response {
  return Object.assign(response, { [BARE]: true });
}

/** Whether the handler made its response without the context, which holds the fields. */
function lacks(response: Response, fields: HeaderFields): boolean {
  if (BARE in response) return true;
  const { headers } = response;
  for (const name in fields) {
    const there = headers.get(name);
    if (there === null) return true;
    if (LIST_FIELDS.has(name) && !there.includes(fields[name]!)) return true;
  }
  return false;
}

/** Hono would copy the headers of an existing response into the new one. */
function replace(context: Context, response: Response): void {
  context.res = undefined;
  context.res = response;
}
