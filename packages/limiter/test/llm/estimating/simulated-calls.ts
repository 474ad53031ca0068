/*
 * Calls with prompts and answers of log-normal lengths, from a seed. The counts of the provider are
 * random, and the estimators see ordinary calls.
 */
import { seededRandom } from "zae-limiter/testing";
import type { Estimator, LlmCall } from "../../../src/llm/tokens/llm-call.ts";
import { NO_TOKENS } from "../../../src/llm/tokens/token-usage.ts";

/** The distribution of calls. */
export interface Workload {
  /** Tokens of the median answer. */
  readonly median: number;
  /** The standard deviation of the logarithm of answers. */
  readonly sigma: number;
  /** The maximum that every call names, which cuts longer answers off. */
  readonly maxOutputTokens: number | undefined;
  /** UTF-8 bytes in a token of the prompts. */
  readonly bytesPerToken: number;
}

/** How well the calls of a workload were estimated. */
export interface Outcome {
  /** Answers that were longer than what was reserved for them, from 0 to 1. */
  readonly answersAbove: number;
  /** Calls whose prompt and answer together were longer than what was reserved, from 0 to 1. */
  readonly callsAbove: number;
  /** All tokens that were reserved ÷ all that were used. */
  readonly reservedByUsed: number;
}

/** 10 kB of English had 1981 tokens of o200k. */
export const ENGLISH = { bytesPerToken: 5 };
const PROMPT_BYTES = { median: 2000, sigma: 1 };

/** Compares the reservations of an estimator with the usage of a workload. */
export function simulate(
  estimator: Estimator,
  { median, sigma, maxOutputTokens, bytesPerToken }: Workload,
  { seed, calls }: { readonly seed: number; readonly calls: number },
): Outcome {
  const random = seededRandom(seed);
  let answersAbove = 0;
  let callsAbove = 0;
  let reserved = 0;
  let used = 0;
  for (let count = 0; count < calls; count += 1) {
    const textBytes = Math.ceil(
      PROMPT_BYTES.median * Math.exp(PROMPT_BYTES.sigma * normal(random)),
    );
    const wanted = Math.ceil(median * Math.exp(sigma * normal(random)));
    const output = Math.min(wanted, maxOutputTokens ?? Infinity);
    const input = Math.ceil((textBytes / bytesPerToken) * (0.9 + 0.2 * random()));
    const call = toCall(textBytes, maxOutputTokens);
    const estimate = estimator.estimate(call);
    estimator.learn?.(call, estimate, { ...NO_TOKENS, input, output });
    if (output > estimate.output) answersAbove += 1;
    if (input + output > estimate.input + estimate.output) callsAbove += 1;
    reserved += estimate.input + estimate.output;
    used += input + output;
  }
  return {
    answersAbove: answersAbove / calls,
    callsAbove: callsAbove / calls,
    reservedByUsed: reserved / used,
  };
}

function toCall(textBytes: number, maxOutputTokens: number | undefined): LlmCall {
  const rest = { texts: () => [], images: 0, choices: 1, stream: false };
  return { model: "gpt-5", textBytes, maxOutputTokens, ...rest };
}

/** By Box and Muller. */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
