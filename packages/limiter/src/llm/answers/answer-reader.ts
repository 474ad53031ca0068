import type { TokenUsage } from "../tokens/token-usage.ts";

/** What has been read of an answer so far. */
export interface AnswerSoFar {
  /** UTF-8 bytes of text, reasoning and tool input; undefined if the answer cannot be counted. */
  readonly outputBytes: number | undefined;
  /** The reported usage: of all kinds at the end, and perhaps of the input alone before. */
  readonly reported: Partial<TokenUsage> | undefined;
  /** Whether the reported usage covers the whole answer. */
  readonly isReportFinal: boolean;
  /** Whether the protocol has ended the answer. */
  readonly isComplete: boolean;
  /** Whether the provider reported an error in the middle of its answer. */
  readonly hasFailed?: boolean;
  /** Whether a usage was reported whose numbers are invalid. It counts as not reported. */
  readonly hasUnreadableUsage: boolean;
}

/**
 * Reads an answer as it goes by: events as bytes, or the parts of an AI SDK stream. It never
 * throws, whatever the answer holds.
 */
export interface AnswerReader<Chunk> extends AnswerSoFar {
  /** Reads a chunk. Returns the chunk to pass on: the same one, unless something is withheld. */
  read(chunk: Chunk): Chunk | undefined;
  /** Ends the answer. Returns the bytes that were held back, if any. */
  end(): Chunk | undefined;
}
