import type { ErrorRequestHandler, NextFunction, Request, Response } from "express";
import type { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import { letThrough, sendReply } from "../node-response.ts";
import { checkHttpOptions, type HttpLimitOptions } from "../options.ts";
import { replyToError } from "../reply.ts";
import { RequestLimit } from "../request-limit.ts";

/** The options that only the Express middleware has. */
export interface ExpressOptions {
  /**
   * Answers refusals. The status 429 and the headers are set; the body is missing.
   * @default a problem in JSON
   * @example
   * limitRequests({
   *   ...options,
   *   respond: (refusal, _request, response) => response.json(refusalProblem(refusal)),
   * });
   */
  readonly respond?: (
    refusal: RateLimitExceeded,
    request: Request,
    response: Response,
    next: NextFunction,
  ) => void;
}

/**
 * A handler for any request. Its type parameters let the handlers behind it keep theirs: behind a
 * plain `RequestHandler`, `request.params.id` of a route "/items/:id" would lose its type.
 */
export interface LimitingHandler {
  /** Called by Express. */
  <P, ResBody, ReqBody, ReqQuery, Locals extends Record<string, unknown>>(
    request: Request<P, ResBody, ReqBody, ReqQuery, Locals>,
    response: Response<ResBody, Locals>,
    next: NextFunction,
  ): void;
}

/**
 * Limits the requests of an Express application, a router or a route, in Express 4 and 5. The lease
 * ends with the response. Errors in the application's options go to `next`.
 * @example
 * app.use(
 *   limitRequests({
 *     limiter,
 *     entity: (request) => clientAddress(request),
 *     resource: "web",
 *     consume: { rpm: 1 },
 *   }),
 * );
 */
export function limitRequests(
  options: HttpLimitOptions<Request> & ExpressOptions,
): LimitingHandler {
  checkHttpOptions(options, "limitRequests", ["respond"]);
  const limit = new RequestLimit(options);
  const { respond } = options;
  return (request, response, next) => {
    // What the options see of the request does not depend on its parameters.
    void limitRequest(limit, respond, request as Request, response, next);
  };
}

/**
 * Answers what handlers throw: 429 for `RateLimitExceeded`, 503 for `RateLimiterUnavailable`. Other
 * errors are passed on. Use it after the routes.
 * @example app.use(answerRefusals);
 */
export const answerRefusals: ErrorRequestHandler = (error, _request, response, next) => {
  const reply = response.headersSent ? undefined : replyToError(error);
  if (reply === undefined) next(error);
  else sendReply(response, reply);
};

/** Express 4 ignores promises, so errors are passed on here. */
async function limitRequest(
  limit: RequestLimit<Request>,
  respond: ExpressOptions["respond"],
  request: Request,
  response: Response,
  next: NextFunction,
): Promise<void> {
  let runs: boolean;
  try {
    runs = await letThrough(
      response,
      limit,
      request,
      respond && ((refusal) => respond(refusal, request, response, next)),
    );
  } catch (error) {
    return next(error);
  }
  if (runs) next();
}
