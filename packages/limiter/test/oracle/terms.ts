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

const memo = new Map<string, Terms>();

/** The exact terms of a limit. */
export function toTerms(spec: LimitSpec): Terms {
  const { name, capacity, refillAmount, refillPeriodSeconds } = spec;
  const key = `${name} ${capacity} ${refillAmount} ${refillPeriodSeconds}`;
  const known = memo.get(key);
  if (known !== undefined) return known;
  const terms = exactTerms({
    name,
    capacityMilli: BigInt(capacity) * 1000n,
    amount: BigInt(refillAmount) * 1000n,
    period: BigInt(refillPeriodSeconds) * 1000n,
  });
  memo.set(key, terms);
  return terms;
}

/** The terms of one shard: its share of the capacity and of the rate, in the same period. */
export function termsOfShard(whole: Terms, shard: number, divisor: number): Terms {
  return exactTerms({
    ...whole,
    capacityMilli: computeShare(whole.capacityMilli, shard, divisor),
    amount: computeShare(whole.amount, shard, divisor),
  });
}

/** How much of `whole` belongs to a shard: how many k < whole have k mod divisor = shard. */
export function computeShare(whole: bigint, shard: number, divisor: number): bigint {
  const parts = BigInt(divisor);
  return whole / parts + (BigInt(shard) < whole % parts ? 1n : 0n);
}

/** Terms from their numbers in millitokens and milliseconds. */
export function exactTerms({
  name,
  capacityMilli,
  amount,
  period,
}: Pick<Terms, "name" | "capacityMilli" | "amount" | "period">): Terms {
  const grain = period / greatestDivisor(amount, period);
  return { name, capacityMilli, amount, period, ceiling: capacityMilli * period, grain };
}

/** Division rounded down, for any sign of the dividend. */
export function floorDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend < 0n && quotient * divisor !== dividend ? quotient - 1n : quotient;
}

function greatestDivisor(left: bigint, right: bigint): bigint {
  return right === 0n ? left : greatestDivisor(right, left % right);
}
