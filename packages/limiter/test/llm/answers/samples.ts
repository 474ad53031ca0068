/*
 * Answers as providers write them, and what a reader must find in them. The expected texts are
 * written by hand, so that their lengths do not depend on the readers.
 */
import { readFileSync } from "node:fs";
import { NO_TOKENS } from "../../../src/llm/tokens/token-usage.ts";
import type { AnswerSoFar } from "../../../src/llm/answers/answer-reader.ts";
import type { ExpectedAnswer } from "../../../src/llm/answers/build-answer-reader.ts";

/** An answer, and what a reader finds in all of it. */
export interface Sample {
  readonly file: string;
  readonly protocol: ExpectedAnswer["protocol"];
  /** The event that is left out if the caller did not ask for it: how its data begins. */
  readonly usageEvent?: string;
  readonly read: AnswerSoFar;
}

const COMPLETE = { isReportFinal: true, isComplete: true, hasUnreadableUsage: false };
const NOT_REPORTED = { ...COMPLETE, reported: undefined, isReportFinal: false };

const CHAT_CHUNK =
  '{"id":"chatcmpl-CbTzuN7YhpVvfKQ","object":"chat.completion.chunk","created":1763320000,"model":"gpt-5-mini-2025-08-07","service_tier":"default","system_fingerprint":null,"choices":[],"usage":{';

export const STREAMS: readonly Sample[] = [
  {
    file: "chat-text.sse",
    protocol: "chat",
    usageEvent: CHAT_CHUNK,
    read: {
      ...COMPLETE,
      outputBytes: bytes('Grüße aus 東京 🗼: "data:\\n" \r\n'),
      reported: { ...NO_TOKENS, input: 93, cachedInput: 1024, output: 46, reasoning: 8 },
    },
  },
  {
    file: "chat-tools.sse",
    protocol: "chat",
    usageEvent: CHAT_CHUNK,
    read: {
      ...COMPLETE,
      outputBytes: bytes('{"city":"Zürich"}{"zone":"CET"}'),
      reported: { ...NO_TOKENS, input: 88, output: 51 },
    },
  },
  {
    file: "chat-two-choices.sse",
    protocol: "chat",
    usageEvent: CHAT_CHUNK,
    read: {
      ...COMPLETE,
      outputBytes: bytes("YesI can't do that."),
      reported: { ...NO_TOKENS, input: 12, output: 9 },
    },
  },
  {
    // As DeepSeek does. The caller needs the chunk, for it holds the finish reason.
    file: "chat-usage-in-finish.sse",
    protocol: "chat",
    read: {
      ...COMPLETE,
      outputBytes: bytes("嗯,用户问好你好!"),
      reported: { ...NO_TOKENS, input: 9, output: 14, reasoning: 9 },
    },
  },
  {
    // As OpenRouter does: the chunk has an empty choice.
    file: "chat-usage-beside-choice.sse",
    protocol: "chat",
    read: {
      ...COMPLETE,
      outputBytes: bytes("Say hiHi! 👋"),
      reported: { input: 2, cachedInput: 64, cacheWriteInput: 4, output: 24, reasoning: 6 },
    },
  },
  {
    // As vLLM does when it is asked for continuous usage.
    file: "chat-usage-in-every-chunk.sse",
    protocol: "chat",
    usageEvent:
      '{"id":"chatcmpl-5a1f","object":"chat.completion.chunk","created":1763320000,"model":"Qwen/Qwen3-8B","choices":[],',
    read: {
      ...COMPLETE,
      outputBytes: bytes("One two"),
      reported: { ...NO_TOKENS, input: 31, output: 2 },
    },
  },
  {
    // As Azure does: the first chunk has no choices, and a function is called in the old way.
    file: "chat-without-usage.sse",
    protocol: "chat",
    read: { ...NOT_REPORTED, outputBytes: bytes('{"a":1}') },
  },
  {
    file: "chat-error.sse",
    protocol: "chat",
    read: { ...NOT_REPORTED, outputBytes: bytes("Half"), isComplete: false },
  },
  {
    file: "completions.sse",
    protocol: "chat",
    usageEvent:
      '{"id":"cmpl-C4","object":"text_completion","created":1763320000,"choices":[],"model":"gpt-3.5-turbo-instruct","usage":{',
    read: {
      ...COMPLETE,
      outputBytes: bytes("\n\nOnce upon…"),
      reported: { ...NO_TOKENS, input: 5, output: 4 },
    },
  },
  {
    file: "responses-text.sse",
    protocol: "responses",
    read: {
      ...COMPLETE,
      outputBytes: bytes("**Größe**It is 42 🎉"),
      reported: { input: 63, cachedInput: 128, cacheWriteInput: 100, output: 73, reasoning: 64 },
    },
  },
  {
    file: "responses-tools.sse",
    protocol: "responses",
    read: {
      ...COMPLETE,
      outputBytes: bytes('{"a":1}{}print(1)SELECT 1No.'),
      reported: { ...NO_TOKENS, input: 20, output: 31 },
    },
  },
  {
    file: "responses-failed.sse",
    protocol: "responses",
    read: { ...NOT_REPORTED, outputBytes: bytes("Hm") },
  },
  {
    file: "responses-error.sse",
    protocol: "responses",
    read: { ...NOT_REPORTED, outputBytes: bytes("Hm"), isComplete: false },
  },
  {
    file: "messages-text.sse",
    protocol: "messages",
    read: {
      ...COMPLETE,
      outputBytes: bytes("Bonjour à tous 🇫🇷"),
      reported: { ...NO_TOKENS, input: 12, cachedInput: 2048, cacheWriteInput: 300, output: 27 },
    },
  },
  {
    // The last report has no input, as in older versions of the API.
    file: "messages-tools.sse",
    protocol: "messages",
    read: {
      ...COMPLETE,
      outputBytes: bytes('Let me think…{"city": "Köln"}'),
      reported: { ...NO_TOKENS, input: 472, output: 89, reasoning: 40 },
    },
  },
  {
    file: "messages-error.sse",
    protocol: "messages",
    read: {
      outputBytes: bytes("Hel"),
      reported: { input: 12, cachedInput: 2048, cacheWriteInput: 300 },
      isReportFinal: false,
      isComplete: false,
      hasUnreadableUsage: false,
    },
  },
];

