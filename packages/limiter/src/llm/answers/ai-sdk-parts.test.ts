import { describe, expect, it } from "vitest";
import { AiSdkParts, readAnswer, readEmbeddings } from "./ai-sdk-parts.ts";

const STOP = { unified: "stop", raw: "stop" };

/** Tokens of input, read from a cache, written to one, of output, and of reasoning. */
function usage(
  input: number,
  cachedInput: number,
  cacheWriteInput: number,
  output: number,
  reasoning: number,
): object {
  return { input, cachedInput, cacheWriteInput, output, reasoning };
}

function read(...parts: readonly unknown[]): AiSdkParts<unknown> {
  const reader = new AiSdkParts<unknown>();
  for (const part of parts) expect(reader.read(part)).toBe(part);
  expect(reader.end()).toBeUndefined();
  return reader;
}

describe("usage", () => {
  it.each([
    ["nothing", {}, undefined],
    ["no numbers", { inputTokens: undefined, outputTokens: undefined }, undefined],
    ["half of it", { inputTokens: 5, outputTokens: undefined }, undefined],
    ["flat numbers", { inputTokens: 5, outputTokens: 7, totalTokens: 12 }, usage(5, 0, 0, 7, 0)],
    [
      "flat numbers with caches and reasoning",
      {
        inputTokens: 5,
        outputTokens: 7,
        cachedInputTokens: 2,
        reasoningTokens: 3,
        totalTokens: 12,
      },
      usage(3, 2, 0, 7, 3),
    ],
    [
      "reasoning apart from the output",
      { inputTokens: 5, outputTokens: 7, reasoningTokens: 3, totalTokens: 15 },
      usage(5, 0, 0, 10, 3),
    ],
    [
      "more reasoning than output",
      { inputTokens: 5, outputTokens: 2, reasoningTokens: 3 },
      usage(5, 0, 0, 5, 3),
    ],
    [
      "nested numbers",
      {
        inputTokens: { total: 10, noCache: 4, cacheRead: 5, cacheWrite: 1 },
        outputTokens: { total: 7, text: 4, reasoning: 3 },
      },
      usage(4, 5, 1, 7, 3),
    ],
    [
      "nested numbers without details",
      {
        inputTokens: { total: 10, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
        outputTokens: { total: 7, text: undefined, reasoning: undefined },
      },
      usage(10, 0, 0, 7, 0),
    ],
    [
      "nested numbers without totals",
      { inputTokens: { noCache: 4, cacheRead: 5 }, outputTokens: { text: 4, reasoning: 3 } },
      usage(4, 5, 0, 7, 3),
    ],
    ["nested nothing", { inputTokens: { total: undefined }, outputTokens: {} }, undefined],
  ])("reads %s", (_name, reported, expected) => {
    const answer = readAnswer({ usage: reported, content: [] });
    expect(answer.reported).toEqual(expected);
    expect(answer.isReportFinal).toBe(expected !== undefined);
    expect(answer.hasUnreadableUsage).toBe(false);
    const stream = read({ type: "finish", usage: reported, finishReason: STOP });
    expect(stream.reported).toEqual(expected);
    expect(stream.isReportFinal).toBe(expected !== undefined);
  });

  it.each([
    [{ anthropic: { cacheCreationInputTokens: 4 } }, usage(5, 2, 4, 7, 0)],
    [{ anthropic: { cacheCreationInputTokens: null } }, usage(5, 2, 0, 7, 0)],
    [{ bedrock: { usage: { cacheWriteInputTokens: 4 } } }, usage(5, 2, 4, 7, 0)],
    [{ openai: { usage: { cacheWriteTokens: 1 } } }, usage(2, 2, 1, 7, 0)],
    [{ openai: {} }, usage(3, 2, 0, 7, 0)],
  ])("separates caches that version 2 has in the metadata %j", (providerMetadata, expected) => {
    const reported = { inputTokens: 5, outputTokens: 7, totalTokens: 12, cachedInputTokens: 2 };
    expect(readAnswer({ usage: reported, providerMetadata }).reported).toEqual(expected);
  });

  it.each([
    { inputTokens: -1, outputTokens: 7 },
    { inputTokens: 5, outputTokens: "7" },
    { inputTokens: 5.5, outputTokens: 7 },
    { inputTokens: Number.NaN, outputTokens: 7 },
    { inputTokens: 5, outputTokens: 7, cachedInputTokens: 6 },
    { inputTokens: { total: 5, cacheRead: {} }, outputTokens: { total: 7 } },
    { inputTokens: { total: 5 }, outputTokens: { total: 2 ** 53 } },
  ])("cannot be read from %j", (reported) => {
    const {
      reported: nothing,
      isReportFinal,
      hasUnreadableUsage,
    } = readAnswer({ usage: reported });
    expect([nothing, isReportFinal, hasUnreadableUsage]).toEqual([undefined, false, true]);
  });

  it.each([
    ["nothing", {}, 0, 0, undefined],
    ["no numbers", { prompt_tokens: null, completion_tokens: null }, 0, 0, undefined],
    ["no prompt", { completion_tokens: 7 }, 0, 7, undefined],
    ["no answer", { prompt_tokens: 5 }, 5, 0, undefined],
    ["zeros", { prompt_tokens: 0, completion_tokens: 0 }, 0, 0, usage(0, 0, 0, 0, 0)],
  ])("does not take a 0 for a report where the provider sent %s", (_, raw, input, output, told) => {
    const made = { inputTokens: { total: input }, outputTokens: { total: output }, raw };
    const answer = readAnswer({ usage: made, content: [{ type: "text", text: "Hello." }] });
    expect(answer.reported).toEqual(told);
    expect(answer.hasUnreadableUsage).toBe(told === undefined);
    const stream = read(
      { type: "text-delta", id: "0", delta: "Hello." },
      { type: "finish", usage: made, finishReason: STOP },
    );
    expect(stream.reported).toEqual(told);
  });

  it("may be about an answer without text", () => {
    const raw = { promptTokenCount: 5 };
    const reported = { inputTokens: { total: 5 }, outputTokens: { total: 0 }, raw };
    expect(readAnswer({ usage: reported, content: [] }).reported).toEqual(usage(5, 0, 0, 0, 0));
  });

  it("of embeddings has no output", () => {
    expect(readEmbeddings({ usage: { tokens: 8 } }).reported).toEqual(usage(8, 0, 0, 0, 0));
    expect(readEmbeddings({}).reported).toBeUndefined();
    expect(readEmbeddings({}).outputBytes).toBe(0);
    expect(readEmbeddings({ usage: { tokens: "8" } }).hasUnreadableUsage).toBe(true);
  });
});

describe("output", () => {
  it("counts text, reasoning and the input of tools, each once", () => {
    const stream = read(
      { type: "stream-start", warnings: [] },
      { type: "text-delta", id: "0", delta: "añ" },
      { type: "reasoning-delta", id: "1", delta: "ab" },
      { type: "tool-input-start", id: "call-1", toolName: "weather" },
      { type: "tool-input-delta", id: "call-1", delta: "{}" },
      { type: "tool-call", toolCallId: "call-1", toolName: "weather", input: "{}" },
      { type: "tool-call", toolCallId: "call-2", toolName: "weather", input: '{"a":1}' },
      { type: "tool-result", toolCallId: "call-2", result: "rain" },
      { type: "raw", rawValue: { text: "text" } },
    );
    expect(stream.outputBytes).toBe(3 + 2 + 2 + 7);
    expect(stream.isComplete).toBe(false);
  });

  it("counts what an answer in one piece holds", () => {
    const content = [
      { type: "text", text: "añ" },
      { type: "reasoning", text: "ab" },
      { type: "tool-call", toolCallId: "call-1", input: "{}" },
      { type: "source", title: "not written by the model" },
      { type: "file", data: "aGVsbG8=" },
    ];
    expect(readAnswer({ content }).outputBytes).toBe(3 + 2 + 2);
  });

  it.each([[undefined], [null], ["text"], [[]], [{ type: "text-delta", delta: 5 }]])(
    "is nothing in %j",
    (rubbish) => {
      expect(read(rubbish).outputBytes).toBe(0);
      expect(readAnswer(rubbish).outputBytes).toBe(0);
      expect(readAnswer({ content: [rubbish] }).outputBytes).toBe(0);
    },
  );
});

describe("the end", () => {
  it.each([
    ["stop", true],
    ["other", true],
    ["unknown", false],
    ["error", false],
    [STOP, true],
    [{ unified: "other", raw: "their own" }, true],
    [{ unified: "other", raw: undefined }, false],
    [{ unified: "error", raw: "error" }, false],
    [{ unified: "interrupted", raw: undefined }, false],
  ])("for the reason %j is complete: %j", (finishReason, isComplete) => {
    expect(read({ type: "finish", usage: {}, finishReason }).isComplete).toBe(isComplete);
  });

  it("after an error is not an end, but what it reports counts", () => {
    const numbers = { inputTokens: 5, outputTokens: 7 };
    const stream = read(
      { type: "error", error: new Error("overloaded") },
      { type: "finish", usage: numbers, finishReason: STOP },
    );
    expect([stream.isComplete, stream.isReportFinal]).toEqual([false, true]);
  });
});
