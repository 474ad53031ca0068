/* Calls of LLMs: metering, and one adapter for each client. Classes have private parts, so those of the library itself are the built ones. */

declare module "declared/zae-limiter/llm" {
  import type { OnUnavailable, RateLimiter } from "zae-limiter";
  import type { MaybePromise } from "declared/zae-limiter/http";
  /** Tokens of one answer. `input` excludes cached and cache-write tokens; `output` includes reasoning. */
  export interface TokenUsage {
    readonly input: number;
    readonly cachedInput: number;
    readonly cacheWriteInput: number;
    readonly output: number;
    readonly reasoning: number;
  }
  export type TokenKind = "requests" | keyof TokenUsage;
  /** What each limit counts: a weight for each kind. Costs are rounded up to whole tokens. */
  export type Metering = Readonly<Record<string, Readonly<Partial<Record<TokenKind, number>>>>>;
  export const METERING: {
    readonly openai: Metering; // rpm: requests; tpm: input, cachedInput, cacheWriteInput, output
    readonly anthropic: Metering; // rpm: requests; itpm: input, cacheWriteInput; otpm: output
  };
  /** What is known before the call. */
  export interface LlmCall {
    readonly model: string;
    readonly textBytes: number;
    readonly texts: () => Iterable<string>; // texts: for tokenizers only
    readonly images: number;
    readonly choices: number;
    readonly maxOutputTokens: number | undefined;
    readonly stream: boolean;
  }
  export interface Estimate {
    readonly input: number;
    readonly output: number;
  }
  export interface Estimator {
    estimate(call: LlmCall): Estimate;
    learn?(call: LlmCall, estimate: Estimate, usage: TokenUsage): void;
    tokensOf?(call: LlmCall, textBytes: number): number;
  }
  export interface SimpleEstimatorOptions {
    readonly bytesPerToken?: number; // 4 UTF-8 bytes
    readonly tokensPerImage?: number; // 1000
    readonly count?: (text: string, model: string) => number; // a tokenizer, such as countTokens of gpt-tokenizer
    readonly output?: number | "max"; // 1024, never more than the call's maximum; "max": the maximum, which cannot be passed
  }
  export function simpleEstimator(options?: SimpleEstimatorOptions): Estimator;
  export interface LearningEstimatorOptions {
    readonly start?: Estimator;
    readonly quantile?: number;
    readonly maxKeys?: number;
  } // simpleEstimator(), 0.8, 1000
  export function learningEstimator(options?: LearningEstimatorOptions): Estimator;
  export interface MeteredRecord {
    readonly entityId: string;
    readonly resource: string;
    readonly model: string;
    readonly estimate: Estimate;
    readonly usage: TokenUsage;
    readonly source: "reported" | "counted" | "estimated";
    readonly end: "complete" | "abandoned" | "cut" | "stopped" | "failed";
    readonly durationMs: number;
  }
  export interface UpstreamLimit {
    readonly limit: number | undefined;
    readonly remaining: number | undefined;
    readonly fullAfterMs: number | undefined;
  }
  export interface UpstreamLimits {
    readonly requests?: UpstreamLimit;
    readonly tokens?: UpstreamLimit;
    readonly inputTokens?: UpstreamLimit;
    readonly outputTokens?: UpstreamLimit;
    readonly retryAfterMs?: number;
  }
  export function readUpstreamLimits(
    headers: Headers | Readonly<Record<string, string>>,
    nowMs: number,
  ): UpstreamLimits | undefined; // pure
  /** The provider's account as an entity; learning only ever takes. */
  export interface UpstreamMirror {
    readonly entityId: string;
    readonly resource?: (model: string) => string;
    readonly limits?: {
      readonly requests?: string;
      readonly tokens?: string;
      readonly inputTokens?: string;
      readonly outputTokens?: string;
    };
    readonly maxPauseMs?: number; // 60 000
    readonly onMirror?: (seen: UpstreamLimits, model: string) => void;
  }
  export interface MeteredOptions<C> {
    readonly limiter: RateLimiter;
    readonly entity: string | ((call: C) => MaybePromise<string>);
    readonly resource?: (model: string) => string; // modelResource
    readonly metering: Metering;
    readonly estimator?: Estimator; // learningEstimator()
    readonly waitUpToMs?: number;
    readonly onUnavailable?: OnUnavailable;
    readonly overrun?: "debt" | "stop"; // "debt"; "stop": takes on strictly while the answer streams, and ends it when nothing is left
    readonly abandoned?: "counted" | "kept"; // "counted": what was delivered; "kept": not less than was reserved
    readonly idleMs?: number; // 300 000: a stream that nobody reads is settled as abandoned
    readonly upstream?: UpstreamMirror;
    readonly onSettled?: (record: MeteredRecord) => void;
  }
  /** A valid resource name for any model name. */
  export function modelResource(model: string): string;
}

