import type { IncomingMessage, ServerResponse } from "node:http";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { ValidationError } from "../core/errors.ts";
import type { MaybePromise } from "../repository/port.ts";
import { warnOnce } from "../warnings/warn-once.ts";
import { letThrough } from "./node-response.ts";
import { checkHttpOptions, type HttpLimitOptions } from "./options.ts";
import { RequestLimit } from "./request-limit.ts";

/** The options that only listeners of node:http have. */
export interface ListenerOptions<Q> {
  /**
   * Answers refusals. The status 429 and the headers are set; the body is missing.
   * @default a problem in JSON
   * @example
   * limitListener(
   *   { ...options, respond: (_refusal, _request, response) => response.end("Later, please") },
   *   listener,
   * );
   */
  readonly respond?: (
    refusal: RateLimitExceeded,
    request: Q,
    response: ServerResponse,
  ) => MaybePromise<unknown>;
  /**
   * Called when a request failed because a function of these options did, or because they do not
   * fit the limits. The client gets the status 500. @default warns once a process
   * @example limitListener({ ...options, onError: (error) => log.warn(error) }, listener);
   */
  readonly onError?: (error: unknown, request: Q) => void;
}

/**
 * Limits the requests of a plain node:http server. The lease ends with the response.
 *
 * What the listener throws is not caught, as without limits. A mistake in the options that only
 * shows in a request, such as an invalid entity id, is answered with the status 500: requests must
 * not be able to end the process. See `onError`.
 * @example
 * const listener = limitListener(
 *   {
 *     limiter,
 *     entity: (request) => clientAddress(request),
 *     resource: "web",
 *     consume: { rpm: 1 },
 *   },
 *   (_request, response) => response.end("hello"),
 * );
 * createServer(listener).listen(3000);
 */
export function limitListener<Q extends IncomingMessage = IncomingMessage>(
  options: HttpLimitOptions<Q> & ListenerOptions<Q>,
  listener: (request: Q, response: ServerResponse) => void,
): (request: Q, response: ServerResponse) => void {
  checkHttpOptions(options, "limitListener", ["respond", "onError"]);
  if (typeof listener !== "function")
    throw new ValidationError("listener", listener, "must be a function");
  const limit = new RequestLimit<Q>(options);
  const { respond, onError = warnOfError } = options;
  return async (request, response) => {
    let runs: boolean;
    try {
      runs = await letThrough(
        response,
        limit,
        request,
        respond && ((refusal) => respond(refusal, request, response)),
      );
    } catch (error) {
      fail(response);
      // `onError` may throw or reject too, and requests must not be able to end the process.
      return void (async () => onError(error, request))().catch(warnOfError);
    }
    // Errors of an asynchronous listener stay uncaught, as without limits.
    if (runs) return listener(request, response);
  };
}

/**
 * Answers that the request failed, without the reason. A response that has begun is cut off, so
 * that it does not look complete.
 */
function fail(response: ServerResponse): void {
  if (response.writableEnded) return;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.statusCode = 500;
  response.end();
}

function warnOfError(error: unknown): void {
  warnOnce(
    "WARN_LIMITER_REQUEST_FAILED",
    `A request was answered with the status 500, because it could not be limited: ${String(error)}. ` +
      "Pass onError to limitListener to see all such errors.",
  );
}
