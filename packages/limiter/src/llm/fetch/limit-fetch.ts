import { ValidationError } from "../../core/errors.ts";
import type { MeteredCall } from "../metered-call.ts";
import { Meter } from "../meter.ts";
import { isMeteredAlready } from "../nested-calls.ts";
import { checkOneOf, type MeteredOptions } from "../options.ts";
import { askApplication } from "./ask-application.ts";
import { AskingFetch } from "./asked-usage.ts";
import { runExchange } from "./run-exchange.ts";
import { buildRefusalResponse } from "./build-refusal-response.ts";
import { parseSentRequest, toLlmRequest, type LlmRequest } from "./parse-sent-request.ts";
import { toCall, findReader } from "./translation.ts";

/** How `limitFetch` behaves towards its client. */
export interface FetchOptions {
  /**
   * "respond": a refusal is a response with status 429 in the provider's own shape, which its SDK
   * understands; a mistake is a 400, and a store that is unavailable a 503. "throw": the errors
   * themselves are thrown, such as `RateLimitExceeded`. @default "respond"
   */
  readonly refusal?: "respond" | "throw";
  /**
   * "ask": streams of chat completions are asked to report their usage. A caller who did not
   * request it does not see it, except that OpenAI then sends `usage: null` in all other chunks.
   * "leave": requests are sent as they are. @default "ask"
   */
  readonly usage?: "ask" | "leave";
  /**
   * What happens to requests other than completions, responses, embeddings and messages. "pass":
   * they are not limited. "requests": each costs one request of the model that it names, or of one
   * called "unknown". @default "pass"
   */
  readonly otherPaths?: "pass" | "requests";
}

/**
 * A `fetch` that limits model calls. It serves `new OpenAI({ fetch })`,
 * `createOpenAI({ fetch })`, LangChain's `configuration.fetch`, servers that speak OpenAI's or
 * Anthropic's protocol, and code that calls `fetch` itself. It sends requests with the given
 * `fetch`, or else with the one that is global when `limitFetch` is called.
 * @example
 * const client = new OpenAI({
 *   fetch: limitFetch({ limiter, entity: "key-1", metering: METERING.openai }),
 * });
 */
export function limitFetch(
  options: MeteredOptions<LlmRequest> & FetchOptions,
  fetch: typeof globalThis.fetch = globalThis.fetch,
): typeof globalThis.fetch {
  const meter = new Meter(options, "limitFetch", ["refusal", "usage", "otherPaths"]);
  checkFetch(options, fetch);
  const { refusal = "respond", usage = "ask", otherPaths = "pass" } = options;
  const asking = new AskingFetch(fetch, usage);
  return async (input, init) => {
    if (typeof init === "function")
      throw new ValidationError(
        "middleware",
        undefined,
        "limitFetch does not return a middleware: give it to the client as fetch, or use limitMiddleware",
      );
    const sent = parseSentRequest(input, init);
    const isLimited = sent?.protocol !== undefined || otherPaths === "requests";
    if (sent === undefined || !isLimited || isMeteredAlready()) return fetch(input, init);
    const { signal } = sent;
    const terms = await askApplication(meter.ask(toCall(sent), toLlmRequest(sent)), signal);
    let call: MeteredCall;
    try {
      call = await meter.beginWith(terms, signal);
    } catch (error) {
      if (refusal === "throw" || signal?.aborted === true) throw error;
      return buildRefusalResponse(error, sent.provider);
    }
    return await runExchange(call, signal, async () => {
      const { response, isAsked } = await asking.send(sent, [input, init]);
      return { response, reader: findReader(sent, response, isAsked), isShortened: isAsked };
    });
  };
}

function checkFetch(options: FetchOptions, fetch: unknown): void {
  checkOneOf("refusal", options.refusal, ["respond", "throw"]);
  checkOneOf("usage", options.usage, ["ask", "leave"]);
  checkOneOf("otherPaths", options.otherPaths, ["pass", "requests"]);
  if (typeof fetch !== "function")
    throw new ValidationError("fetch", fetch, "must be a function, such as globalThis.fetch");
}
