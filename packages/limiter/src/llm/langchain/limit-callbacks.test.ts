/* The callbacks, called by LangChain itself for models that answer in this process. */
import { setImmediate } from "node:timers/promises";
import { InMemoryCache } from "@langchain/core/caches";
import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { LLM } from "@langchain/core/language_models/llms";
import { SimpleChatModel } from "@langchain/core/language_models/chat_models";
import {
  AIMessage,
  AIMessageChunk,
  HumanMessage,
  type BaseMessage,
} from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult, type LLMResult } from "@langchain/core/outputs";
import { afterEach, beforeEach, describe, expect, it, vi, type MockInstance } from "vitest";
import { Limit, RateLimiter, RateLimitExceeded, ValidationError } from "zae-limiter";
import { MemoryRepository } from "zae-limiter/memory";
import { ManualClock } from "zae-limiter/testing";
import { collectGarbage } from "../../../test/support/collect-garbage.ts";
import { heldAnswer } from "../../../test/support/held-answer.ts";
import { forgetWarnings } from "../../warnings/warn-once.ts";
import { runMetered } from "../nested-calls.ts";
import { simpleEstimator } from "../estimating/simple-estimator.ts";
import type { MeteredOptions } from "../options.ts";
import type { MeteredRecord } from "../tokens/metered-record.ts";
import { METERING } from "../tokens/metering.ts";
import { limitCallbacks, type LangChainCall } from "./limit-callbacks.ts";

const IDLE_MS = 1;

let clock: ManualClock;
let records: MeteredRecord[];
let options: MeteredOptions<LangChainCall>;
/** LangChain prints what callbacks throw. */
let printed: MockInstance<typeof console.error>;

beforeEach(async () => {
  printed = vi.spyOn(console, "error").mockImplementation(() => {});
  clock = new ManualClock();
  records = [];
  const repository = new MemoryRepository({ clock });
  await repository.setLimits("key-1", [Limit.perDay("rpm", 10), Limit.perDay("tpm", 1000)]);
  options = {
    limiter: new RateLimiter({ repository }),
    entity: "key-1",
    metering: METERING.openai,
    estimator: simpleEstimator({ output: 100 }),
    idleMs: IDLE_MS,
    onSettled: (record) => void records.push(record),
  };
});

afterEach(() => printed.mockRestore());

/** A chat model that answers with words, and may report its usage. */
class WordModel extends SimpleChatModel {
  readonly words: readonly string[];
  readonly usage: object | undefined;
  /** Whether its reader closed it. */
  isLeft = false;
  /** The provider is silent until then: before an answer in one piece, and between words. */
  silence: Promise<void> | undefined;

  constructor(words: readonly string[], usage?: object) {
    super({ callbacks: [limitCallbacks(options)] });
    this.words = words;
    this.usage = usage;
  }

  _llmType(): string {
    return "words";
  }

  override invocationParams(): object {
    return { model: "word-1", max_tokens: 50 };
  }

  async _call(): Promise<string> {
    await this.silence;
    return this.words.join("");
  }

  override async *_streamResponseChunks(
    _messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    try {
      for (const text of this.words) {
        await setImmediate(); // as words come over a network
        const message = new AIMessageChunk({ content: text });
        yield new ChatGenerationChunk({ text, message });
        await run?.handleLLMNewToken(text);
        await this.silence;
      }
      if (this.usage === undefined) return;
      const message = new AIMessageChunk({ content: "", usage_metadata: this.usage as never });
      yield new ChatGenerationChunk({ text: "", message });
    } finally {
      this.isLeft = true;
    }
  }
}

/** A model whose provider is silent until it is released, many times `idleMs` later. */
function slowModel() {
  const model = new WordModel(["1234", "5678", "90"]);
  const told = heldAnswer<void>();
  model.silence = told.promise;
  const goOn = async (): Promise<void> => {
    await setImmediate();
    await clock.advance(100 * IDLE_MS);
    told.resolve();
  };
  return { model, goOn };
}

class CompletingModel extends LLM {
  _llmType(): string {
    return "completing";
  }

  override invocationParams(): object {
    return { model: "complete-1" };
  }

  async _call(prompt: string): Promise<string> {
    if (prompt === "fail") throw new Error("as asked");
    return "12345678";
  }
}

/** How calls ended: their end, where the usage is from, and tokens of input and output. */
function ends(): readonly string[] {
  return records.map(({ end, source, usage }) => `${end} ${source} ${usage.input}+${usage.output}`);
}

async function readLeft(model: string): Promise<Record<string, number>> {
  return options.limiter.available("key-1", model);
}

it("`entity` receives the model, the run and the metadata of the caller", async () => {
  const told: LangChainCall[] = [];
  options = { ...options, entity: (call) => (told.push(call), "key-1") };
  const model = new WordModel(["Hello."]);
  await model.invoke("Hello?", { metadata: { user: "user-7" } });
  expect(told).toEqual([
    {
      model: "word-1",
      runId: expect.any(String),
      metadata: expect.objectContaining({ user: "user-7" }),
    },
  ]);
  expect(records).toMatchObject([{ model: "word-1", estimate: { input: 2, output: 50 } }]);
  expect(ends()).toEqual(["complete counted 2+2"]);
});

