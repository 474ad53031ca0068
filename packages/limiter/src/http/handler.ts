import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import type { MaybePromise } from "../repository/port.ts";
import type { HttpLimitOptions } from "./options.ts";

/** The frame's placeholder: branch `web` replaces it. */
export function limitHandler<A extends readonly unknown[]>(
  _options: HttpLimitOptions<Request> & {
    readonly respond?: (refusal: RateLimitExceeded, request: Request) => MaybePromise<Response>;
  },
  handler: (request: Request, ...rest: A) => MaybePromise<Response>,
): (request: Request, ...rest: A) => Promise<Response> {
  return async (request, ...rest) => handler(request, ...rest);
}
