import { MILLI } from "../amounts.ts";
import { reduceRate } from "../check-limit.ts";
import { isRate } from "../limit-kinds.ts";
import type { SupportedLimit } from "../supported-limits.ts";
import {
  buildWindow,
  carriesNothing,
  chargeWindow,
  computeWindowEnd,
  computeWindowMilli,
  computeWindowWaitMs,
  type LimitWindow,
  type WindowEnds,
} from "./windows.ts";

/**
 * A limit as a bucket counts it: millitokens and milliseconds, with its rate reduced to lowest
 * terms.
 */
export interface BucketLimit {
  /** The limit that it was made from. */
  readonly limit: SupportedLimit;
  /** The most that the bucket can hold, in millitokens; of a quota, what a window begins with. */
  readonly capacityMilli: number;
  /** How a quota or session resets; undefined for a rate, which refills all the time. */
  readonly window: LimitWindow | undefined;
  /** Millitokens that flow back in every period. */
  readonly refillAmountMilli: number;
  /** The period of the refill. */
  readonly refillPeriodMs: number;
  /** The rate in lowest terms: `amount` millitokens every `period` milliseconds. */
  readonly amount: number;
  /** The milliseconds of the reduced rate. */
  readonly period: number;
  /**
   * True after the limit has left the policy. It still refills with the others, but is neither
   * shown nor charged, and it resumes where it was if the policy brings it back.
   */
  readonly hidden: boolean;
}

/**
 * What one entity has left of one resource. It is a value: every function below returns a new one,
 * except `applyInPlace`.
 *
 * `balances` holds three numbers for each limit, in the order of `limits`: the tokens in
 * millitokens (negative in debt); the remainder of the refill in units of 1/period millitoken or,
 * of a limit with windows, the end of the window that the tokens belong to (0 when none was
 * opened); and the net total consumed in millitokens. One flat array takes half the memory of one
 * object per limit, and a limiter holds more buckets than anything else. An implementation may keep
 * further numbers behind these (the memory backend keeps its stamp there), so index from the front.
 */
export interface Bucket {
  readonly limits: readonly BucketLimit[];
  /** When the balances were last refilled: one stamp for all limits. */
  readonly refilledAtMs: number;
  readonly balances: readonly number[];
}

/** A bucket that its only owner updates in place. */
export interface OwnedBucket extends Bucket {
  refilledAtMs: number;
  readonly balances: number[];
}

/** Prepares limits for arithmetic. */
export function bucketLimits(limits: readonly SupportedLimit[]): readonly BucketLimit[] {
  return limits.map((limit) => bucketLimit(limit, false));
}

/** Prepares one limit for arithmetic. */
export function bucketLimit(limit: SupportedLimit, hidden: boolean): BucketLimit {
  const window = buildWindow(limit);
  const capacityMilli = limit.capacity * MILLI;
  if (!isRate(limit)) return { limit, capacityMilli, window, ...NO_REFILL, hidden };
  const refillAmountMilli = limit.refillAmount * MILLI;
  const refillPeriodMs = limit.refillPeriodSeconds * MILLI;
  return {
    limit,
    capacityMilli,
    window,
    refillAmountMilli,
    refillPeriodMs,
    ...reduceRate(refillAmountMilli, refillPeriodMs),
    hidden,
  };
}

/** What a limit that is not a rate earns: nothing. */
const NO_REFILL = { refillAmountMilli: 0, refillPeriodMs: 0, amount: 0, period: 1 };

/** A new bucket: every limit is full. */
export function fullBucket(limits: readonly BucketLimit[], nowMs: number): Bucket {
  return {
    limits,
    refilledAtMs: nowMs,
    balances: limits.flatMap(({ capacityMilli }) => [capacityMilli, 0, 0]),
  };
}

/** The most a limit can hold. */
export function ceilingMilli({ capacityMilli, window }: BucketLimit): number {
  return window === undefined ? capacityMilli : capacityMilli + window.unusedMilli;
}

/** The tokens of one limit as stored, before any refill. */
export function getStoredMilli(bucket: Bucket, index: number): number {
  return bucket.balances[index * FIELDS]!;
}

/** The remainder of one limit's refill as stored. */
export function getStoredRemainder(bucket: Bucket, index: number): number {
  return bucket.limits[index]!.window === undefined ? bucket.balances[index * FIELDS + 1]! : 0;
}

/** The end of the window that one limit's tokens belong to; 0 for a rate, and before the first. */
export function getStoredEndMs(bucket: Bucket, index: number): number {
  return bucket.limits[index]!.window === undefined ? 0 : bucket.balances[index * FIELDS + 1]!;
}

