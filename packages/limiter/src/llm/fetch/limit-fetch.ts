import type { MeteredOptions } from "../options.ts";

/** A request to a model, as `limitFetch` and `limitMiddleware` tell it to `entity`. */
export interface LlmRequest {
  /** Where the request goes. */
  readonly url: URL;
  /** Its headers. */
  readonly headers: Headers;
  /** The model; "unknown" if the body cannot be read. */
  readonly model: string;
}

/** How `limitFetch` behaves towards its client. */
export interface FetchOptions {
  /**
   * "respond": a refusal is a response with status 429 in the provider's own shape, which its SDK
   * understands. "throw": `RateLimitExceeded` is thrown. @default "respond"
   */
  readonly refusal?: "respond" | "throw";
  /**
   * "ask": streams of chat completions are asked to report their usage, and whoever did not ask for
   * that does not see it. "leave": requests are sent as they are. @default "ask"
   */
  readonly usage?: "ask" | "leave";
  /**
   * What happens to requests that are no completion, response, embedding or message. "pass": they
   * are not limited. "requests": they cost a request. @default "pass"
   */
  readonly otherPaths?: "pass" | "requests";
}

/**
 * A `fetch` that limits calls of models. It serves `new OpenAI({ fetch })`, `createOpenAI({ fetch })`,
 * LangChain's `configuration.fetch`, servers that speak OpenAI's or Anthropic's protocol, and
 * whoever calls `fetch` itself.
 * @example
 * const client = new OpenAI({
 *   fetch: limitFetch({ limiter, entity: "key-1", metering: METERING.openai }),
 * });
 */
export function limitFetch(
  _options: MeteredOptions<LlmRequest> & FetchOptions,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): typeof globalThis.fetch {
  return fetch; // to be built
}
