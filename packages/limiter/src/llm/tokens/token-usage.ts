/** Tokens of one answer. The kinds do not overlap, except that `output` includes `reasoning`. */
export interface TokenUsage {
  /** Tokens of the prompt that were neither read from a cache nor written to one. */
  readonly input: number;
  /** Tokens of the prompt that were read from a cache. */
  readonly cachedInput: number;
  /** Tokens of the prompt that were written to a cache. */
  readonly cacheWriteInput: number;
  /** Tokens of the answer, with those of reasoning. */
  readonly output: number;
  /** Tokens of the answer that are not shown. */
  readonly reasoning: number;
}

/** What a limit can count. */
export type TokenKind = "requests" | keyof TokenUsage;

/** UTF-8 bytes of text in a token, if nothing better is known. */
export const BYTES_PER_TOKEN = 4;

/** No tokens of any kind. */
export const NO_TOKENS: TokenUsage = {
  input: 0,
  cachedInput: 0,
  cacheWriteInput: 0,
  output: 0,
  reasoning: 0,
};