declare module "declared/zae-limiter/ai-sdk" {
  import type { MeteredOptions } from "declared/zae-limiter/llm";
  export interface AiSdkModel {
    readonly provider: string;
    readonly modelId: string;
  }
  export interface AiSdkCall {
    readonly prompt?: unknown;
    readonly values?: readonly unknown[];
    readonly maxOutputTokens?: number | undefined;
    readonly abortSignal?: AbortSignal | undefined;
    readonly headers?: Record<string, string | undefined> | undefined;
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
  export interface LimitedLanguageModel<V extends string> {
    readonly specificationVersion: V;
    wrapGenerate<R extends Answer>(options: {
      doGenerate: () => PromiseLike<R>;
      params: AiSdkCall;
      model: AiSdkModel;
    }): Promise<R>;
    wrapStream<P, R extends StreamedAnswer<P>>(options: {
      doStream: () => PromiseLike<R>;
      params: AiSdkCall;
      model: AiSdkModel;
    }): Promise<R>;
  }
  export interface LimitedEmbeddingModel<V extends string> {
    readonly specificationVersion: V;
    wrapEmbed<R extends Answer>(options: {
      doEmbed: () => PromiseLike<R>;
      params: AiSdkCall;
      model: AiSdkModel;
    }): Promise<R>;
  }
  /** For wrapLanguageModel of ai 5 ("v2"), 6 ("v3") and 7 ("v4"). */
  export function limitLanguageModel<V extends "v2" | "v3" | "v4" = "v4">(
    options: MeteredOptions<AiSdkCall> & { readonly specificationVersion?: V },
  ): LimitedLanguageModel<V>;
  export function limitEmbeddingModel<V extends "v3" | "v4" = "v4">(
    options: MeteredOptions<AiSdkCall> & { readonly specificationVersion?: V },
  ): LimitedEmbeddingModel<V>;
}

declare module "declared/zae-limiter/openai" {
  import type { MeteredOptions } from "declared/zae-limiter/llm";
  export interface LlmRequest {
    readonly url: URL;
    readonly headers: Headers;
    readonly model: string;
  }
  export interface FetchOptions {
    readonly refusal?: "respond" | "throw"; // "respond": a 429 in the provider's own shape
    readonly usage?: "ask" | "leave"; // "ask": adds stream_options.include_usage, and withholds the extra chunk from who did not ask
    readonly otherPaths?: "pass" | "requests"; // "pass": what is no completion, response, embedding or message is not limited
  }
  /** For `new OpenAI({ fetch })`, `createOpenAI({ fetch })`, LangChain's `configuration.fetch`, OpenAI-compatible servers, plain fetch. */
  export function limitFetch(
    options: MeteredOptions<LlmRequest> & FetchOptions,
    fetch?: typeof globalThis.fetch,
  ): typeof globalThis.fetch;
}

declare module "declared/zae-limiter/anthropic" {
  import type { MeteredOptions } from "declared/zae-limiter/llm";
  import type { FetchOptions, LlmRequest } from "declared/zae-limiter/openai";
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
  export function limitMiddleware(options: MeteredOptions<LlmRequest>): AnthropicMiddleware; // new Anthropic({ middleware: [ … ] }), SDK 1.x
  export function limitFetch(
    options: MeteredOptions<LlmRequest> & FetchOptions,
    fetch?: typeof globalThis.fetch,
  ): typeof globalThis.fetch;
}

declare module "declared/zae-limiter/langchain" {
  import type { MeteredOptions } from "declared/zae-limiter/llm";
  export interface LangChainCall {
    readonly model: string;
    readonly runId: string;
    readonly metadata: Readonly<Record<string, unknown>>;
  }
  export interface LangChainHandler {
    readonly name: string;
    readonly awaitHandlers: true;
    readonly raiseError: true;
    handleChatModelStart(
      llm: unknown,
      messages: unknown[][],
      runId: string,
      parentRunId?: string,
      extraParams?: Record<string, unknown>,
      tags?: string[],
      metadata?: Record<string, unknown>,
    ): Promise<void>;
    handleLLMNewToken(token: string, indices: unknown, runId: string): void;
    handleLLMEnd(output: unknown, runId: string): Promise<void>;
    handleLLMError(error: unknown, runId: string): Promise<void>;
  }
  export function limitCallbacks(options: MeteredOptions<LangChainCall>): LangChainHandler;
}
