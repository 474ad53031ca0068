/*
 * The responses API. A stream ends with `response.completed`, `.incomplete` or `.failed`, which
 * hold the usage. All output comes in events whose names end in `.delta`.
 */
import type { AnswerNotes } from "./answer-notes.ts";
import { toList, toObject, type Json, type Protocol } from "./protocol.ts";
import { buildUsage } from "./token-counts.ts";

export const RESPONSES_PROTOCOL: Protocol = { readEvent, readBody };

const ENDS: ReadonlySet<unknown> = new Set([
  "response.completed",
  "response.incomplete",
  "response.failed",
]);

/**
 * A response that is made in the background does not exist yet, and will not pass through here.
 */
const NOT_ENDED: ReadonlySet<unknown> = new Set(["queued", "in_progress"]);

/** Audio comes in base64, whose length does not depend on tokens. */
const AUDIO = "response.audio.delta";

function readEvent(event: Json, answer: AnswerNotes): void {
  const { type } = event;
  if (typeof type !== "string") return;
  if (type.endsWith(".delta") && type !== AUDIO) answer.addText(event["delta"]);
  else if (type === "error") answer.fails();
  else if (ENDS.has(type)) {
    readUsage(toObject(event["response"]), answer);
    answer.ends();
  }
}

function readBody(body: Json, answer: AnswerNotes): void {
  if (NOT_ENDED.has(body["status"])) answer.cannotRead();
  for (const item of toList(body["output"])) readItem(toObject(item), answer);
  readUsage(body, answer);
}

function readItem(item: Json, answer: AnswerNotes): void {
  answer.addText(item["arguments"]);
  answer.addText(item["code"]);
  if (item["type"] === "custom_tool_call") answer.addText(item["input"]);
  for (const part of [...toList(item["content"]), ...toList(item["summary"])]) {
    answer.addText(toObject(part)["text"]);
    answer.addText(toObject(part)["refusal"]);
  }
}

function readUsage({ usage }: Json, answer: AnswerNotes): void {
  if (usage === undefined || usage === null) return;
  const numbers = toObject(usage);
  const inputDetails = toObject(numbers["input_tokens_details"]);
  answer.finishes();
  answer.reports(
    buildUsage({
      prompt: numbers["input_tokens"],
      cached: inputDetails["cached_tokens"],
      cacheWrite: inputDetails["cache_write_tokens"],
      output: numbers["output_tokens"],
      reasoning: toObject(numbers["output_tokens_details"])["reasoning_tokens"],
      total: numbers["total_tokens"],
    }),
  );
}
