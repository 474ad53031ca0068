/* Embeddings. They come in one piece, have no output, and cost the tokens of their texts. */
import type { AnswerNotes } from "./answer-notes.ts";
import { toObject, type Json, type Protocol } from "./protocol.ts";
import { buildUsage } from "./token-counts.ts";

export const EMBEDDINGS_PROTOCOL: Protocol = { readEvent: readBody, readBody };

function readBody({ usage, error }: Json, answer: AnswerNotes): void {
  if (error !== undefined && error !== null) answer.fails();
  if (usage !== undefined && usage !== null)
    answer.reports(buildUsage({ prompt: toObject(usage)["prompt_tokens"], output: 0 }));
}
