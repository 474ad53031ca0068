/*
 * Chat completions, and the older completions. A stream ends with `[DONE]`; its usage is in a chunk
 * without choices before that. Some servers report it in the chunk with the finish reason, and some
 * in every chunk, up to there.
 */
import type { AnswerNotes } from "./answer-notes.ts";
import { toList, toObject, type Json, type Protocol } from "./protocol.ts";
import { buildUsage } from "./token-counts.ts";

export const CHAT_PROTOCOL: Protocol = { readEvent: readChat, readBody: readChat };

/** Whether an event holds the usage and nothing else. */
export function isUsageChunk({ choices, usage, error }: Json): boolean {
  const isWithoutChoices = Array.isArray(choices) && choices.length === 0;
  return isWithoutChoices && typeof usage === "object" && usage !== null && error === undefined;
}

function readChat(chunk: Json, answer: AnswerNotes): void {
  if (chunk["error"] !== undefined && chunk["error"] !== null) answer.fails();
  for (const choice of toList(chunk["choices"])) readChoice(toObject(choice), answer);
  if (chunk["usage"] !== undefined && chunk["usage"] !== null)
    answer.reports(readUsage(toObject(chunk["usage"])));
}

function readChoice(choice: Json, answer: AnswerNotes): void {
  const message = toObject(choice["delta"] ?? choice["message"]);
  answer.addText(choice["text"]);
  answer.addText(message["content"]);
  answer.addText(message["refusal"]);
  // Two names of one field. Servers that have both send the text twice.
  answer.addText(message["reasoning_content"] ?? message["reasoning"]);
  answer.addText(toObject(message["function_call"])["arguments"]);
  for (const call of toList(message["tool_calls"])) {
    const tool = toObject(call);
    answer.addText(toObject(tool["function"])["arguments"]);
    answer.addText(toObject(tool["custom"])["input"]);
  }
  if (typeof choice["finish_reason"] === "string") answer.finishes();
}

function readUsage(usage: Json): ReturnType<typeof buildUsage> {
  const promptDetails = toObject(usage["prompt_tokens_details"]);
  return buildUsage({
    prompt: usage["prompt_tokens"],
    cached: promptDetails["cached_tokens"],
    cacheWrite: promptDetails["cache_write_tokens"],
    output: usage["completion_tokens"],
    reasoning: toObject(usage["completion_tokens_details"])["reasoning_tokens"],
    total: usage["total_tokens"],
  });
}
