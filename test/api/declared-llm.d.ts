// Made by `npm run declare`.

declare module "declared/zae-limiter/llm" {
  import { RateLimiter } from "zae-limiter";
  import { MaybePromise } from "declared/zae-limiter/backend";
  import { OnUnavailable } from "declared/zae-limiter";
  export function learningEstimator(options?: LearningEstimatorOptions): Estimator;
  export interface LearningEstimatorOptions {
    readonly start?: Estimator;
    readonly quantile?: number;
    readonly maxKeys?: number;
  }
  export function simpleEstimator(options?: SimpleEstimatorOptions): Estimator;
  export interface SimpleEstimatorOptions {
    readonly bytesPerToken?: number;
    readonly tokensPerImage?: number;
    readonly count?: (text: string, model: string) => number;
    readonly output?: number | "max";
  }
  export function modelResource(model: string): string;
  export interface MeteredOptions<C> {
    readonly limiter: RateLimiter;
    readonly entity: string | ((call: C) => MaybePromise<string>);
    readonly resource?: (model: string) => string;
    readonly metering: Metering;
    readonly estimator?: Estimator;
    readonly waitUpToMs?: number;
    readonly priority?: string;
    readonly onUnavailable?: OnUnavailable;
    readonly overrun?: "debt" | "stop";
    readonly abandoned?: "counted" | "kept";
    readonly idleMs?: number;
    readonly upstream?: UpstreamMirror;
    readonly onSettled?: (record: MeteredRecord) => void;
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
  export interface LlmCall {
    readonly model: string;
    readonly textBytes: number;
    readonly texts: () => Iterable<string>;
    readonly images: number;
    readonly choices: number;
    readonly maxOutputTokens: number | undefined;
    readonly stream: boolean;
  }
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
  export const METERING: {
    readonly openai: {
      readonly rpm: {
        readonly requests: 1;
      };
      readonly tpm: {
        readonly input: 1;
        readonly cachedInput: 1;
        readonly cacheWriteInput: 1;
        readonly output: 1;
      };
    };
    readonly anthropic: {
      readonly rpm: {
        readonly requests: 1;
      };
      readonly itpm: {
        readonly input: 1;
        readonly cacheWriteInput: 1;
      };
      readonly otpm: {
        readonly output: 1;
      };
    };
  };
  export type Metering = Readonly<Record<string, Readonly<Partial<Record<TokenKind, number>>>>>;
  export type TokenKind = "requests" | keyof TokenUsage;
  export interface TokenUsage {
    readonly input: number;
    readonly cachedInput: number;
    readonly cacheWriteInput: number;
    readonly output: number;
    readonly reasoning: number;
  }
  export function readUpstreamLimits(
    headers: AnswerHeaders,
    nowMs: number,
  ): UpstreamLimits | undefined;
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
  export interface UpstreamMirror {
    readonly entityId: string;
    readonly resource?: (model: string) => string;
    readonly limits?: {
      readonly requests?: string;
      readonly tokens?: string;
      readonly inputTokens?: string;
      readonly outputTokens?: string;
    };
    readonly maxPauseMs?: number;
    readonly onMirror?: (seen: UpstreamLimits, model: string) => void;
  }
  type AnswerHeaders = Headers | Readonly<Record<string, string>>;
}

declare module "declared/zae-limiter/ai-sdk" {
  import { MeteredOptions } from "declared/zae-limiter/llm";
  export function limitEmbeddingModel<V extends "v3" | "v4" = "v4">(
    options: MeteredOptions<AiSdkCall> & {
      readonly specificationVersion?: V;
    },
  ): LimitedEmbeddingModel<V>;
  export function limitLanguageModel<V extends "v2" | "v3" | "v4" = "v4">(
    options: MeteredOptions<AiSdkCall> & {
      readonly specificationVersion?: V;
    },
  ): LimitedLanguageModel<V>;
  export interface AiSdkCall {
    readonly prompt?: unknown;
    readonly values?: readonly unknown[];
    readonly maxOutputTokens?: number | undefined;
    readonly abortSignal?: AbortSignal | undefined;
    readonly headers?: Record<string, string | undefined> | undefined;
    readonly providerOptions?: unknown;
  }
  export interface AiSdkModel {
    readonly provider: string;
    readonly modelId: string;
  }
  export interface LimitedEmbeddingModel<V extends string> {
    readonly specificationVersion: V;
    wrapEmbed<R extends Answer>(
      options: WrappedCall & {
        doEmbed: () => PromiseLike<R>;
      },
    ): Promise<R>;
  }
  export interface LimitedLanguageModel<V extends string> {
    readonly specificationVersion: V;
    wrapGenerate<R extends Answer>(
      options: WrappedCall & {
        doGenerate: () => PromiseLike<R>;
      },
    ): Promise<R>;
    wrapStream<P, R extends StreamedAnswer<P>>(
      options: WrappedCall & {
        doStream: () => PromiseLike<R>;
      },
    ): Promise<R>;
  }
  interface Answer {
    readonly usage?: unknown;
    readonly response?: AnswerResponse | undefined;
  }
  interface WrappedCall {
    params: AiSdkCall;
    model: AiSdkModel;
  }
  interface StreamedAnswer<P> {
    stream: ReadableStream<P>;
    readonly response?: AnswerResponse | undefined;
  }
  interface AnswerResponse {
    readonly headers?: Record<string, string> | undefined;
  }
}

declare module "declared/zae-limiter/openai" {
  import { MeteredOptions } from "declared/zae-limiter/llm";
  export function limitFetch(
    options: MeteredOptions<LlmRequest> & FetchOptions,
    fetch?: typeof globalThis.fetch,
  ): typeof globalThis.fetch;
  export interface FetchOptions {
    readonly refusal?: "respond" | "throw";
    readonly usage?: "ask" | "leave";
    readonly otherPaths?: "pass" | "requests";
  }
  export interface LlmRequest {
    readonly url: URL;
    readonly headers: Headers;
    readonly model: string;
  }
}

declare module "declared/zae-limiter/anthropic" {
  export { limitFetch, FetchOptions, LlmRequest } from "declared/zae-limiter/openai";
  import { MeteredOptions } from "declared/zae-limiter/llm";
  import { LlmRequest } from "declared/zae-limiter/openai";
  export function limitMiddleware(options: MeteredOptions<LlmRequest>): AnthropicMiddleware;
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
        | {
            readonly body?: unknown;
            readonly stream?: boolean | undefined;
          }
        | undefined;
    },
  ) => Promise<Response>;
}

declare module "declared/zae-limiter/langchain" {
  import { MeteredOptions } from "declared/zae-limiter/llm";
  export function limitCallbacks(options: MeteredOptions<LangChainCall>): LangChainHandler;
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
}
