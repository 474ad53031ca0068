import { MAX_AMOUNT, MILLI } from "./amounts.ts";
import { ValidationError } from "./errors.ts";
import { limitName } from "./identifiers.ts";
import { formatLimit, parseLimit } from "./limit-text.ts";
import { checkOptions, optionNames } from "./options.ts";

/** A token bucket's parameters, in whole tokens and seconds. */
export interface Limit {
  /** What amounts refer to, such as `rpm`: a letter, then letters, digits and `_ . -`. */
  readonly name: string;
  /** The most the bucket can hold: the burst. */
  readonly capacity: number;
  /** Whole tokens that flow back in every `refillPeriodSeconds`, continuously. */
  readonly refillAmount: number;
  /** The period of the refill, in whole seconds: 60 for a limit per minute. */
  readonly refillPeriodSeconds: number;
  /** Defaults to `rate`, the only kind so far. */
  readonly kind?: "rate";
}

/** Makes a limit of `rate` whole tokens per period, refilled continuously within it. */
type LimitOf = (
  name: string,
  rate: number,
  options?: {
    /** The capacity, in whole tokens: the most that can be taken at once. @default the rate */
    readonly burst?: number;
  },
) => Limit;

/**
 * Makes limits.
 *
 * @example
 * Limit.perMinute("tpm", 10_000, { burst: 15_000 });
 * Limit.parse("tpm:10000/min:15000");
 */
export const Limit: {
  /**
   * Makes a limit of `rate` tokens a second. It refills continuously; `burst` is its capacity.
   * @example Limit.perSecond("rps", 10, { burst: 50 });
   */
  readonly perSecond: LimitOf;
  /**
   * Makes a limit of `rate` tokens a minute, refilled continuously: after 6 s, a tenth is back.
   * `burst` is its capacity, by default the rate, so an idle bucket holds one minute's worth.
   * @example Limit.perMinute("tpm", 10_000, { burst: 15_000 });
   */
  readonly perMinute: LimitOf;
  /**
   * Makes a limit of `rate` tokens an hour. It refills continuously; `burst` is its capacity.
   * @example Limit.perHour("images", 100);
   */
  readonly perHour: LimitOf;
  /**
   * Makes a limit of `rate` tokens in 24 hours. It refills continuously, not at midnight.
   * @example Limit.perDay("tpd", 1_000_000);
   */
  readonly perDay: LimitOf;
  /**
   * Returns a frozen copy of a valid limit, or throws.
   * @example
   * Limit.custom({ name: "rpm", capacity: 20, refillAmount: 10, refillPeriodSeconds: 30 });
   */
  custom(limit: Limit): Limit;
  /**
   * Parses `name:rate[/period][:burst]`, as the command line does.
   * @example
   * Limit.parse("tpm:10000/min:15000"); // the same as perMinute("tpm", 10_000, { burst: 15_000 })
   */
  parse(text: string): Limit;
  /**
   * Returns the text that `parse` reads.
   * @example Limit.format(Limit.perMinute("rpm", 60)); // "rpm:60/min"
   */
  format(limit: Limit): string;
} = Object.freeze({
  perSecond: limitPer(1),
  perMinute: limitPer(60),
  perHour: limitPer(3600),
  perDay: limitPer(86_400),
  custom: checkLimit,
  parse: (text: string) => checkLimit(parseLimit(text)),
  format: (limit: Limit) => formatLimit(checkLimit(limit)),
});