/** What was consumed of one limit over the life of the bucket, net of what was given back. */
export function getConsumedMilli(bucket: Bucket, index: number): number {
  return bucket.balances[index * FIELDS + 2]!;
}

/** The tokens of one limit at the given time, refill included. */
export function balanceMilli(bucket: Bucket, index: number, nowMs: number): number {
  const limit = bucket.limits[index]!;
  const at = index * FIELDS;
  const [stored, state] = [bucket.balances[at]!, bucket.balances[at + 1]!];
  return limit.window === undefined
    ? computeRefilledMilli(limit, stored, state, nowMs - bucket.refilledAtMs)
    : computeWindowMilli(limit.window, stored, state, nowMs);
}

/**
 * Whether tokens taken from a limit cannot go back to its balance, because the window that they
 * were taken in is not the open one. They only count then.
 */
export function isReturnLost(
  bucket: Bucket,
  index: number,
  ends: WindowEnds | undefined,
  nowMs: number,
): boolean {
  const { window, limit } = bucket.limits[index]!;
  return window !== undefined && findOpenEndMs(bucket, index, nowMs) !== (ends?.[limit.name] ?? 0);
}

/**
 * Whether a window ends after one time and not after the other: the open one, or the one that would
 * be opened.
 */
export function crossesEnd({ limits, balances }: Bucket, fromMs: number, toMs: number): boolean {
  if (fromMs >= toMs) return false;
  return limits.some(({ window }, index) => {
    if (window === undefined) return false;
    const endMs = balances[index * FIELDS + 1]!;
    return (fromMs < endMs ? endMs : computeWindowEnd(window, fromMs, endMs)) <= toMs;
  });
}

/** The end of the window of each limit that has windows; undefined when none does. */
export function listWindowEnds(bucket: Bucket): WindowEnds | undefined {
  const { limits, balances } = bucket;
  let ends: Record<string, number> | undefined;
  for (let index = 0; index < limits.length; index += 1)
    if (limits[index]!.window !== undefined)
      (ends ??= {})[limits[index]!.limit.name] = balances[index * FIELDS + 1]!;
  return ends;
}

/** The end of the window of one limit that is open at the given time, if one is. */
export function findOpenEndMs(bucket: Bucket, index: number, nowMs: number): number | undefined {
  const endMs = getStoredEndMs(bucket, index);
  return nowMs < endMs ? endMs : undefined;
}

/**
 * Whether every limit holds its cost, refill included. A limit with a cost of zero must not be in
 * debt; hidden limits are ignored.
 */
export function holds(bucket: Bucket, costsMilli: readonly number[], nowMs: number): boolean {
  const { limits, balances } = bucket;
  const elapsedMs = nowMs - bucket.refilledAtMs;
  for (let index = 0; index < limits.length; index += 1) {
    const limit = limits[index]!;
    const at = index * FIELDS;
    if (limit.hidden) continue;
    const milli =
      limit.window === undefined
        ? computeRefilledMilli(limit, balances[at]!, balances[at + 1]!, elapsedMs)
        : computeWindowMilli(limit.window, balances[at]!, balances[at + 1]!, nowMs);
    if (milli < costsMilli[index]!) return false;
  }
  return true;
}

/**
 * Whether every limit is full, hidden ones included. Such a bucket can be dropped: a new one would
 * decide the same.
 */
export function isFull(bucket: Bucket, nowMs: number): boolean {
  return bucket.limits.every((_, index) => isLimitFull(bucket, index, nowMs));
}

/** Whether one limit is as a new one would be. */
export function isLimitFull(bucket: Bucket, index: number, nowMs: number): boolean {
  const { capacityMilli, window } = bucket.limits[index]!;
  // What is carried over the end of a window is lost with the bucket.
  return window === undefined || carriesNothing(window)
    ? balanceMilli(bucket, index, nowMs) >= capacityMilli
    : getStoredEndMs(bucket, index) === 0;
}

/**
 * Refills all limits, then takes `costsMilli` (by index; a negative cost gives back). It does not
 * check whether the costs fit: that was decided before. When time goes backwards, nothing is earned
 * and the stamp stays. `ends` are those of the windows that something goes back to.
 */
export function apply(
  bucket: Bucket,
  costsMilli: readonly number[],
  nowMs: number,
  ends?: WindowEnds,
): Bucket {
  // `slice` allocates exactly what is needed; pushing would reserve 17 numbers in every bucket.
  const next: OwnedBucket = {
    limits: bucket.limits,
    refilledAtMs: bucket.refilledAtMs,
    balances: bucket.balances.slice(),
  };
  applyInPlace(next, costsMilli, nowMs, ends);
  return next;
}

