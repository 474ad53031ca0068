/**
 * No call has as many tokens, so a larger number is a mistake. Far below the largest exact
 * number, so that costs are exact whatever they are multiplied with.
 */
export const MOST_TOKENS = 1_000_000_000;

/** Whether a value can be a number of tokens. */
export function isWholeTokens(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MOST_TOKENS;
}
