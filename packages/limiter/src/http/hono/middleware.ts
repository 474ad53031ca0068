import type { ServerResponse } from "node:http";
import type { Context, Env, ErrorHandler, MiddlewareHandler } from "hono";
import type { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import type { MaybePromise } from "../../repository/port.ts";
import type { HeldLease } from "../held-lease.ts";
import { endWhenClosed } from "../node-response.ts";
import { checkHttpOptions, type HttpLimitOptions } from "../options.ts";
import { isList, replyToError, type HeaderFields, type Reply } from "../reply.ts";
import { RequestLimit } from "../request-limit.ts";
import { WebRequest } from "../web-request.ts";
import { goneResponse, remade, withMissingFields } from "../web-response.ts";

/** What only middlewares of Hono have. */
export interface HonoOptions<E extends Env = Env> {
  /**
   * Makes the response to a request that was refused. Header fields that it lacks, such as
   * `Retry-After`, are added. @default 429 with a problem in JSON
   * @example limitRequests({ ...options, respond: (_, context) => context.text("Later", 429) });
   */
  readonly respond?: (refusal: RateLimitExceeded, context: Context<E>) => MaybePromise<Response>;
}

/**
 * Limits the requests of the routes that it is used for. Hono does not tell its environment to
 * middlewares, so name yours: `limitRequests<AppEnv>({ … })`.
 *
 * On Node's server the lease ends when the response closes. Elsewhere it ends when the body of the
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
    const admission = await limit.admit(context, () => raw.signal);
    switch (admission.verdict) {
      case "not limited":
        return next();
      case "gone":
        return goneResponse();
      case "unavailable":
        return answer(context, admission.reply);
      case "refused":
        if (respond === undefined) return answer(context, admission.reply);
        return withMissingFields(await respond(admission.refusal, context), admission.reply);
      case "granted":
    }
    const { held, headers } = admission;
    if (raw.signal.aborted) {
      held.giveBack();
      return goneResponse();
    }
    addHeaders(context, headers);
    return untilItEnds(context, held, headers, next);
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

/** What @hono/node-server puts into the environment. */
interface NodeEnvironment {
  readonly outgoing?: ServerResponse;
}

async function untilItEnds<E extends Env>(
  context: Context<E>,
  held: HeldLease<Context<E>>,
  fields: HeaderFields,
  next: () => Promise<void>,
): Promise<void> {
  const { outgoing } = (context.env ?? {}) as NodeEnvironment;
  if (outgoing?.writableFinished === false) {
    // It knows more than the body does: whether the client has got everything. And a body that is
    // a text can be sent as one.
    endWhenClosed(outgoing, held, () => context.error);
    await next();
    if (isMissing(context.res, fields)) replace(context, remade(context.res, context.res.body, fields));
    return;
  }
  const limited = new WebRequest(held, context.req.raw);
  try {
    await next();
  } catch (error) {
    limited.threw(error);
    throw error;
  }
  const missing = isMissing(context.res, fields) ? fields : {};
  replace(context, limited.responded(context.res, missing, context.error));
}
