import { ValidationError } from "../../core/errors.ts";
import { checkOptions, optionNames } from "../../core/options.ts";
import { warnOfFailure } from "../../warnings/run-safely.ts";
import type { Estimate, Estimator, LlmCall } from "../tokens/llm-call.ts";
import { BYTES_PER_TOKEN } from "../tokens/token-usage.ts";
import { isWholeTokens, MOST_TOKENS } from "./whole-tokens.ts";

/** How `simpleEstimator` estimates. */
export interface SimpleEstimatorOptions {
  /** UTF-8 bytes of text in a token. @default 4 */
  readonly bytesPerToken?: number;
  /** Tokens of an image, or of another file. @default 1000 */
  readonly tokensPerImage?: number;
  /**
   * Counts the tokens of a text, instead of its bytes. If it fails for a text, that is estimated by
   * its bytes, with one warning.
   * @example simpleEstimator({ count: (text) => countTokens(text) }); // of gpt-tokenizer
   */
  readonly count?: (text: string, model: string) => number;
  /**
   * Tokens to reserve for an answer, never more than the call's maximum. "max": the maximum itself,
   * which the answer cannot exceed, and 1024 if the call names none. @default 1024
   */
  readonly output?: number | "max";
}

const OPTION_NAMES = optionNames<SimpleEstimatorOptions>({
  bytesPerToken: true,
  tokensPerImage: true,
  count: true,
  output: true,
});

const OUTPUT_TOKENS = 1024;

/**
 * Estimates by the length of the text. It learns nothing: equal calls reserve equal amounts.
 * @example limitFetch({ ...metered, estimator: simpleEstimator({ output: 500 }) });
 */
export function simpleEstimator(options: SimpleEstimatorOptions = {}): Estimator {
  checkSimpleOptions(options);
  const {
    bytesPerToken = BYTES_PER_TOKEN,
    tokensPerImage = 1000,
    count,
    output = OUTPUT_TOKENS,
  } = options;
  const textTokens = (call: LlmCall): number =>
    count === undefined ? call.textBytes / bytesPerToken : countTexts(call, count, bytesPerToken);
  return {
    estimate(call: LlmCall): Estimate {
      const most = call.maxOutputTokens ?? (output === "max" ? OUTPUT_TOKENS : Infinity);
      return {
        input: Math.ceil(textTokens(call)) + call.images * tokensPerImage,
        output: Math.min(output === "max" ? Infinity : output, most) * call.choices,
      };
    },
    tokensOf: (_call, textBytes) => Math.ceil(textBytes / bytesPerToken),
  };
}

function checkSimpleOptions(options: SimpleEstimatorOptions): void {
  checkOptions(options, OPTION_NAMES, "simpleEstimator");
  const { bytesPerToken = BYTES_PER_TOKEN, tokensPerImage = 0, count, output = 0 } = options;
  if (!(typeof bytesPerToken === "number" && bytesPerToken >= 0.1 && bytesPerToken <= 100))
    throw new ValidationError("bytesPerToken", bytesPerToken, "must be a number from 0.1 to 100");
  if (!isWholeTokens(tokensPerImage))
    throw new ValidationError("tokensPerImage", tokensPerImage, "must be a whole number of tokens");
  if (count !== undefined && typeof count !== "function")
    throw new ValidationError(
      "count",
      count,
      "must be a function that returns the tokens of a text, such as (text) => countTokens(text)",
    );
  if (output !== "max" && !isWholeTokens(output))
    throw new ValidationError("output", output, 'must be a whole number of tokens, or "max"');
}

/**
 * Tokenizers throw for some texts, such as those that contain "<|endoftext|>". Such a
 * text must neither be free nor break the call.
 */
function countTexts(
  call: LlmCall,
  count: NonNullable<SimpleEstimatorOptions["count"]>,
  bytesPerToken: number,
): number {
  let tokens = 0;
  for (const text of call.texts()) {
    try {
      const counted = count(text, call.model);
      if (!(typeof counted === "number" && counted >= 0 && counted <= MOST_TOKENS))
        throw new TypeError(`it returned ${String(counted)}`);
      tokens += counted;
    } catch (error) {
      tokens += Buffer.byteLength(text) / bytesPerToken;
      warnOfFailure("The tokenizer of simpleEstimator", error);
    }
  }
  return tokens;
}
