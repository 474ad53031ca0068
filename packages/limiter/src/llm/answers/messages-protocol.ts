/*
 * Anthropic's messages. A stream begins with `message_start`, which reports the usage of the
 * prompt, and ends with `message_delta`, which reports all usage, and `message_stop`.
 */
import type { TokenUsage } from "../tokens/token-usage.ts";
import type { AnswerNotes } from "./answer-notes.ts";
import { toList, toObject, type Json, type Protocol } from "./protocol.ts";
import { parsePartCount, validateUsage, parseTokenCount } from "./token-counts.ts";

export const MESSAGES_PROTOCOL: Protocol = { readEvent, readBody };

function readEvent(event: Json, answer: AnswerNotes): void {
  switch (event["type"]) {
    case "message_start":
      readStart(toObject(event["message"]), answer);
      break;
    case "content_block_start":
      readBlock(toObject(event["content_block"]), answer);
      break;
    case "content_block_delta":
      readBlock(toObject(event["delta"]), answer);
      break;
    case "message_delta":
      readUsage(event, answer);
      if (typeof toObject(event["delta"])["stop_reason"] === "string") answer.finishes();
      break;
    case "message_stop":
      answer.ends();
      break;
    case "error":
      answer.fails();
      break;
    default: // `ping`, `content_block_stop`, and events of later versions
  }
}

function readBody(body: Json, answer: AnswerNotes): void {
  if (body["type"] === "error") answer.fails();
  for (const item of toList(body["content"])) {
    const block = toObject(item);
    readBlock(block, answer);
    if (block["input"] !== undefined) answer.addText(JSON.stringify(block["input"]));
  }
  readUsage(body, answer);
}

function readBlock(block: Json, answer: AnswerNotes): void {
  answer.addText(block["text"]);
  answer.addText(block["thinking"]);
  answer.addText(block["partial_json"]);
}

/** The reported output is ignored: it covers only the first token or two. */
function readStart({ usage }: Json, answer: AnswerNotes): void {
  if (usage !== undefined && usage !== null)
    answer.reportsInput(validateUsage(readInput(toObject(usage), undefined)));
}

function readUsage({ usage }: Json, answer: AnswerNotes): void {
  if (usage === undefined || usage === null) return;
  const numbers = toObject(usage);
  answer.reports(
    validateUsage({
      ...readInput(numbers, answer.reported),
      output: parseTokenCount(numbers["output_tokens"]),
      reasoning: parsePartCount(toObject(numbers["output_tokens_details"])["thinking_tokens"]),
    }),
  );
}

/** Reads the usage of the prompt. Numbers that are missing here keep their earlier value. */
function readInput(usage: Json, before: Partial<TokenUsage> | undefined): InputUsage {
  return {
    input: parseTokenCount(usage["input_tokens"] ?? before?.input),
    cachedInput: parsePartCount(usage["cache_read_input_tokens"] ?? before?.cachedInput),
    cacheWriteInput: parsePartCount(
      usage["cache_creation_input_tokens"] ?? before?.cacheWriteInput,
    ),
  };
}

type InputUsage = Pick<TokenUsage, "input" | "cachedInput" | "cacheWriteInput">;
