import type { ErrorRequestHandler, NextFunction, Request, Response } from "express";
import type { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import type { HttpLimitOptions } from "../options.ts";

/**
 * A middleware for routes of every type. It is generic because a plain `RequestHandler` would make
 * Express forget the parameters of the path that it stands in.
 */
export type LimitedRoute = <P, ResBody, ReqBody, ReqQuery, Locals extends Record<string, unknown>>(
  request: Request<P, ResBody, ReqBody, ReqQuery, Locals>,
  response: Response<ResBody, Locals>,
  next: NextFunction,
) => void;

/** The frame's placeholder: branch `node` replaces it. */
export function limitRequests(
  _options: HttpLimitOptions<Request> & {
    readonly respond?: (
      refusal: RateLimitExceeded,
      request: Request,
      response: Response,
      next: NextFunction,
    ) => void;
  },
): LimitedRoute {
  return (_request, _response, next) => next();
}

/** The frame's placeholder: branch `node` replaces it. */
export const answerRefusals: ErrorRequestHandler = (error, _request, _response, next) =>
  next(error);