export const BODIES: readonly Sample[] = [
  {
    file: "chat.json",
    protocol: "chat",
    read: {
      ...COMPLETE,
      outputBytes: bytes("Grüezi{}No."),
      reported: { ...NO_TOKENS, input: 16, cachedInput: 3, output: 10, reasoning: 4 },
    },
  },
  {
    file: "completions.json",
    protocol: "chat",
    read: {
      ...COMPLETE,
      outputBytes: bytes("\n\nTest ✓"),
      reported: { ...NO_TOKENS, input: 5, output: 7 },
    },
  },
  {
    file: "responses.json",
    protocol: "responses",
    read: {
      ...COMPLETE,
      outputBytes: bytes('Hm.{"a":1}Ja 🎉No.'),
      reported: { input: 63, cachedInput: 128, cacheWriteInput: 100, output: 73, reasoning: 64 },
    },
  },
  {
    file: "messages.json",
    protocol: "messages",
    read: {
      ...COMPLETE,
      outputBytes: bytes('Hm…Olá{"a":1}'),
      reported: { ...NO_TOKENS, input: 2095, cachedInput: 7, output: 503 },
    },
  },
  {
    file: "embeddings.json",
    protocol: "embeddings",
    read: { ...COMPLETE, outputBytes: 0, reported: { ...NO_TOKENS, input: 8 } },
  },
];

/** The text of a sample. */
export function toText({ file }: Sample): string {
  return readFileSync(new URL(`./samples/${file}`, import.meta.url), "utf8");
}

/** The text of a stream without the event that is left out. */
export function textWithoutUsage(sample: Sample): string {
  const { usageEvent } = sample;
  if (usageEvent === undefined) return toText(sample);
  const events = toText(sample).split("\n\n");
  const others = events.filter((event) => !event.startsWith(`data: ${usageEvent}`));
  if (others.length !== events.length - 1) throw new Error(`Not one usage in ${sample.file}`);
  return others.join("\n\n");
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
