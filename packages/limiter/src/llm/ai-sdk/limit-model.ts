import type { MeteredOptions } from "../options.ts";

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

interface Answer {
  readonly usage?: unknown;
  readonly response?: { readonly headers?: Record<string, string> | undefined } | undefined;
}

interface StreamedAnswer<P> {
  stream: ReadableStream<P>;
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
  return {
    specificationVersion: (options.specificationVersion ?? "v4") as V,
    wrapGenerate: async ({ doGenerate }) => doGenerate(), // to be built
    wrapStream: async ({ doStream }) => doStream(), // to be built
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
  return {
    specificationVersion: (options.specificationVersion ?? "v4") as V,
    wrapEmbed: async ({ doEmbed }) => doEmbed(), // to be built
  };
}
