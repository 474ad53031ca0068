/** The part of what Lambda tells about an invocation that is used; not all that call have it. */
export interface LambdaContext {
  readonly getRemainingTimeInMillis?: () => number;
}

/**
 * How long an invocation may work, so that some time is left to answer; undefined if Lambda does
 * not say how much it has. At least half of the time is for work, also where there is little.
 */
export function computeWorkTimeMs(lambda: LambdaContext, reservedMs: number): number | undefined {
  const leftMs = lambda.getRemainingTimeInMillis?.();
  return leftMs === undefined ? undefined : Math.max(leftMs - reservedMs, leftMs / 2);
}
