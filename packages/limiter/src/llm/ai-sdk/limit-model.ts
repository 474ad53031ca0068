import { ValidationError } from "../../core/errors.ts";
import { AiSdkParts, readAnswer, readEmbeddings } from "../answers/ai-sdk-parts.ts";
import { toLlmCall } from "../estimating/to-llm-call.ts";
import { Meter } from "../meter.ts";
import type { MeteredCall } from "../metered-call.ts";
import { isMeteredAlready, runMetered } from "../nested-calls.ts";
import { checkOneOf, buildNotCalledError, type MeteredOptions } from "../options.ts";
import type { MaybePromise } from "../../repository/port.ts";
import type { LlmCall } from "../tokens/llm-call.ts";

/** A model of the AI SDK. */
export interface AiSdkModel {
  /** Its provider. */
  readonly provider: string;
  /** Its name. */
  readonly modelId: string;
}

/** A call of the AI SDK, as its middlewares receive it. */
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

/** The parts that are read of an answer in one piece. */
interface Answer {
  /** What the provider reported. */
  readonly usage?: unknown;
  /** The response that it came with. */
  readonly response?: AnswerResponse | undefined;
}

/** The parts that are read of a streamed answer. */
interface StreamedAnswer<P> {
  /** The parts of the answer. */
  stream: ReadableStream<P>;
  /** The response that it came with. */
  readonly response?: AnswerResponse | undefined;
}

/** The parts that are read of a provider's response. */
interface AnswerResponse {
  /** Its headers. */
  readonly headers?: Record<string, string> | undefined;
}

/** A call and its model, as the AI SDK passes them to a middleware. */
interface WrappedCall {
  /** The call. */
  params: AiSdkCall;
  /** The model that is called. */
  model: AiSdkModel;
}

/** A middleware for `wrapLanguageModel`. */
export interface LimitedLanguageModel<V extends string> {
  /** The version of the AI SDK's specification. */
  readonly specificationVersion: V;
  /**
   * Called by the AI SDK.
   * @example const answer = await middleware.wrapGenerate({ doGenerate, params, model });
   */
  wrapGenerate<R extends Answer>(
    options: WrappedCall & {
      /** Makes the call. @example const answer = await doGenerate(); */
      doGenerate: () => PromiseLike<R>;
    },
  ): Promise<R>;
  /**
   * Called by the AI SDK.
   * @example const { stream } = await middleware.wrapStream({ doStream, params, model });
   */
  wrapStream<P, R extends StreamedAnswer<P>>(
    options: WrappedCall & {
      /** Makes the call. @example const { stream } = await doStream(); */
      doStream: () => PromiseLike<R>;
    },
  ): Promise<R>;
}

/** A middleware for `wrapEmbeddingModel`. */
export interface LimitedEmbeddingModel<V extends string> {
  /** The version of the AI SDK's specification. */
  readonly specificationVersion: V;
  /**
   * Called by the AI SDK.
   * @example const answer = await middleware.wrapEmbed({ doEmbed, params, model });
   */
  wrapEmbed<R extends Answer>(
    options: WrappedCall & {
      /** Makes the call. @example const answer = await doEmbed(); */
      doEmbed: () => PromiseLike<R>;
    },
  ): Promise<R>;
}

/** The hooks of a middleware for language models. */
const LANGUAGE_HOOKS = ["wrapGenerate", "wrapStream"];

/**
 * Limits the calls of a language model: for `wrapLanguageModel` of `ai` 5 ("v2"), 6 ("v3") and 7
 * ("v4"). Each step of a tool loop and each attempt of the SDK is a call of its own. A refusal
 * reaches the caller as `RateLimitExceeded`, and is not retried; if it comes after a failed
 * attempt, it is the `lastError` of the SDK's `RetryError`.
 *
 * Among several middlewares, put it last: model calls that later middlewares make are part of its
 * call.
 *
 * To stop a stream early, abort it: `ai` 5 and 6 read an answer to its end without a reader,
 * and with `ai` 7 it is settled after `idleMs`.
 * @example
 * const middleware = limitLanguageModel({ limiter, entity: "key-1", metering: METERING.openai });
 * const model = wrapLanguageModel({ model: openai("gpt-5"), middleware });
 */
