import { AiSdkParts, readAnswer, readEmbeddings } from "../answers/ai-sdk-parts.ts";
import { headersOf, statusOf } from "../failures.ts";
import { Meter } from "../meter.ts";
import type { MeteredCall } from "../metered-call.ts";
import { isMeteredAlready, runMetered } from "../nested-calls.ts";
import { checkOneOf, type MeteredOptions } from "../options.ts";
import { embeddingCall, languageCall } from "./call-of-params.ts";

/** A model of the AI SDK. */
export interface AiSdkModel {
  /** Its provider. */
  readonly provider: string;
  /** Its name. */
  readonly modelId: string;
}

/** A call of the AI SDK, as its middlewares get it. */
export interface AiSdkCall {
  /** The messages, for language models. */
  readonly prompt?: unknown;
  /** The texts, for embedding models. */
  readonly values?: readonly unknown[];
  /** The most tokens that the answer may have. */
  readonly maxOutputTokens?: number | undefined;
  /** Aborts the call. */
  readonly abortSignal?: AbortSignal | undefined;
  /** Headers that the caller adds. */
  readonly headers?: Record<string, string | undefined> | undefined;
  /** Options of the caller for the provider. */
  readonly providerOptions?: unknown;
}

/** What a model answers in one piece, as far as it is read. */
interface Answer {
  /** What the provider reported. */
  readonly usage?: unknown;
  /** The response that it came with. */
  readonly response?: { readonly headers?: Record<string, string> | undefined } | undefined;
}

/** What a model answers with a stream, as far as it is read. */
interface StreamedAnswer<P> {
  /** The parts of the answer. */
  stream: ReadableStream<P>;
  /** The response that it came with. */
  readonly response?: { readonly headers?: Record<string, string> | undefined } | undefined;
}

/** A middleware for `wrapLanguageModel`. */
export interface LimitedLanguageModel<V extends string> {
  /** The version of the AI SDK's specification. */
  readonly specificationVersion: V;
  /** Called by the AI SDK. @example await middleware.wrapGenerate({ doGenerate, params, model }); */
  wrapGenerate<R extends Answer>(options: {
    doGenerate: () => PromiseLike<R>;
    params: AiSdkCall;
    model: AiSdkModel;
  }): Promise<R>;
  /** Called by the AI SDK. @example await middleware.wrapStream({ doStream, params, model }); */
  wrapStream<P, R extends StreamedAnswer<P>>(options: {
    doStream: () => PromiseLike<R>;
    params: AiSdkCall;
    model: AiSdkModel;
  }): Promise<R>;
}

/** A middleware for `wrapEmbeddingModel`. */
export interface LimitedEmbeddingModel<V extends string> {
  /** The version of the AI SDK's specification. */
  readonly specificationVersion: V;
  /** Called by the AI SDK. @example await middleware.wrapEmbed({ doEmbed, params, model }); */
  wrapEmbed<R extends Answer>(options: {
    doEmbed: () => PromiseLike<R>;
    params: AiSdkCall;
    model: AiSdkModel;
  }): Promise<R>;
}

/**
 * Limits the calls of a language model: for `wrapLanguageModel` of `ai` 5 ("v2"), 6 ("v3") and 7
 * ("v4").
 * @example
 * const middleware = limitLanguageModel({ limiter, entity: "key-1", metering: METERING.openai });
 * const model = wrapLanguageModel({ model: openai("gpt-5"), middleware });
 */
export function limitLanguageModel<V extends "v2" | "v3" | "v4" = "v4">(
  options: MeteredOptions<AiSdkCall> & {
    /** The version of the AI SDK's specification. @default "v4" */
    readonly specificationVersion?: V;
  },
): LimitedLanguageModel<V> {
  const meter = new Meter(options, "limitLanguageModel", ["specificationVersion"]);
  checkOneOf("specificationVersion", options.specificationVersion, ["v2", "v3", "v4"]);
  return {
    specificationVersion: (options.specificationVersion ?? "v4") as V,
    async wrapGenerate({ doGenerate, params, model }) {
      if (isMeteredAlready()) return doGenerate();
      const call = await meter.begin(
        languageCall(model, params, false),
        params,
        params.abortSignal,
      );
      const answer = await answerOf(call, doGenerate, params);
      await call.answered(readAnswer(answer));
      return answer;
    },
    async wrapStream({ doStream, params, model }) {
      if (isMeteredAlready()) return doStream();
      const call = await meter.begin(languageCall(model, params, true), params, params.abortSignal);
      const answer = await answerOf(call, doStream, params);
      const stream = call.watch(answer.stream, new AiSdkParts(), params.abortSignal);
      return { ...answer, stream };
    },
  };
}

/**
 * Limits the calls of an embedding model: for `wrapEmbeddingModel` of `ai` 6 ("v3") and 7 ("v4").
 * @example
 * const middleware = limitEmbeddingModel({ limiter, entity: "key-1", metering: METERING.openai });
 * const model = wrapEmbeddingModel({ model: openai.embedding("text-embedding-3-small"), middleware });
 */
export function limitEmbeddingModel<V extends "v3" | "v4" = "v4">(
  options: MeteredOptions<AiSdkCall> & {
    /** The version of the AI SDK's specification. @default "v4" */
    readonly specificationVersion?: V;
  },
): LimitedEmbeddingModel<V> {
  const meter = new Meter(options, "limitEmbeddingModel", ["specificationVersion"]);
  checkOneOf("specificationVersion", options.specificationVersion, ["v3", "v4"]);
  return {
    specificationVersion: (options.specificationVersion ?? "v4") as V,
    async wrapEmbed({ doEmbed, params, model }) {
      if (isMeteredAlready()) return doEmbed();
      const call = await meter.begin(embeddingCall(model, params), params, params.abortSignal);
      const answer = await answerOf(call, doEmbed, params);
      await call.answered(readEmbeddings(answer));
      return answer;
    },
  };
}

/** Runs a call. If it throws, the call is settled, and the mirror learns before the caller does. */
async function answerOf<R extends Pick<Answer, "response">>(
  call: MeteredCall,
  run: () => PromiseLike<R>,
  { abortSignal }: AiSdkCall,
): Promise<R> {
  try {
    const answer = await runMetered(run);
    if (answer.response?.headers !== undefined) void call.saw(answer.response.headers, 200);
    return answer;
  } catch (error) {
    await call.threw(error, abortSignal);
    const seen = call.saw(headersOf(error) ?? {}, statusOf(error) ?? 0);
    if (statusOf(error) === 429) await seen;
    throw error;
  }
}
