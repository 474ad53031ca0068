/*
 * Anthropic's messages. A stream begins with `message_start`, which reports what the prompt has
 * used, and ends with `message_delta`, which reports everything, and `message_stop`.
 */
import type { TokenUsage } from "../tokens/token-usage.ts";
import type { AnswerNotes } from "./answer-notes.ts";
import { toList, toObject, type Json, type Protocol } from "./protocol.ts";
import { partCount, sensible, tokenCount } from "./token-counts.ts";

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
    default: // `ping`, `content_block_stop`, and what is yet to be invented
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

/** The output that is reported here is what was said until now: a token or two. */
function readStart({ usage }: Json, answer: AnswerNotes): void {
  if (usage !== undefined && usage !== null)
    answer.reportsInput(sensible(readInput(toObject(usage), undefined)));
}

function readUsage({ usage }: Json, answer: AnswerNotes): void {
  if (usage === undefined || usage === null) return;
  const numbers = toObject(usage);
  answer.reports(
    sensible({
      ...readInput(numbers, answer.reported),
      output: tokenCount(numbers["output_tokens"]),
      reasoning: partCount(toObject(numbers["output_tokens_details"])["thinking_tokens"]),
    }),
  );
}

/** What the prompt has used. What is not told again is as it was. */
function readInput(usage: Json, before: Partial<TokenUsage> | undefined): InputUsage {
  return {
    input: tokenCount(usage["input_tokens"] ?? before?.input),
    cachedInput: partCount(usage["cache_read_input_tokens"] ?? before?.cachedInput),
    cacheWriteInput: partCount(usage["cache_creation_input_tokens"] ?? before?.cacheWriteInput),
  };
}

type InputUsage = Pick<TokenUsage, "input" | "cachedInput" | "cacheWriteInput">;
