/**
 * A limit as configuration states it. Declared anew: the oracle shares nothing with the code that
 * it judges.
 */
export interface LimitSpec {
  readonly name: string;
  readonly capacity: number;
  readonly refillAmount: number;
  readonly refillPeriodSeconds: number;
}

/**
 * A limit in exact numbers: `amount` millitokens every `period` milliseconds, not reduced. Equal
 * limits are the same object.
 */
export interface Terms {
  readonly spec: LimitSpec;
  readonly name: string;
  readonly capacityMilli: bigint;
  readonly amount: bigint;
  readonly period: bigint;
  /** The capacity in units of 1/period millitoken. */
  readonly ceiling: bigint;
  /**
   * The reduced period: a change of limits keeps the fraction of a millitoken only to a multiple of
   * 1/grain.
   */
  readonly grain: bigint;
}

const known = new Map<string, Terms>();

/** The exact terms of a limit. */
export function termsOf(spec: LimitSpec): Terms {
  const key = `${spec.name} ${spec.capacity} ${spec.refillAmount} ${spec.refillPeriodSeconds}`;
  const held = known.get(key);
  if (held !== undefined) return held;
  const capacityMilli = BigInt(spec.capacity) * 1000n;
  const amount = BigInt(spec.refillAmount) * 1000n;
  const period = BigInt(spec.refillPeriodSeconds) * 1000n;
  const grain = period / greatestDivisor(amount, period);
  const terms = {
    spec,
    name: spec.name,
    capacityMilli,
    amount,
    period,
    ceiling: capacityMilli * period,
    grain,
  };
  known.set(key, terms);
  return terms;
}

/** Division rounded down, for any sign of the dividend. */
export function floorDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend < 0n && quotient * divisor !== dividend ? quotient - 1n : quotient;
}

function greatestDivisor(left: bigint, right: bigint): bigint {
  return right === 0n ? left : greatestDivisor(right, left % right);
}
