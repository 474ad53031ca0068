import { checkNames, copyAmounts, type Amounts } from "../../../core/amounts.ts";
import { ValidationError } from "../../../core/errors.ts";
import { apply, holds, waitMs } from "../../../core/bucket/bucket.ts";
import { costsMilli } from "../../../core/bucket/decision.ts";
import { toBucket, withBalances, type BucketRecord } from "./bucket-record.ts";

/*
 * What the limiter computes with one bucket, for readers of the table. Nothing is written, and a
 * bucket that was split is more than one record: each holds only its share.
 */

/** What is taken from a bucket, and when. */
export interface Consumption {
  /** Whole tokens by limit name, at least 0; a limit that is not named must not be in debt. */
  readonly amounts: Amounts;
  /** The time of the call, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** What came of it. */
export type Consumed =
  | {
      /** The amounts fit. */
      readonly granted: true;
      /** The bucket without them. */
      readonly bucket: BucketRecord;
    }
  | {
      /** At least one limit does not hold its amount, so nothing was taken. */
      readonly granted: false;
      /** How many milliseconds until they fit; `Infinity` if they never can. */
      readonly retryAfterMs: number;
    };

/**
 * Refills every limit up to a time, in milliseconds since 1970. Exact: refilling in steps gives the
 * same as at once. A time before `lastRefillMs` changes nothing. Quotas and sessions stay as they
 * are: a window that is over is full, and opens when something is taken from it.
 * @example
 * refill(bucket, nowMs).limits.map(({ tokensMilli }) => tokensMilli); // [60_000]
 */
export function refill(bucket: BucketRecord, nowMs: number): BucketRecord {
  return take(bucket, {}, checkTime(nowMs));
}

/**
 * Takes amounts from all limits of a bucket, or from none if one does not hold its amount.
 * @example
 * consume(bucket, { amounts: { rpm: 61 }, nowMs }); // { granted: false, retryAfterMs: Infinity }
 */
export function consume(bucket: BucketRecord, consumption: Consumption): Consumed {
  const { amounts, nowMs } = check(bucket, consumption);
  const stored = toBucket(bucket);
  return holds(stored, costsMilli(stored, amounts), nowMs)
    ? { granted: true, bucket: take(bucket, amounts, nowMs) }
    : { granted: false, retryAfterMs: computeWait(bucket, amounts, nowMs) };
}

/**
 * Computes how many milliseconds it takes until every limit holds its amount, if nothing else is
 * taken: 0 if they fit now, `Infinity` if they never can.
 * @example
 * retryAfter(bucket, { amounts: { rpm: 60 }, nowMs }); // 0
 */
export function retryAfter(bucket: BucketRecord, consumption: Consumption): number {
  const { amounts, nowMs } = check(bucket, consumption);
  return computeWait(bucket, amounts, nowMs);
}

function take(bucket: BucketRecord, amounts: Amounts, nowMs: number): BucketRecord {
  const stored = toBucket(bucket);
  return withBalances(bucket, apply(stored, costsMilli(stored, amounts), nowMs));
}

function computeWait(bucket: BucketRecord, amounts: Amounts, nowMs: number): number {
  const stored = toBucket(bucket);
  const waits = costsMilli(stored, amounts).map((cost, index) =>
    stored.limits[index]!.hidden ? 0 : waitMs(stored, index, cost, nowMs),
  );
  return Math.max(0, ...waits);
}

function check({ limits }: BucketRecord, { amounts, nowMs }: Consumption): Consumption {
  const checked = copyAmounts(amounts, "amounts");
  const shown = limits.flatMap(({ limit, hidden }) => (hidden ? [] : [limit.name]));
  checkNames(checked, new Set(shown), "amounts");
  return { amounts: checked, nowMs: checkTime(nowMs) };
}

function checkTime(nowMs: number): number {
  if (Number.isSafeInteger(nowMs)) return nowMs;
  throw new ValidationError("nowMs", nowMs, "must be a whole number of milliseconds since 1970");
}