/**
 * Does what `apply` does, in place. For two limits it takes 29 ns instead of 52, and leaves nothing
 * for the garbage collector.
 */
export function applyInPlace(
  bucket: OwnedBucket,
  costsMilli: readonly number[],
  nowMs: number,
  ends?: WindowEnds,
): void {
  const { limits, balances } = bucket;
  const elapsedMs = nowMs - bucket.refilledAtMs;
  for (let index = 0; index < limits.length; index += 1) {
    const limit = limits[index]!;
    const cost = costsMilli[index]!;
    const at = index * FIELDS;
    balances[at + 2] = balances[at + 2]! + cost;
    if (limit.window !== undefined) {
      // In a function of its own, because what rates need would no longer be inlined here.
      chargeInPlace(limit.window, balances, at, cost, ends?.[limit.limit.name], nowMs);
      continue;
    }
    const remainder = balances[at + 1]!;
    const ceiling = limit.capacityMilli;
    const refilled = computeRefilledMilli(limit, balances[at]!, remainder, elapsedMs);
    const tokens = Math.max(Math.min(ceiling, refilled - cost), Number.MIN_SAFE_INTEGER);
    balances[at] = tokens;
    // A full limit earns nothing, so it keeps no remainder, whether the refill or a give-back
    // filled it.
    balances[at + 1] =
      refilled >= ceiling || tokens >= ceiling ? 0 : remainderAfter(limit, remainder, elapsedMs);
  }
  if (elapsedMs > 0) bucket.refilledAtMs = nowMs;
}

function chargeInPlace(
  window: LimitWindow,
  balances: number[],
  at: number,
  costMilli: number,
  takenEndMs: number | undefined,
  nowMs: number,
): void {
  const state = { storedMilli: balances[at]!, endMs: balances[at + 1]! };
  const { storedMilli, endMs } = chargeWindow(window, state, { costMilli, takenEndMs }, nowMs);
  balances[at] = storedMilli;
  balances[at + 1] = endMs;
}

/**
 * What one limit earned since its last refill, and the remainder that is left. The amount is not
 * capped at the ceiling, only at the safe range: it is for stores that add to a balance they have
 * not read, and put the ceiling into a condition.
 */
export function computeEarned(
  bucket: Bucket,
  index: number,
  nowMs: number,
): { readonly milli: number; readonly remainder: number } {
  const limit = bucket.limits[index]!;
  const remainder = getStoredRemainder(bucket, index);
  const elapsedMs = nowMs - bucket.refilledAtMs;
  if (elapsedMs <= 0 || limit.window !== undefined) return { milli: 0, remainder };
  const rest = elapsedMs % limit.period;
  const whole = ((elapsedMs - rest) / limit.period) * limit.amount;
  const restUnits = rest * limit.amount + remainder;
  const restMilli =
    restUnits <= Number.MAX_SAFE_INTEGER
      ? Math.floor(restUnits / limit.period)
      : Number(computeUnits(limit, remainder, rest) / BigInt(limit.period));
  return {
    milli: Math.min(Number.MAX_SAFE_INTEGER, whole + restMilli),
    remainder: remainderAfter(limit, remainder, elapsedMs),
  };
}

/** What was earned, rounded up to whole millitokens. */
export function roundUp({ milli, remainder }: ReturnType<typeof computeEarned>): number {
  return remainder > 0 ? Math.min(Number.MAX_SAFE_INTEGER, milli + 1) : milli;
}

/** The time until one limit holds `neededMilli` if nothing is taken; `Infinity` if it never can. */
export function waitMs(bucket: Bucket, index: number, neededMilli: number, nowMs: number): number {
  const limit = bucket.limits[index]!;
  if (neededMilli > ceilingMilli(limit)) return Infinity;
  if (balanceMilli(bucket, index, nowMs) >= neededMilli) return 0;
  const stored = getStoredMilli(bucket, index);
  if (limit.window !== undefined) {
    const endMs = getStoredEndMs(bucket, index);
    const shard = { window: limit.window, storedMilli: stored, endMs };
    return computeWindowWaitMs([shard], neededMilli, nowMs);
  }
  const earn =
    Number.isSafeInteger(neededMilli - stored) && isCountable(limit)
      ? computeWaitMs
      : computeWaitMsExactly;
  const sinceRefillMs = earn(limit, neededMilli, stored, getStoredRemainder(bucket, index));
  return bucket.refilledAtMs + sinceRefillMs - nowMs;
}

/** `⌊remainder · to / from⌋`, computed with BigInt where the product leaves the safe range. */
export function scaleRemainder(remainder: number, from: number, to: number): number {
  if (from === to) return remainder;
  const product = remainder * to;
  return Number.isSafeInteger(product)
    ? Math.floor(product / from)
    : Number((BigInt(remainder) * BigInt(to)) / BigInt(from));
}

