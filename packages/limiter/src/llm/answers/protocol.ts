import type { AnswerNotes } from "./answer-notes.ts";

/** A JSON object of a provider. */
export type Json = Readonly<Record<string, unknown>>;

/** How a provider says what an answer holds. Whatever is not as expected is passed over. */
export interface Protocol {
  /** Reads one event of a stream. */
  readEvent(event: Json, answer: AnswerNotes): void;
  /** Reads an answer that came in one piece. */
  readBody(body: Json, answer: AnswerNotes): void;
}

/** A value as an object to read from: an empty one if it is none. */
export function toObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : NOTHING;
}

/** A value as a list to read from: an empty one if it is none. */
export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

const NOTHING: Json = {};
