import type { RateLimit } from "zae-limiter";
import type { Change } from "./call-log.ts";

/** How much was used in an interval, and how much the limit allows in it. */
export interface Use {
  readonly used: number;
  readonly allowed: number;
  readonly ms: number;
}

/**
 * Clocks that are read a moment apart may differ by this much, and the bucket earns tokens in that
 * time too.
 */
const CLOCK_SLACK_MS = 10;

/** Buckets count whole millitokens and may carry a remainder of less than one into an interval. */
const REMAINDER = 0.001;

/**
 * The most interval starts that are tried, because each costs a pass over all changes. Of more than
 * that, evenly spaced ones are tried.
 */
const MAX_STARTS = 500;

/** How much a limit allows in an interval: a full bucket, and what it earns meanwhile. */
export function computeAllowed(limit: RateLimit, ms: number): number {
  return (
    limit.capacity +
    ((ms + CLOCK_SLACK_MS) * limit.refillAmount) / (limit.refillPeriodSeconds * 1000) +
    REMAINDER
  );
}

/** How much more could have been used; negative when too much was. */
export function roomIn({ used, allowed }: Use): number {
  return allowed - used;
}

/**
 * The interval in which usage came closest to what was allowed. The exact time of a change is not
 * known, only two times around it, so each sum is bounded from the safe side. For an interval that
 * begins at a time `s` and ends with a take `k`:
 *
 *   used:      takes and overruns that began at `s` or later and had ended before `k` began,
 *              and `k` itself
 *   returned:  everything that may have been returned between `s` and the end of `k`
 *   allowed:   a full bucket, and what it earns from `s` to the end of `k`
 *
 * At `s` the bucket held at most its capacity, and after `k` it was not below zero. Hence
 * used − returned ≤ allowed, however slow the machine was and in whatever order the changes really
 * happened. A limiter that breaks this gave too much.
 */
export function tightestUse(changes: readonly Change[], limit: RateLimit): Use {
  const charges = changes
    .filter(({ kind }) => kind !== "return")
    .sort((left, right) => left.endMs - right.endMs);
  const returns = changes
    .filter(({ kind }) => kind === "return")
    .sort((left, right) => left.startMs - right.startMs);
  const takes = changes
    .filter(({ kind }) => kind === "take")
    .sort((left, right) => left.startMs - right.startMs);
  const stride = Math.ceil(takes.length / MAX_STARTS);
  let tightest: Use = { used: 0, allowed: limit.capacity, ms: 0 };
  for (let first = 0; first < takes.length; first += stride) {
    const use = tightestFrom(
      takes[first]!.startMs,
      { charges, returns, takes: takes.slice(first) },
      limit,
    );
    if (roomIn(use) < roomIn(tightest)) tightest = use;
  }
  return tightest;
}

interface SortedChanges {
  /** Takes and overruns, sorted by end. */
  readonly charges: readonly Change[];
  /** Sorted by start. */
  readonly returns: readonly Change[];
  /** Sorted by start, from the first of the interval on. */
  readonly takes: readonly Change[];
}

function tightestFrom(
  startMs: number,
  { charges, returns, takes }: SortedChanges,
  limit: RateLimit,
): Use {
  let tightest: Use = { used: 0, allowed: limit.capacity, ms: 0 };
  let [charged, returned, nextCharge, nextReturn, latestMs] = [0, 0, 0, 0, startMs];
  for (const take of takes) {
    latestMs = Math.max(latestMs, take.endMs);
    for (
      ;
      nextCharge < charges.length && charges[nextCharge]!.endMs < take.startMs;
      nextCharge += 1
    ) {
      if (charges[nextCharge]!.startMs >= startMs) charged += charges[nextCharge]!.amount;
    }
    for (
      ;
      nextReturn < returns.length && returns[nextReturn]!.startMs <= latestMs;
      nextReturn += 1
    ) {
      if (returns[nextReturn]!.endMs >= startMs) returned += returns[nextReturn]!.amount;
    }
    const ms = take.endMs - startMs;
    const use = { used: charged + take.amount - returned, allowed: computeAllowed(limit, ms), ms };
    if (roomIn(use) < roomIn(tightest)) tightest = use;
  }
  return tightest;
}