/** Returns a frozen copy of a valid limit, or throws. */
export function checkLimit(limit: Limit): Limit {
  if (typeof limit !== "object" || limit === null)
    throw new ValidationError(
      "limit",
      limit,
      "must be an object with name, capacity, refillAmount and refillPeriodSeconds",
    );
  checkOptions(limit, LIMIT_NAMES, "a limit");
  const name = limitName(limit.name);
  const capacity = positive(limit.capacity, `${name}.capacity`);
  const refillAmount = positive(limit.refillAmount, `${name}.refillAmount`);
  const refillPeriodSeconds = positive(limit.refillPeriodSeconds, `${name}.refillPeriodSeconds`);
  if (limit.kind !== undefined && limit.kind !== "rate")
    throw new ValidationError(
      `${name}.kind`,
      limit.kind,
      "must be 'rate', the only kind that this version supports",
    );
  const { amount, period } = reduceRate(refillAmount * MILLI, refillPeriodSeconds * MILLI);
  if (!Number.isSafeInteger((amount + 1) * period)) {
    throw new ValidationError(
      `${name}.refillAmount`,
      refillAmount,
      "the rate cannot be computed exactly; choose a rounder amount or a shorter period",
    );
  }
  return Object.freeze({ name, capacity, refillAmount, refillPeriodSeconds });
}

/**
 * Returns frozen copies of limits with distinct names, or throws. An empty list is refused, because
 * it would silently mean "unlimited".
 */
export function checkLimits(limits: readonly Limit[], field = "limits"): readonly Limit[] {
  if (!Array.isArray(limits))
    throw new ValidationError(field, limits, "must be an array of limits");
  if (limits.length === 0)
    throw new ValidationError(
      field,
      limits,
      "must name at least one limit; to remove limits, delete them",
    );
  if (limits.length > MAX_LIMITS)
    throw new ValidationError(field, limits.length, `must hold at most ${MAX_LIMITS} limits`);
  const checked = limits.map((limit: Limit) => checkLimit(limit));
  const names = new Set<string>();
  for (const { name } of checked) {
    if (names.has(name)) throw new ValidationError(field, name, `the name '${name}' appears twice`);
    names.add(name);
  }
  return Object.freeze(checked);
}

/** Whether two lists hold the same limits, in any order. */
export function sameLimits(left: readonly Limit[], right: readonly Limit[]): boolean {
  return (
    left.length === right.length &&
    left.every((limit) => right.some((other) => sameLimit(limit, other)))
  );
}

/** The refill rate as a reduced fraction: `amount` millitokens every `period` milliseconds. */
export function reduceRate(
  refillAmountMilli: number,
  refillPeriodMs: number,
): { readonly amount: number; readonly period: number } {
  let divisor = refillAmountMilli;
  for (let rest = refillPeriodMs; rest > 0;) [divisor, rest] = [rest, divisor % rest];
  return { amount: refillAmountMilli / divisor, period: refillPeriodMs / divisor };
}

const LIMIT_NAMES = optionNames<Limit>({
  name: true,
  capacity: true,
  refillAmount: true,
  refillPeriodSeconds: true,
  kind: true,
});

const RATE_NAMES = optionNames<NonNullable<Parameters<LimitOf>[2]>>({ burst: true });

/** Most limits on one resource: a stored bucket has to fit the item size of every backend. */
export const MAX_LIMITS = 32;

function sameLimit(left: Limit, right: Limit): boolean {
  return (
    left.name === right.name &&
    left.capacity === right.capacity &&
    left.refillAmount === right.refillAmount &&
    left.refillPeriodSeconds === right.refillPeriodSeconds
  );
}

function limitPer(refillPeriodSeconds: number): LimitOf {
  return (name, rate, options = {}) => {
    checkOptions(options, RATE_NAMES, "a limit");
    const capacity = options.burst ?? rate;
    return checkLimit({ name, capacity, refillAmount: rate, refillPeriodSeconds });
  };
}

/** Returns a number that a limit may have, or throws. */
export function positive(value: unknown, field: string): number {
  if (typeof value !== "number")
    throw new ValidationError(
      field,
      value,
      `must be a number, not ${value === null ? "null" : typeof value}`,
    );
  if (!Number.isInteger(value)) throw new ValidationError(field, value, "must be a whole number");
  if (value <= 0) throw new ValidationError(field, value, "must be greater than 0");
  if (value > MAX_AMOUNT) throw new ValidationError(field, value, `must be at most ${MAX_AMOUNT}`);
  return value;
}
