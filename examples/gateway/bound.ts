import type { Limit } from "zae-limiter";
import type { Change } from "./call-log.ts";

/** What was used in some interval, and what the limit allows in it. */
export interface Use {
  readonly used: number;
  readonly allowed: number;
  readonly ms: number;
}

/** What clocks that are read a moment apart may earn: promise 1 counts those milliseconds once. */
const CLOCK_SLACK_MS = 10;

/**
 * Millitokens are whole, so a remainder of less than one of them can be carried into an interval.
 */
const REMAINDER = 0.001;

/**
 * Interval starts that are tried; more are thinned out evenly, because each costs a pass over all
 * changes.
 */
const MOST_STARTS = 500;

/** What a limit allows within so many milliseconds: a full bucket, and what it earns. */
export function allowedIn(limit: Limit, ms: number): number {
  return (
    limit.capacity +
    ((ms + CLOCK_SLACK_MS) * limit.refillAmount) / (limit.refillPeriodSeconds * 1000) +
    REMAINDER
  );
}

/** What could still have been used; negative when too much was. */
export function roomIn({ used, allowed }: Use): number {
  return allowed - used;
}

/**
 * The interval in which most was used of what was allowed. Nobody knows when exactly a change took
 * place, only two times around it, so each sum is bounded from the safe side. For an interval that
 * begins with a start `s` and ends with a take `k`:
 *
 *   counted as used:    takes and overruns that began at `s` or later and had ended before `k` began, and `k` itself
 *   counted as back:    whatever may have come back between `s` and the end of `k`
 *   allowed:            a full bucket, and what it earns from `s` to the end of `k`
 *
 * At `s` the bucket held at most its capacity, and after `k` at least nothing. Hence used − back ≤
 * allowed, however slow the machine was, and whatever order the changes really had. A limiter that
 * breaks this gave too much.
 */
export function tightestUse(changes: readonly Change[], limit: Limit): Use {
  const charges = changes
    .filter(({ kind }) => kind !== "back")
    .sort((left, right) => left.endMs - right.endMs);
  const backs = changes
    .filter(({ kind }) => kind === "back")
    .sort((left, right) => left.startMs - right.startMs);
  const takes = changes
    .filter(({ kind }) => kind === "take")
    .sort((left, right) => left.startMs - right.startMs);
  const stride = Math.ceil(takes.length / MOST_STARTS);
  let tightest: Use = { used: 0, allowed: limit.capacity, ms: 0 };
  for (let first = 0; first < takes.length; first += stride) {
    const use = tightestFrom(
      takes[first]!.startMs,
      { charges, backs, takes: takes.slice(first) },
      limit,
    );
    if (roomIn(use) < roomIn(tightest)) tightest = use;
  }
  return tightest;
}

interface Sorted {
  /** By end. */
  readonly charges: readonly Change[];
  /** By start. */
  readonly backs: readonly Change[];
  /** By start, from the first of the interval on. */
  readonly takes: readonly Change[];
}

function tightestFrom(startMs: number, { charges, backs, takes }: Sorted, limit: Limit): Use {
  let tightest: Use = { used: 0, allowed: limit.capacity, ms: 0 };
  let [charged, back, nextCharge, nextBack, latestMs] = [0, 0, 0, 0, startMs];
  for (const take of takes) {
    latestMs = Math.max(latestMs, take.endMs);
    for (
      ;
      nextCharge < charges.length && charges[nextCharge]!.endMs < take.startMs;
      nextCharge += 1
    ) {
      if (charges[nextCharge]!.startMs >= startMs) charged += charges[nextCharge]!.amount;
    }
    for (; nextBack < backs.length && backs[nextBack]!.startMs <= latestMs; nextBack += 1) {
      if (backs[nextBack]!.endMs >= startMs) back += backs[nextBack]!.amount;
    }
    const ms = take.endMs - startMs;
    const use = { used: charged + take.amount - back, allowed: allowedIn(limit, ms), ms };
    if (roomIn(use) < roomIn(tightest)) tightest = use;
  }
  return tightest;
}