it("reads the caches and the reasoning that a message reports", async () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    input_token_details: { cache_read: 4, cache_creation: 1 },
    output_token_details: { reasoning: 2 },
  };
  for await (const _ of await new WordModel(["Hello."], usage).stream("Hello?"));
  expect(records).toMatchObject([
    {
      source: "reported",
      usage: { input: 5, cachedInput: 4, cacheWriteInput: 1, output: 5, reasoning: 2 },
    },
  ]);
});

it("reads the usage that only the whole output reports", async () => {
  class ReportingModel extends CompletingModel {
    override async _generate(): Promise<LLMResult> {
      const tokenUsage = { promptTokens: 7, completionTokens: 3, totalTokens: 10 };
      return { generations: [[{ text: "12345678" }]], llmOutput: { tokenUsage } };
    }
  }
  await new ReportingModel({ callbacks: [limitCallbacks(options)] }).invoke("Hello?");
  expect(ends()).toEqual(["complete reported 7+3"]);
});

it.each([
  [0, 0],
  [0, 7],
  [5, 0],
])("does not take a 0 for a report: %i and %i", async (input_tokens, output_tokens) => {
  const usage = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
  for await (const _ of await new WordModel(["Hello."], usage).stream("Hello?"));
  expect(ends()).toEqual(["complete counted 2+2"]);
});

it("limits models that complete a text", async () => {
  const model = new CompletingModel({ callbacks: [limitCallbacks(options)] });
  await model.invoke("Hello?");
  await expect(model.invoke("fail")).rejects.toThrow("as asked");
  expect(ends()).toEqual(["complete counted 2+2", "failed estimated 0+0"]);
  expect(await readLeft("complete-1")).toEqual({ rpm: 9, tpm: 996 });
});

it("counts the input of tools, streamed and in one piece", async () => {
  const [args, text] = [{ city: "city" }, '{"city":"city"}'];
  class ToolModel extends WordModel {
    override async _generate(): Promise<ChatResult> {
      const message = new AIMessage({ content: "", tool_calls: [{ name: "weather", args }] });
      return { generations: [{ text: "", message }] };
    }

    override async *_streamResponseChunks(
      _messages: BaseMessage[],
      _options: this["ParsedCallOptions"],
      run?: CallbackManagerForLLMRun,
    ): AsyncGenerator<ChatGenerationChunk> {
      const tool_call_chunks = [{ name: "weather", args: text, index: 0 }];
      const message = new AIMessageChunk({ content: "", tool_call_chunks });
      const chunk = new ChatGenerationChunk({ text: "", message });
      yield chunk;
      await run?.handleLLMNewToken("", undefined, undefined, undefined, undefined, { chunk });
    }
  }
  const model = new ToolModel([]);
  await model.invoke("Hello?");
  for await (const _ of await model.stream("Hello?"));
  expect(ends()).toEqual(["complete counted 2+4", "complete counted 2+4"]);
});

it("charges nothing for an answer from a cache", async () => {
  const callbacks = [limitCallbacks(options)];
  const model = new CompletingModel({ callbacks, cache: new InMemoryCache() });
  await model.invoke("Hello?");
  await model.invoke("Hello?");
  expect(ends()).toEqual(["complete counted 2+2", "failed estimated 0+0"]);
});

it("charges a run once if its handler was given twice", async () => {
  const callbacks = [limitCallbacks(options)];
  await new CompletingModel({ callbacks }).invoke("Hello?", { callbacks });
  expect(ends()).toEqual(["complete counted 2+2"]);
});

describe("a provider that is slow", () => {
  it("may take as long as it likes for an answer in one piece", async () => {
    const { model, goOn } = slowModel();
    const answer = model.invoke("Hello?");
    await goOn();
    expect((await answer).content).toBe("1234567890");
    expect(ends()).toEqual(["complete counted 2+3"]);
  });

  it("is waited for by the reader of a stream", async () => {
    const { model, goOn } = slowModel();
    const stream = await model.stream("Hello?");
    const words: unknown[] = [(await stream.next()).value?.content];
    const next = stream.next();
    await goOn();
    words.push((await next).value?.content);
    for await (const { content } of stream) words.push(content);
    expect(words).toEqual(["1234", "5678", "90"]);
    expect(ends()).toEqual(["complete counted 2+3"]);
  });
});

describe("a stream that is left", () => {
  const MODEL = ["1234", "5678", "90", "12"];

  it.each<[string, (model: WordModel) => Promise<void>, string]>([
    [
      "by break",
      async (model) => {
        for await (const _ of await model.stream("Hello?")) break;
      },
      "abandoned estimated 2+50",
    ],
    [
      "after two words",
      async (model) => {
        const stream = await model.stream("Hello?");
        await stream.next();
        await stream.next(); // LangChain asks for one more than was read
      },
      "abandoned counted 2+2",
    ],
    ["unread", async (model) => void (await model.stream("Hello?")), "abandoned estimated 2+50"],
  ])("%s is settled once it is collected", async (_name, leave, end) => {
    await leave(new WordModel(MODEL));
    await clock.advance(100 * IDLE_MS);
    await collectGarbage(() => records.length > 0);
    expect(ends()).toEqual([end]);
  });

  it("rests as long as its reader likes, and goes on", async () => {
    const stream = await new WordModel(MODEL).stream("Hello?");
    await stream.next();
    await clock.advance(100 * IDLE_MS);
    await collectGarbage(() => records.length > 0);
    expect(ends()).toEqual([]);
    for await (const _ of stream);
    expect(ends()).toEqual(["complete counted 2+3"]);
  });
});

