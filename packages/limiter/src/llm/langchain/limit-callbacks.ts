import { toObject } from "../answers/protocol.ts";
import { toSentMessages } from "../estimating/langchain-messages.ts";
import { toLlmCall } from "../estimating/to-llm-call.ts";
import { Meter } from "../meter.ts";
import { isMeteredAlready } from "../nested-calls.ts";
import { buildNotCalledError, type MeteredOptions } from "../options.ts";
import type { LlmCall } from "../tokens/llm-call.ts";
import { MeteredRun } from "./metered-run.ts";
import { toPiece } from "./run-answer.ts";

/** A call of a LangChain chat model. */
export interface LangChainCall {
  /** The model. */
  readonly model: string;
  /** The run that the call belongs to. */
  readonly runId: string;
  /** The metadata of the caller. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** Callbacks for LangChain. */
export interface LangChainHandler {
  /** The name that LangChain shows. */
  readonly name: string;
  /** LangChain waits for the callbacks. */
  readonly awaitHandlers: true;
  /** LangChain throws a refusal to the caller. */
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
 * Limits the model calls of LangChain, whatever its provider. A run is one call, with all its
 * attempts; answers from a cache cost nothing. A refusal is thrown to the caller, and LangChain
 * prints it.
 *
 * Where the model takes a `fetch`, prefer `limitFetch`: it also sees whether a stream is read. With
 * callbacks, `idleMs` has no effect, and a stream that is left early is settled when it is garbage
 * collected. Do not use both: each would charge.
 * @example
 * const callbacks = [limitCallbacks({ limiter, entity: "key-1", metering: METERING.openai })];
 * const model = new ChatOpenAI({ model: "gpt-5", callbacks });
 */
export function limitCallbacks(options: MeteredOptions<LangChainCall>): LangChainHandler {
  return new LimitCallbacks(options);
}

// LangChain takes anything with a name for a handler. Without this, passing the function itself in
// `callbacks`, instead of what it returns, would silently limit nothing.
Object.assign(limitCallbacks, {
  awaitHandlers: true,
  raiseError: true,
  handleChatModelStart: refuseToStart,
  handleLLMStart: refuseToStart,
});

function refuseToStart(): never {
  throw buildNotCalledError("limitCallbacks");
}

/** The most stopped runs that are remembered. There is no sign that one will never continue. */
const MAX_STOPPED = 1_000;

/**
 * The most open runs. No process waits for so many models at once, so the oldest was left, and
 * something such as a tracer keeps it from being collected.
 */
const MAX_RUNS = 10_000;

/** LangChain prints the name of this class with a refusal. */
class LimitCallbacks implements LangChainHandler {
  readonly name = "zae-limiter";
  readonly awaitHandlers = true;
  readonly raiseError = true;
  readonly #meter: Meter<LangChainCall>;
  /** Open runs by their id. Each is removed when it ends or was left. */
  readonly #runs = new Map<string, Promise<MeteredRun>>();
  /** Finds runs that were left, which LangChain does not end. Some runtimes lack it. */
  readonly #collected =
    typeof FinalizationRegistry === "function"
      ? new FinalizationRegistry((runId: string) => void this.#leave(runId))
      : undefined;
  /**
   * Why runs were settled before their end. Those that continue get the error at their next token.
   */
  readonly #stopped = new Map<string, unknown>();

  constructor(options: MeteredOptions<LangChainCall>) {
    this.#meter = new Meter(options, "limitCallbacks");
  }

  /** LangChain calls it for models that complete a text. */
  handleLLMStart(llm: unknown, prompts: string[], ...rest: RestOfStart): Promise<void> {
    return this.#start(llm, prompts, ...rest);
  }

  handleChatModelStart(llm: unknown, messages: unknown[][], ...rest: RestOfStart): Promise<void> {
    return this.#start(llm, messages, ...rest);
  }

  async handleLLMNewToken(
    token: string,
    _indices: unknown,
    runId: string,
    _parentRunId?: string,
    _tags?: string[],
    fields?: unknown,
  ): Promise<void> {
    const run = await this.#runs.get(runId);
    await run?.addPiece(toPiece(token, fields));
    if (this.#stopped.has(runId)) throw this.#stopped.get(runId);
  }

  async handleLLMEnd(
    output: unknown,
    runId: string,
    _parentRunId?: string,
    _tags?: string[],
    extraParams?: Record<string, unknown>,
  ): Promise<void> {
    const run = await this.#remove(runId);
    await (extraParams?.["cached"] === true ? run?.cancelCached() : run?.complete(output));
  }

  async handleLLMError(error: unknown, runId: string): Promise<void> {
    const run = await this.#remove(runId);
    await run?.fail(error);
  }

  /** A handler that was passed twice is called twice for a run, which is charged once. */
  async #start(llm: unknown, prompts: unknown[], ...rest: RestOfStart): Promise<void> {
    const [runId, , extraParams, , metadata] = rest;
    if (isMeteredAlready() || this.#runs.has(runId)) return;
    const signal = toObject(extraParams?.["options"])["signal"];
    const call = toCall(llm, prompts, extraParams?.["invocation_params"], metadata);
    const run = this.#begin(call, { model: call.model, runId, metadata: metadata ?? {} }, signal);
    this.#runs.set(runId, run);
    try {
      await run;
    } catch (error) {
      this.#runs.delete(runId);
      throw error;
    }
    // LangChain makes this object for the run, and keeps it for as long as the run can go on.
    if (metadata !== undefined) this.#collected?.register(metadata, runId);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > MAX_RUNS) await this.#leave(oldest!);
  }

  async #begin(call: LlmCall, described: LangChainCall, signal: unknown): Promise<MeteredRun> {
    const { runId } = described; // the run must not refer to the metadata, so that they can be collected
    const caller = signal instanceof AbortSignal ? signal : undefined;
    const metered = await this.#meter.begin(call, described, caller);
    return new MeteredRun(metered, caller, (reason) => this.#stop(runId, reason));
  }

  /** Settles a run that was left. If it continues nevertheless, nothing stops it. */
  async #leave(runId: string): Promise<void> {
    const run = await this.#remove(runId)?.catch(() => undefined); // it may have been refused
    await run?.abandon();
  }

  #stop(runId: string, reason: unknown): void {
    this.#runs.delete(runId);
    this.#stopped.set(runId, reason);
    const [oldest] = this.#stopped.keys();
    if (this.#stopped.size > MAX_STOPPED) this.#stopped.delete(oldest!);
  }

  #remove(runId: string): Promise<MeteredRun> | undefined {
    const run = this.#runs.get(runId);
    this.#runs.delete(runId);
    this.#stopped.delete(runId);
    return run;
  }
}

/**
 * Describes a run. The model is named in the parameters, in the metadata, or in the model itself.
 */
function toCall(llm: unknown, prompts: unknown[], parameters: unknown, metadata: unknown): LlmCall {
  const { model, model_name, modelName, modelId } = toObject(parameters);
  const { ls_model_name } = toObject(metadata);
  const kwargs = toObject(toObject(llm)["kwargs"]);
  const named = [model, model_name, modelName, modelId, ls_model_name, kwargs["model"]].find(
    (name) => typeof name === "string" && name !== "",
  );
  const request = { ...toObject(parameters), messages: toSentMessages(prompts) };
  return toLlmCall(request, { model: named as string | undefined });
}

/** The arguments at the start of a run, besides the model and the prompts. */
type RestOfStart = [
  runId: string,
  parentRunId?: string,
  extraParams?: Record<string, unknown>,
  tags?: string[],
  metadata?: Record<string, unknown>,
];
