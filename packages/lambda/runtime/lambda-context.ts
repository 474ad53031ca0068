/** The used part of Lambda's context of an invocation; some callers do not pass it. */
export interface LambdaContext {
  readonly getRemainingTimeInMillis?: () => number;
}

/**
 * How long an invocation may work so that some time is left to answer; undefined if the context
 * does not say. At least half of the time is for work, even if there is little.
 */
export function computeWorkTimeMs(lambda: LambdaContext, reservedMs: number): number | undefined {
  const leftMs = lambda.getRemainingTimeInMillis?.();
  return leftMs === undefined ? undefined : Math.max(leftMs - reservedMs, leftMs / 2);
}
