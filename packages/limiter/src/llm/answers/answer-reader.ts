import type { TokenUsage } from "../tokens/token-usage.ts";

/** What was read of an answer so far. */
export interface AnswerSoFar {
  /**
   * UTF-8 bytes of text, reasoning and tool input; undefined if the answer is nothing that can be
   * counted.
   */
  readonly outputBytes: number | undefined;
  /** What the provider has reported: all kinds at the end, and perhaps only the input before. */
  readonly reported: Partial<TokenUsage> | undefined;
  /** Whether what was reported is the usage of the whole answer. */
  readonly isReportFinal: boolean;
  /** Whether the protocol has said that the answer has ended. */
  readonly isComplete: boolean;
  /** Whether the provider has told an error in the middle of its answer. */
  readonly hasFailed?: boolean;
  /** Whether a usage was reported whose numbers make no sense. It counts as not reported. */
  readonly hasUnreadableUsage: boolean;
}

/**
 * Reads an answer as it goes by: events as bytes, or the parts of an AI SDK stream. It never
 * throws, whatever the answer holds.
 */
export interface AnswerReader<Chunk> extends AnswerSoFar {
  /** Reads a chunk. Returns what to pass on: the chunk itself, unless something is withheld. */
  read(chunk: Chunk): Chunk | undefined;
  /** The answer has ended. Returns what was held back until now, if anything. */
  end(): Chunk | undefined;
}
