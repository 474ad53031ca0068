import type { AnswerReader, AnswerSoFar } from "../../../src/llm/answers/answer-reader.ts";
import {
  buildAnswerReader,
  type ExpectedAnswer,
} from "../../../src/llm/answers/build-answer-reader.ts";

/** The result of reading an answer, and the bytes that were passed on. */
export interface Reading {
  readonly read: AnswerSoFar;
  readonly passed: string;
}

/** Builds a reader of a stream or of a body. */
export function getReader(
  protocol: ExpectedAnswer["protocol"],
  { isStream = true, withholdsUsage = false } = {},
): AnswerReader<Uint8Array> {
  const contentType = isStream ? "text/event-stream; charset=utf-8" : "application/json";
  return buildAnswerReader({ protocol, contentType, isStream, withholdsUsage });
}

/** Reads chunks to their end. */
export function readAll(reader: AnswerReader<Uint8Array>, chunks: Iterable<Uint8Array>): Reading {
  const passed: Uint8Array[] = [];
  for (const chunk of chunks) passed.push(reader.read(chunk) ?? new Uint8Array(0));
  passed.push(reader.end() ?? new Uint8Array(0));
  return { read: soFar(reader), passed: Buffer.concat(passed).toString("latin1") };
}

/** Copies what a reader has read so far. */
export function soFar(reader: AnswerSoFar): AnswerSoFar {
  const { outputBytes, reported, isReportFinal, isComplete, hasUnreadableUsage } = reader;
  return { outputBytes, reported, isReportFinal, isComplete, hasUnreadableUsage };
}

/** Cuts bytes into chunks. */
export function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const starts = [0, ...places];
  return starts.map((start, index) => bytes.slice(start, starts[index + 1] ?? bytes.length));
}