it("stops a run when nothing is left to take", async () => {
  options = { ...options, overrun: "stop" };
  const words = Array.from({ length: 2000 }, () => "1234");
  const model = new WordModel(words);
  let tokens = 0;
  const reading = async (): Promise<void> => {
    for await (const _ of await model.stream("Hello?")) tokens += 1;
  };
  await expect(reading()).rejects.toThrow(RateLimitExceeded);
  expect(tokens).toBeLessThan(1000 + 256);
  expect(model.isLeft).toBe(true);
  expect(ends()).toMatchObject([expect.stringMatching(/^stopped counted/)]);
  expect((await readLeft("word-1"))["tpm"]).toBeGreaterThanOrEqual(0);
});

it("a refusal of one prompt among several ends all, and the charge is kept", async () => {
  await options.limiter.charge({ entityId: "key-1", resource: "word-1", amounts: { rpm: 9 } });
  const prompts = [[new HumanMessage("1")], [new HumanMessage("2")]];
  // What keeps the error keeps the runs: a variable here does, and so does `expect`.
  const isRefused = (): Promise<boolean> =>
    new WordModel(["Hello."]).generate(prompts).then(
      () => false,
      (error: unknown) => error instanceof RateLimitExceeded,
    );
  expect(await isRefused()).toBe(true);
  expect(printed).toHaveBeenCalledWith(
    expect.stringMatching(/^Error in handler LimitCallbacks, handleLLMStart: RateLimitExceeded/),
  );
  // LangChain does not report that the other one was not made.
  await collectGarbage(() => records.length > 0);
  expect(ends()).toEqual(["abandoned estimated 1+50"]);
});

it("a run inside of a call that is metered already is part of that", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  await runMetered(() => new WordModel(["Hello."]).invoke("Hello?"));
  forgetWarnings();
  warned.mockRestore();
  expect(ends()).toEqual([]);
  expect(await readLeft("word-1")).toEqual({ rpm: 10, tpm: 1000 });
});

it("remembers the last 1000 runs that were stopped", async () => {
  const handler = limitCallbacks({ ...options, metering: { tpm: { cachedInput: 1 } } });
  const abort = new AbortController();
  const extra = { options: { signal: abort.signal } };
  for (let run = 0; run <= 1000; run += 1)
    await handler.handleChatModelStart({}, [[]], `run-${run}`, undefined, extra);
  abort.abort();
  const isStopped = async (run: number): Promise<boolean> => {
    const going = handler.handleLLMNewToken("word", {}, `run-${run}`) as unknown;
    return Promise.resolve(going).then(
      () => false,
      () => true,
    );
  };
  expect([await isStopped(0), await isStopped(1), await isStopped(1000)]).toEqual([
    false,
    true,
    true,
  ]);
});

it("keeps at most 10,000 runs open: the oldest was left, and may go on all the same", async () => {
  const handler = limitCallbacks({ ...options, metering: { tpm: { cachedInput: 1 } } });
  for (let run = 0; run <= 10_000; run += 1)
    await handler.handleChatModelStart({}, [[]], `run-${run}`);
  expect(ends()).toEqual(["abandoned estimated 0+100"]);
  await handler.handleLLMNewToken("word", {}, "run-0");
  await handler.handleLLMEnd({}, "run-0");
  expect(ends()).toHaveLength(1);
});

it("the function itself, which was not called, refuses runs instead of not limiting them", async () => {
  const callbacks = [limitCallbacks as never];
  const message = "give the client limitCallbacks({ limiter, entity, metering })";
  await expect(new CompletingModel({ callbacks }).invoke("Hello?")).rejects.toThrow(message);
  await expect(new WordModel(["12"]).invoke("Hello?", { callbacks })).rejects.toThrow(message);
});

it("unknown options are refused", () => {
  const wrong = { ...options, refusal: "throw" } as typeof options;
  expect(() => limitCallbacks(wrong)).toThrow(ValidationError);
});

it("a 429 gives the run back, and pauses the account of the provider", async () => {
  class RefusedModel extends WordModel {
    override async _call(): Promise<string> {
      throw Object.assign(new Error("Too many"), { status: 429, headers: { "retry-after": "60" } });
    }
  }
  options = { ...options, upstream: { entityId: "key-1" } };
  await expect(new RefusedModel([]).invoke("hi")).rejects.toThrow("Too many");
  expect(records).toMatchObject([{ end: "failed" }]);
  expect(await options.limiter.available("key-1", "word-1")).toEqual({ rpm: -1, tpm: -1 });
});
