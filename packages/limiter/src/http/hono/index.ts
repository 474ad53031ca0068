import type { Context, Env, ErrorHandler, MiddlewareHandler } from "hono";
import type { HttpLimitOptions } from "../options.ts";

/** The frame's placeholder: branch `web` replaces it. */
export function limitRequests<E extends Env = Env>(
  _options: HttpLimitOptions<Context<E>>,
): MiddlewareHandler<E> {
  return (_context, next) => next();
}

/** The frame's placeholder: branch `web` replaces it. */
export const answerRefusals: ErrorHandler = (error) => {
  throw error;
};
