import type { ErrorRequestHandler, NextFunction, Request, RequestHandler, Response } from "express";
import type { RateLimitExceeded } from "../../core/bucket/refusal.ts";
import type { HttpLimitOptions } from "../options.ts";

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
): RequestHandler {
  return (_request, _response, next) => next();
}

/** The frame's placeholder: branch `node` replaces it. */
export const answerRefusals: ErrorRequestHandler = (error, _request, _response, next) =>
  next(error);