export function limitLanguageModel<V extends "v2" | "v3" | "v4" = "v4">(
  options: MeteredOptions<AiSdkCall> & {
    /**
     * The version of the AI SDK's specification. Only TypeScript uses it, and infers it where the
     * middleware is created in the call that takes it. @default "v4"
     */
    readonly specificationVersion?: V;
  },
): LimitedLanguageModel<V> {
  const meter = new Meter(options, "limitLanguageModel", ["specificationVersion"]);
  checkOneOf("specificationVersion", options.specificationVersion, ["v2", "v3", "v4"]);
  return {
    specificationVersion: (options.specificationVersion ?? "v4") as V,
    wrapGenerate({ doGenerate, params, model }) {
      const call = toLlmCall(params, { model: model.modelId, stream: false });
      return runLimited({ meter, call, params, run: doGenerate }, async (metered, answer) => {
        await metered.settleAnswered(readAnswer(answer));
        return answer;
      });
    },
    wrapStream({ doStream, params, model }) {
      const call = toLlmCall(params, { model: model.modelId, stream: true });
      return runLimited({ meter, call, params, run: doStream }, (metered, answer) => {
        const stream = metered.watch(answer.stream, new AiSdkParts(), params.abortSignal);
        return { ...answer, stream };
      });
    },
    ...buildRefusingHooks(["wrapEmbed"], () =>
      buildWrongModelError("Embedding models have limitEmbeddingModel."),
    ),
  };
}

/**
 * Limits the calls of an embedding model: for `wrapEmbeddingModel` of `ai` 6 ("v3") and 7 ("v4").
 * `ai` 5 has no middlewares for them: there, give `limitFetch` to the provider.
 * @example
 * const middleware = limitEmbeddingModel({ limiter, entity: "key-1", metering: METERING.openai });
 * const embedder = openai.embedding("text-embedding-3-small");
 * const model = wrapEmbeddingModel({ model: embedder, middleware });
 */
export function limitEmbeddingModel<V extends "v3" | "v4" = "v4">(
  options: MeteredOptions<AiSdkCall> & {
    /**
     * The version of the AI SDK's specification. Only TypeScript uses it, and infers it where the
     * middleware is created in the call that takes it. @default "v4"
     */
    readonly specificationVersion?: V;
  },
): LimitedEmbeddingModel<V> {
  const meter = new Meter(options, "limitEmbeddingModel", ["specificationVersion"]);
  checkOneOf("specificationVersion", options.specificationVersion, ["v3", "v4"]);
  return {
    specificationVersion: (options.specificationVersion ?? "v4") as V,
    wrapEmbed({ doEmbed, params, model }) {
      const call = toLlmCall(params, { model: model.modelId, maxOutputTokens: 0 });
      return runLimited({ meter, call, params, run: doEmbed }, async (metered, answer) => {
        await metered.settleAnswered(readEmbeddings(answer));
        return answer;
      });
    },
    ...buildRefusingHooks(LANGUAGE_HOOKS, () =>
      buildWrongModelError("Language models have limitLanguageModel."),
    ),
  };
}

// The AI SDK ignores a middleware without hooks. Without these, passing the function itself as the
// middleware, instead of what it returns, would silently limit nothing.
const HOOKS = [...LANGUAGE_HOOKS, "wrapEmbed"];
Object.assign(
  limitLanguageModel,
  buildRefusingHooks(HOOKS, () => buildNotCalledError("limitLanguageModel")),
);
Object.assign(
  limitEmbeddingModel,
  buildRefusingHooks(HOOKS, () => buildNotCalledError("limitEmbeddingModel")),
);

/**
 * The AI SDK's types accept a middleware for the wrong kind of model, which would limit nothing.
 */
function buildWrongModelError(advice: string): ValidationError {
  return new ValidationError("middleware", undefined, `is not for this model. ${advice}`);
}

/** Builds hooks of the AI SDK that throw. */
function buildRefusingHooks(hooks: readonly string[], createError: () => ValidationError): object {
  const refuse = (): never => {
    throw createError();
  };
  return Object.fromEntries(hooks.map((hook) => [hook, refuse]));
}

/** A model call and the function that runs it. */
interface ModelCall<R> {
  readonly meter: Meter<AiSdkCall>;
  readonly call: LlmCall;
  readonly params: AiSdkCall;
  readonly run: () => PromiseLike<R>;
}

/** Takes tokens for a call and runs it. Its errors reach the caller after the settlement. */
async function runLimited<R extends Pick<Answer, "response">>(
  { meter, call, params, run }: ModelCall<R>,
  settle: (metered: MeteredCall, answer: R) => MaybePromise<R>,
): Promise<R> {
  if (isMeteredAlready()) return run();
  const metered = await meter.begin(call, params, params.abortSignal);
  try {
    const answer = await runMetered(run);
    void metered.observeProviderLimits(answer.response?.headers ?? {}, 200);
    return await settle(metered, answer);
  } catch (error) {
    // The model threw, or returned something that is not an answer.
    await metered.settleThrown(error, params.abortSignal);
    throw error;
  }
}