/** Numbers per limit in `balances`. */
const FIELDS = 3;

/**
 * The tokens after `elapsedMs`. In units of 1/period, `elapsed·amount + remainder` was earned; the
 * whole part of it is the credit, capped at the ceiling. Where that product leaves the safe range,
 * it is split: with `elapsed = n·period + r` the credit is `n·amount + ⌊(r·amount + remainder) /
 * period⌋`. `(amount + 1)·period` is safe for every valid limit, and whole periods are multiplied
 * only when they do not fill the bucket. The split alone would be enough, but its remainder
 * divisions made `apply` take 145 ns instead of 52. A shard's share of a limit may not reduce to
 * terms as low as the whole limit does; then BigInt is the only way left.
 */
function computeRefilledMilli(
  limit: BucketLimit,
  stored: number,
  remainder: number,
  elapsedMs: number,
): number {
  const { capacityMilli: ceiling, amount, period } = limit;
  if (elapsedMs <= 0) return Math.min(ceiling, stored);
  const missing = ceiling - stored;
  if (missing <= 0) return ceiling;
  if (missing > Number.MAX_SAFE_INTEGER)
    return computeRefilledExactly(limit, stored, remainder, elapsedMs);
  const units = elapsedMs * amount + remainder;
  if (units <= Number.MAX_SAFE_INTEGER)
    return Math.min(ceiling, stored + Math.floor(units / period));
  if (elapsedMs > Number.MAX_SAFE_INTEGER)
    return computeRefilledExactly(limit, stored, remainder, elapsedMs);
  const rest = elapsedMs % period;
  const periods = (elapsedMs - rest) / period;
  if (periods > (missing - (missing % amount)) / amount) return ceiling;
  const restUnits = rest * amount + remainder;
  if (restUnits > Number.MAX_SAFE_INTEGER)
    return computeRefilledExactly(limit, stored, remainder, elapsedMs);
  return Math.min(ceiling, stored + periods * amount + Math.floor(restUnits / period));
}

/**
 * `computeRefilledMilli` in BigInt: for a debt so deep that the deficit or the time to earn it
 * leaves the safe range, and for a share whose products do.
 */
function computeRefilledExactly(
  limit: BucketLimit,
  stored: number,
  remainder: number,
  elapsedMs: number,
): number {
  const tokens = BigInt(stored) + computeUnits(limit, remainder, elapsedMs) / BigInt(limit.period);
  return tokens >= BigInt(ceilingMilli(limit)) ? ceilingMilli(limit) : Number(tokens);
}

function remainderAfter(limit: BucketLimit, remainder: number, elapsedMs: number): number {
  if (elapsedMs <= 0) return remainder;
  const { amount, period } = limit;
  const units = elapsedMs * amount + remainder;
  if (units <= Number.MAX_SAFE_INTEGER) return units - Math.floor(units / period) * period;
  const restUnits = (elapsedMs % period) * amount + remainder;
  return restUnits <= Number.MAX_SAFE_INTEGER
    ? restUnits % period
    : Number(computeUnits(limit, remainder, elapsedMs) % BigInt(period));
}

/** What was earned in the elapsed time, in units of 1/period. */
function computeUnits({ amount }: BucketLimit, remainder: number, elapsedMs: number): bigint {
  return BigInt(elapsedMs) * BigInt(amount) + BigInt(remainder);
}

/**
 * Whether the products of a limit stay in the safe range. For configured limits they do; for a
 * shard's share they may not.
 */
function isCountable({ amount, period }: BucketLimit): boolean {
  return (amount + 1) * period <= Number.MAX_SAFE_INTEGER;
}

/** The exact inverse of the credit: the fewest milliseconds in which the deficit is earned. */
function computeWaitMs(
  { amount, period }: BucketLimit,
  neededMilli: number,
  stored: number,
  remainder: number,
): number {
  const deficit = neededMilli - stored;
  const rest = deficit % amount;
  const periods = (deficit - rest) / amount;
  return periods * period + Math.ceil((rest * period - remainder) / amount);
}

/**
 * `computeWaitMs` in BigInt: for a debt so deep that the deficit leaves the safe range, and for a
 * share whose products do.
 */
function computeWaitMsExactly(
  limit: BucketLimit,
  neededMilli: number,
  stored: number,
  remainder: number,
): number {
  const [amount, period] = [BigInt(limit.amount), BigInt(limit.period)];
  const missing = (BigInt(neededMilli) - BigInt(stored)) * period - BigInt(remainder);
  return Number((missing + amount - 1n) / amount);
}
