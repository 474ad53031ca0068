/*
 * Numbers of tokens, as providers report them. A value that is not a whole number of at least 0
 * invalidates the whole report.
 */
import type { TokenUsage } from "../tokens/token-usage.ts";

/** Numbers of a report that counts caches as part of the prompt, and reasoning as output. */
export interface ReportedTotals {
  /** Tokens of the whole prompt. */
  readonly prompt: unknown;
  /** Of these, read from a cache. It may be missing, like all parts. */
  readonly cached?: unknown;
  /** Of these, written to a cache. */
  readonly cacheWrite?: unknown;
  /** Tokens of the answer. */
  readonly output: unknown;
  /** Of these, reasoning. */
  readonly reasoning?: unknown;
  /** Everything together. It shows whether a server counts reasoning apart, as xAI does. */
  readonly total?: unknown;
}

/** Builds the usage of a report; undefined if its numbers are invalid. */
export function buildUsage(totals: ReportedTotals): TokenUsage | undefined {
  const prompt = parseTokenCount(totals.prompt);
  const cachedInput = parsePartCount(totals.cached);
  const cacheWriteInput = parsePartCount(totals.cacheWrite);
  const output = parseTokenCount(totals.output);
  const reasoning = parsePartCount(totals.reasoning);
  const isApart = reasoning > output || totals.total === prompt + output + reasoning;
  return validateUsage({
    input: prompt - cachedInput - cacheWriteInput,
    cachedInput,
    cacheWriteInput,
    output: isApart ? output + reasoning : output,
    reasoning,
  });
}

/** Returns the usage, or undefined if one of its numbers is negative or NaN. */
export function validateUsage<Usage extends Partial<TokenUsage>>(usage: Usage): Usage | undefined {
  return Object.values(usage).every((count) => count >= 0) ? usage : undefined;
}

/** Parses a number of tokens; NaN if it is invalid. */
export function parseTokenCount(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : NaN;
}

/** Parses a number of tokens: 0 if it is missing, and NaN if it is invalid. */
export function parsePartCount(value: unknown): number {
  return parseTokenCount(value ?? 0);
}
