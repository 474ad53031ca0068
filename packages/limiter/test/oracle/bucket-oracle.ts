/**
 * One limit of a bucket in BigInt and in the rate's own terms, not in lowest ones. It shares no
 * code with `core/bucket.ts`, so that the two can only agree where both are right.
 */
export interface OracleLimit {
  readonly capacity: number;
  readonly refillAmount: number;
  readonly refillPeriodSeconds: number;
  /**
   * Of a shard, whose shares are no whole tokens: what it has instead of `capacity` and
   * `refillAmount`.
   */
  readonly share?: { readonly capacityMilli: bigint; readonly refillAmountMilli: bigint };
}

export interface OracleState {
  readonly tokens: bigint;
  /** What was earned beyond the last whole millitoken, in units of 1/periodMs. */
  readonly fraction: bigint;
  readonly consumed: bigint;
  readonly stampMs: bigint;
}

const LEAST = BigInt(Number.MIN_SAFE_INTEGER);

export function oracleFull(limit: OracleLimit, nowMs: number): OracleState {
  return { tokens: capacityOf(limit), fraction: 0n, consumed: 0n, stampMs: BigInt(nowMs) };
}

export function oracleRefill(limit: OracleLimit, state: OracleState, nowMs: number): OracleState {
  const elapsedMs = BigInt(nowMs) - state.stampMs;
  if (elapsedMs <= 0n) return state;
  const earned = elapsedMs * refillOf(limit) + state.fraction;
  const periodMs = BigInt(limit.refillPeriodSeconds) * 1000n;
  const tokens = state.tokens + earned / periodMs;
  const isFull = tokens >= capacityOf(limit);
  return {
    ...state,
    tokens: isFull ? capacityOf(limit) : tokens,
    fraction: isFull ? 0n : earned % periodMs,
    stampMs: BigInt(nowMs),
  };
}

export function oracleApply(
  limit: OracleLimit,
  state: OracleState,
  costMilli: number,
  nowMs: number,
): OracleState {
  const refilled = oracleRefill(limit, state, nowMs);
  const after = refilled.tokens - BigInt(costMilli);
  const isFull = after >= capacityOf(limit);
  return {
    tokens: isFull ? capacityOf(limit) : after < LEAST ? LEAST : after,
    fraction: isFull ? 0n : refilled.fraction,
    consumed: state.consumed + BigInt(costMilli),
    stampMs: refilled.stampMs,
  };
}

/**
 * The fewest milliseconds after `nowMs` at which `needed` is there, found by searching, not by
 * inverting a formula.
 */
export function oracleWait(
  limit: OracleLimit,
  state: OracleState,
  neededMilli: number,
  nowMs: number,
): bigint | undefined {
  if (BigInt(neededMilli) > capacityOf(limit)) return undefined;
  const fitsAfter = (waitMs: bigint): boolean => {
    const elapsedMs = BigInt(nowMs) + waitMs - state.stampMs;
    const earned = elapsedMs <= 0n ? 0n : elapsedMs * refillOf(limit) + state.fraction;
    return (
      state.tokens + earned / (BigInt(limit.refillPeriodSeconds) * 1000n) >= BigInt(neededMilli)
    );
  };
  if (fitsAfter(0n)) return 0n;
  let [tooShort, enough] = [0n, 1n];
  while (!fitsAfter(enough)) [tooShort, enough] = [enough, enough * 2n];
  while (enough - tooShort > 1n) {
    const middle = (tooShort + enough) / 2n;
    if (fitsAfter(middle)) enough = middle;
    else tooShort = middle;
  }
  return enough;
}

function capacityOf(limit: OracleLimit): bigint {
  return limit.share?.capacityMilli ?? BigInt(limit.capacity) * 1000n;
}

function refillOf(limit: OracleLimit): bigint {
  return limit.share?.refillAmountMilli ?? BigInt(limit.refillAmount) * 1000n;
}
