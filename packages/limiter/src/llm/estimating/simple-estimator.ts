import type { Estimate, Estimator, LlmCall } from "../tokens/llm-call.ts";

/** How `simpleEstimator` estimates. */
export interface SimpleEstimatorOptions {
  /** UTF-8 bytes of text in a token. @default 4 */
  readonly bytesPerToken?: number;
  /** Tokens of an image. @default 1000 */
  readonly tokensPerImage?: number;
  /**
   * Counts the tokens of a text, instead of its bytes.
   * @example simpleEstimator({ count: (text) => countTokens(text) }); // of gpt-tokenizer
   */
  readonly count?: (text: string, model: string) => number;
  /**
   * Tokens to reserve for an answer, never more than the call's maximum. "max": the maximum itself,
   * which the answer cannot pass. @default 1024
   */
  readonly output?: number | "max";
}

/**
 * Estimates by the length of the text. It learns nothing, so that equal calls reserve equal amounts.
 * @example limitFetch({ ...metered, estimator: simpleEstimator({ output: 500 }) });
 */
export function simpleEstimator(options: SimpleEstimatorOptions = {}): Estimator {
  const { bytesPerToken = 4, tokensPerImage = 1000, output = 1024 } = options;
  return {
    estimate(call: LlmCall): Estimate {
      const most = call.maxOutputTokens ?? Infinity;
      const each = output === "max" ? (call.maxOutputTokens ?? 1024) : Math.min(output, most);
      return {
        input: Math.ceil(call.textBytes / bytesPerToken) + call.images * tokensPerImage,
        output: each * call.choices,
      };
    },
    tokensOf: (_call, textBytes) => Math.ceil(textBytes / bytesPerToken),
  };
}
