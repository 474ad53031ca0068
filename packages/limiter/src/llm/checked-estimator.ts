import { isRecord, MAX_AMOUNT } from "../core/amounts.ts";
import { ValidationError } from "../core/errors.ts";
import { runSafely, warnOfFailure } from "../warnings/run-safely.ts";
import type { Estimate, Estimator, LlmCall } from "./tokens/llm-call.ts";
import { BYTES_PER_TOKEN, type TokenUsage } from "./tokens/token-usage.ts";

const NOTHING: Estimate = { input: 0, output: 0 };
const TOKENS = `from 0 to ${MAX_AMOUNT} tokens`;

/**
 * Checks an estimator that an application may have written. Before a call, its mistake is an error
 * and nothing is charged. After the grant it is only a warning, because the call must be settled.
 */
export class CheckedEstimator {
  readonly #estimator: Estimator;

  constructor(estimator: Estimator) {
    this.#estimator = estimator;
  }

  /** Returns the estimator's answer, which `checkEstimate` validates. */
  estimate(call: LlmCall): unknown {
    // A constant estimate would charge for requests that no model answers.
    return isEmpty(call) ? NOTHING : this.#estimator.estimate(call);
  }

  /** Passes the usage of a call to the estimator. Never throws. */
  learn(call: LlmCall, estimate: Estimate, usage: TokenUsage): void {
    runSafely("estimator.learn", () => this.#estimator.learn?.(call, estimate, usage));
  }

  /** Counts the tokens of an answer by the UTF-8 bytes of its text. Never throws. */
  tokensOf(call: LlmCall, textBytes: number): number {
    const tokens = runSafely("estimator.tokensOf", () =>
      this.#estimator.tokensOf?.(call, textBytes),
    );
    if (isTokens(tokens)) return Math.ceil(tokens);
    if (tokens !== undefined) warnOfFailure("estimator.tokensOf", describeNonTokens(tokens));
    return Math.ceil(textBytes / BYTES_PER_TOKEN);
  }
}

/** Rounds an estimate up to whole tokens. Throws if it is invalid. */
export function checkEstimate(estimate: unknown): Estimate {
  const { input, output } = isRecord(estimate) ? estimate : {};
  return { input: toWholeTokens("input", input), output: toWholeTokens("output", output) };
}

/** Whether a call is known to have neither input nor output. */
function isEmpty({ textBytes, images, maxOutputTokens }: LlmCall): boolean {
  return textBytes === 0 && images === 0 && maxOutputTokens === 0;
}

function toWholeTokens(kind: keyof Estimate, tokens: unknown): number {
  if (isTokens(tokens)) return Math.ceil(tokens);
  throw new ValidationError(
    `estimate.${kind}`,
    tokens,
    `must be ${TOKENS}; estimator.estimate must return { input, output }, not a promise`,
  );
}

function describeNonTokens(value: unknown): string {
  return `it must return ${TOKENS}, not ${typeof value === "number" ? value : typeof value}`;
}

function isTokens(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MAX_AMOUNT;
}
