import type { LlmRequest } from "../fetch/limit-fetch.ts";
import type { MeteredOptions } from "../options.ts";

/** A middleware of Anthropic's SDK, from version 1 on. */
export type AnthropicMiddleware = <
  Q extends {
    readonly url: string;
    readonly body?: unknown;
    readonly headers: Headers;
    readonly signal?: AbortSignal | null | undefined;
  },
>(
  request: Q,
  next: (request: Q) => Promise<Response>,
  context: {
    readonly options?:
      | { readonly body?: unknown; readonly stream?: boolean | undefined }
      | undefined;
  },
) => Promise<Response>;

/**
 * Limits the calls of an Anthropic client, whatever backend it uses.
 * @example
 * const client = new Anthropic({
 *   middleware: [limitMiddleware({ limiter, entity: "key-1", metering: METERING.anthropic })],
 * });
 */
export function limitMiddleware(_options: MeteredOptions<LlmRequest>): AnthropicMiddleware {
  return (request, next) => next(request); // to be built
}
