/*
 * Chat completions, and the older completions. A stream ends with `[DONE]`; its usage is in a chunk
 * without choices before that. Some servers report it in the chunk with the finish reason, and some
 * in every chunk, up to there.
 */
import type { AnswerNotes } from "./answer-notes.ts";
import { listOf, objectOf, type Json, type Protocol } from "./protocol.ts";
import { usageOfTotals } from "./token-counts.ts";

export const CHAT_PROTOCOL: Protocol = { readEvent: readChat, readBody: readChat };

/** Whether an event holds the usage and nothing else. */
export function isUsageChunk({ choices, usage, error }: Json): boolean {
  const isWithoutChoices = Array.isArray(choices) && choices.length === 0;
  return isWithoutChoices && typeof usage === "object" && usage !== null && error === undefined;
}

function readChat(chunk: Json, answer: AnswerNotes): void {
  if (chunk["error"] !== undefined && chunk["error"] !== null) answer.fails();
  for (const choice of listOf(chunk["choices"])) readChoice(objectOf(choice), answer);
  if (chunk["usage"] !== undefined && chunk["usage"] !== null)
    answer.reports(usageOf(objectOf(chunk["usage"])));
}

function readChoice(choice: Json, answer: AnswerNotes): void {
  const message = objectOf(choice["delta"] ?? choice["message"]);
  answer.said(choice["text"]);
  answer.said(message["content"]);
  answer.said(message["refusal"]);
  // Two names of the same; servers that have both say everything twice.
  answer.said(message["reasoning_content"] ?? message["reasoning"]);
  answer.said(objectOf(message["function_call"])["arguments"]);
  for (const call of listOf(message["tool_calls"])) {
    const tool = objectOf(call);
    answer.said(objectOf(tool["function"])["arguments"]);
    answer.said(objectOf(tool["custom"])["input"]);
  }
  if (typeof choice["finish_reason"] === "string") answer.finishes();
}

function usageOf(usage: Json): ReturnType<typeof usageOfTotals> {
  const promptDetails = objectOf(usage["prompt_tokens_details"]);
  return usageOfTotals({
    prompt: usage["prompt_tokens"],
    cached: promptDetails["cached_tokens"],
    cacheWrite: promptDetails["cache_write_tokens"],
    output: usage["completion_tokens"],
    reasoning: objectOf(usage["completion_tokens_details"])["reasoning_tokens"],
    total: usage["total_tokens"],
  });
}
