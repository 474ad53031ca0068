import { ValidationError } from "../../core/errors.ts";
import { askApplication } from "../fetch/ask-application.ts";
import { runExchange } from "../fetch/run-exchange.ts";
import { parseSentRequest, toLlmRequest, type LlmRequest } from "../fetch/parse-sent-request.ts";
import { toCall, findReader } from "../fetch/translation.ts";
import { Meter } from "../meter.ts";
import { isMeteredAlready } from "../nested-calls.ts";
import type { MeteredOptions } from "../options.ts";

/**
 * A middleware of Anthropic's SDK, from version 1 on.
 * @example
 * const middleware = limitMiddleware({ ...metered, entity: "key-1" });
 */
export type AnthropicMiddleware = <
  Q extends {
    /** Where the request goes. */
    readonly url: string;
    /** Its body, in JSON. */
    readonly body?: unknown;
    /** Its headers. */
    readonly headers: Headers;
    /** Aborts it. */
    readonly signal?: AbortSignal | null | undefined;
  },
>(
  request: Q,
  next: (request: Q) => Promise<Response>,
  context: {
    /** What the client was called with. */
    readonly options?:
      | {
          /** The body, before any middleware changed it. */
          readonly body?: unknown;
          /** Whether the answer is streamed. */
          readonly stream?: boolean | undefined;
        }
      | undefined;
  },
) => Promise<Response>;

/**
 * Limits the calls of an Anthropic client, whatever backend it uses. A refusal is thrown as
 * `RateLimitExceeded`, which the client does not retry.
 * @example
 * const client = new Anthropic({
 *   middleware: [limitMiddleware({ limiter, entity: "key-1", metering: METERING.anthropic })],
 * });
 */
export function limitMiddleware(options: MeteredOptions<LlmRequest>): AnthropicMiddleware {
  const meter = new Meter(options, "limitMiddleware");
  return async (request, next) => {
    if (typeof next !== "function")
      throw new ValidationError(
        "fetch",
        undefined,
        "limitMiddleware does not return a fetch function: give it to the client as middleware, or use limitFetch",
      );
    // The request and not `context.options`: a middleware further out may have changed it.
    const sent = parseSentRequest(request.url, request as RequestInit);
    if (sent?.protocol === undefined || isMeteredAlready()) return next(request);
    const { signal } = sent;
    const terms = await askApplication(meter.ask(toCall(sent), toLlmRequest(sent)), signal);
    const call = await meter.beginWith(terms, signal);
    return runExchange(call, signal, async () => {
      const response = await next(request);
      return { response, reader: findReader(sent, response, false), isShortened: false };
    });
  };
}
