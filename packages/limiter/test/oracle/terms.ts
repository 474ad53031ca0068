import type { CalendarSpec } from "./oracle-calendar.ts";

/**
 * A limit as configuration states it. Declared anew: the oracle shares nothing with the code that
 * it judges.
 */
export type LimitSpec = RateSpec | QuotaSpec | SessionSpec;

interface BaseSpec {
  readonly name: string;
  readonly capacity: number;
}

interface RateSpec extends BaseSpec {
  readonly kind?: "rate";
  readonly refillAmount: number;
  readonly refillPeriodSeconds: number;
}

interface QuotaSpec extends BaseSpec {
  readonly kind: "quota";
  readonly resets: CalendarSpec;
  readonly carry?: { readonly debt?: boolean; readonly unused?: number };
}

interface SessionSpec extends BaseSpec {
  readonly kind: "session";
  readonly windowSeconds: number;
}

/** How a quota or session is full again. */
export interface WindowTerms {
  readonly kind: "quota" | "session";
  /** Equal for limits whose windows end alike. */
  readonly definition: string;
  /** Undefined for a session. */
  readonly calendar: CalendarSpec | undefined;
  readonly lengthMs: number;
  readonly carriesDebt: boolean;
  readonly unusedMilli: bigint;
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
  /** Of a quota or session, which earns nothing: `amount` is 0 and `period` 1. */
  readonly window?: WindowTerms;
}

const memo = new Map<string, Terms>();
const specs = new Map<Terms, LimitSpec>();

/** The limit that terms were made of. */
export function toSpec(terms: Terms): LimitSpec {
  return specs.get(terms)!;
}

/** The exact terms of a limit. */
export function toTerms(spec: LimitSpec): Terms {
  const key = JSON.stringify(spec);
  const known = memo.get(key);
  if (known !== undefined) return known;
  const isRate = "refillAmount" in spec;
  const terms = exactTerms({
    name: spec.name,
    capacityMilli: BigInt(spec.capacity) * 1000n,
    amount: isRate ? BigInt(spec.refillAmount) * 1000n : 0n,
    period: isRate ? BigInt(spec.refillPeriodSeconds) * 1000n : 1n,
    ...(!isRate && { window: windowTerms(spec) }),
  });
  memo.set(key, terms);
  specs.set(terms, spec);
  return terms;
}

function windowTerms(spec: QuotaSpec | SessionSpec): WindowTerms {
  const isQuota = spec.kind === "quota";
  return {
    kind: spec.kind,
    definition: JSON.stringify({ ...spec, name: undefined, capacity: undefined }),
    calendar: isQuota ? spec.resets : undefined,
    lengthMs: isQuota ? 0 : spec.windowSeconds * 1000,
    carriesDebt: isQuota && spec.carry?.debt === true,
    unusedMilli: isQuota ? BigInt(spec.carry?.unused ?? 0) * 1000n : 0n,
  };
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
  window,
}: Pick<Terms, "name" | "capacityMilli" | "amount" | "period" | "window">): Terms {
  const grain = period / greatestDivisor(amount, period);
  const ceiling = capacityMilli * period + (window?.unusedMilli ?? 0n);
  const terms = { name, capacityMilli, amount, period, ceiling, grain };
  return window === undefined ? terms : { ...terms, window };
}

/** Division rounded down, for any sign of the dividend. */
export function floorDivide(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend < 0n && quotient * divisor !== dividend ? quotient - 1n : quotient;
}

function greatestDivisor(left: bigint, right: bigint): bigint {
  return right === 0n ? left : greatestDivisor(right, left % right);
}
