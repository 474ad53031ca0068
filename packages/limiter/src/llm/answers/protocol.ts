import type { AnswerNotes } from "./answer-notes.ts";

/** A JSON object of a provider. */
export type Json = Readonly<Record<string, unknown>>;

/** Reads the answers of one API. Anything unexpected is ignored. */
export interface Protocol {
  /** Reads one event of a stream. */
  readEvent(event: Json, answer: AnswerNotes): void;
  /** Reads an answer that came in one piece. */
  readBody(body: Json, answer: AnswerNotes): void;
}

/** Returns a value as an object to read from: an empty one if it is not an object. */
export function toObject(value: unknown): Json {
  return typeof value === "object" && value !== null ? (value as Json) : NOTHING;
}

/** Returns a value as a list to read from: an empty one if it is not a list. */
export function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

const NOTHING: Json = {};
