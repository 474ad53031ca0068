import type { MeteredOptions } from "../options.ts";

/** A call of a chat model of LangChain. */
export interface LangChainCall {
  /** The model. */
  readonly model: string;
  /** The run that the call belongs to. */
  readonly runId: string;
  /** What the caller added as metadata. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Callbacks for LangChain. */
export interface LangChainHandler {
  /** The name that LangChain shows. */
  readonly name: string;
  /** The calls wait for the callbacks. */
  readonly awaitHandlers: true;
  /** A refusal is thrown to the caller. */
  readonly raiseError: true;
  /** Called by LangChain. @example await handler.handleChatModelStart(llm, messages, runId); */
  handleChatModelStart(
    llm: unknown,
    messages: unknown[][],
    runId: string,
    parentRunId?: string,
    extraParams?: Record<string, unknown>,
    tags?: string[],
    metadata?: Record<string, unknown>,
  ): Promise<void>;
  /** Called by LangChain. @example handler.handleLLMNewToken(token, indices, runId); */
  handleLLMNewToken(token: string, indices: unknown, runId: string): void;
  /** Called by LangChain. @example await handler.handleLLMEnd(output, runId); */
  handleLLMEnd(output: unknown, runId: string): Promise<void>;
  /** Called by LangChain. @example await handler.handleLLMError(error, runId); */
  handleLLMError(error: unknown, runId: string): Promise<void>;
}

/**
 * Limits the calls of a chat model of LangChain, whatever its provider. Where the model takes a
 * `fetch`, prefer `limitFetch`: it also sees streams that are left early.
 * @example
 * const callbacks = [limitCallbacks({ limiter, entity: "key-1", metering: METERING.openai })];
 * const model = new ChatOpenAI({ model: "gpt-5", callbacks });
 */
export function limitCallbacks(_options: MeteredOptions<LangChainCall>): LangChainHandler {
  throw new Error("to be built");
}
