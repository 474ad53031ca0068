import type { TokenUsage } from "./token-usage.ts";

/** What is known about a call before it is made. */
export interface LlmCall {
  /** The name of the model, as the provider knows it. */
  readonly model: string;
  /** UTF-8 bytes of everything that the model reads as text: messages, tools, response formats. */
  readonly textBytes: number;
  /**
   * The texts themselves, for tokenizers.
   * @example for (const text of call.texts()) tokens += countTokens(text);
   */
  readonly texts: () => Iterable<string>;
  /** Images and other files. */
  readonly images: number;
  /** How many answers the call asks for. */
  readonly choices: number;
  /** The most tokens that one answer may have, if the call sets that; 0 for embeddings. */
  readonly maxOutputTokens: number | undefined;
  /** Whether the answer is streamed. */
  readonly stream: boolean;
}

/** Tokens that are reserved before a call: whole numbers. */
export interface Estimate {
  /** Tokens of the prompt. */
  readonly input: number;
  /** Tokens of all answers together. */
  readonly output: number;
}

/** Estimates how many tokens a call will use. */
export interface Estimator {
  /**
   * Returns the tokens to reserve before a call.
   * @example const { input, output } = estimator.estimate(call);
   */
  estimate(call: LlmCall): Estimate;
  /**
   * Called with what the provider reported for a call.
   * @example estimator.learn?.(call, estimate, usage);
   */
  learn?(call: LlmCall, estimate: Estimate, usage: TokenUsage): void;
  /**
   * Returns the tokens of an answer whose usage was not reported, by the UTF-8 bytes of its text.
   * @default a quarter of the bytes, rounded up
   * @example const tokens = estimator.tokensOf?.(call, 4_000);
   */
  tokensOf?(call: LlmCall, textBytes: number): number;
}
