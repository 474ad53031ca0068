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

/** The usage that a report tells; undefined if its numbers make no sense. */
export function usageFromTotals(totals: ReportedTotals): TokenUsage | undefined {
  const prompt = tokenCount(totals.prompt);
  const cachedInput = partCount(totals.cached);
  const cacheWriteInput = partCount(totals.cacheWrite);
  const output = tokenCount(totals.output);
  const reasoning = partCount(totals.reasoning);
  const isApart = reasoning > output || totals.total === prompt + output + reasoning;
  return sensible({
    input: prompt - cachedInput - cacheWriteInput,
    cachedInput,
    cacheWriteInput,
    output: isApart ? output + reasoning : output,
    reasoning,
  });
}

/** The usage, if none of its numbers is negative or NaN. */
export function sensible<Usage extends Partial<TokenUsage>>(usage: Usage): Usage | undefined {
  return Object.values(usage).every((count) => count >= 0) ? usage : undefined;
}

/** A number of tokens; NaN if it is none. */
export function tokenCount(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : NaN;
}

/** A number of tokens that may be missing: 0 then; NaN if it is none. */
export function partCount(value: unknown): number {
  return tokenCount(value ?? 0);
}
