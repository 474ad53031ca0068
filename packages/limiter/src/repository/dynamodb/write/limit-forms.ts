/*
 * What a write does to the balance of one limit. Time changes any balance by one map (time-map.ts),
 * and the write requires that the balance is in the region of the map that it was planned in:
 *
 *   low          SET tk = low − c        tk ≤ low − add
 *   between      ADD tk add − c          n − add ≤ tk ≤ high − add − g
 *   high         SET tk = high − c       tk ≥ high − add
 *   cut off      SET tk                  tk = seen: what is given back reaches the ceiling
 *   low = high   SET tk = high − c       nothing: the lock proves that the window is over
 *
 * A batch takes c in all, needs n of the balance it finds, and lifts it by g before it charges
 * (batch-decision.ts). A rate moves its balance only with the stamp `rf`, which is its lock; the
 * lock of a window is its end, `we`, so a take opens a window without disturbing any refill:
 *
 *   open         ADD tk −c               n ≤ tk, and we = seen if it gives back
 *   over         as above; SET we        we = seen
 *   not charged  ADD tc                  nothing, and it stays over; we = seen if n > 0
 */
import {
  ceilingMilli,
  computeEarned,
  getStoredEndMs,
  getStoredMilli,
  getStoredRemainder,
  roundUp,
  scaleRemainder,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import type { TimeMap } from "../../../core/bucket/time-map.ts";
import { buildOpeningMap, computeWindowEnd, planConversion } from "../../../core/bucket/windows.ts";
import type { LimitFold } from "./batch-decision.ts";
import { limitAttribute } from "../items/bucket-item.ts";
import type { ExpressionBuilder } from "../table/update-expression.ts";

/** What happens to one limit. */
export interface LimitMove {
  readonly bucket: Bucket;
  readonly index: number;
  /** The limit as it shall be. */
  readonly wanted: BucketLimit;
  readonly fold: LimitFold;
  readonly nowMs: number;
}

/** Adds what a batch takes to a balance, and to what was consumed. */
export function moveTokens(builder: ExpressionBuilder, name: string, fold: LimitFold): void {
  builder.add(limitAttribute(name, "tk"), -fold.netMilli);
  countTotal(builder, name, fold);
}

/** Refills a rate, then takes from it; `floorMilli` must be left, to refill before `ttl`. */
export function refillRate(
  builder: ExpressionBuilder,
  move: LimitMove,
  floorMilli: number | undefined,
): void {
  const { bucket, index, wanted, fold, nowMs } = move;
  const limit = bucket.limits[index]!;
  const credit = computeEarned(bucket, index, nowMs);
  const map: TimeMap = {
    low: -Infinity,
    add: credit.milli,
    addMost: roundUp(credit),
    // When parameters change, what was earned so far was earned under the old ceiling and is cut
    // off at the new one.
    high: Math.min(ceilingMilli(limit), ceilingMilli(wanted)),
  };
  const least = floorMilli === undefined ? undefined : floorMilli + fold.netMilli;
  const needMilli = largest(fold.needMilli, least);
  const form = { map, ceilingMilli: ceilingMilli(wanted), needMilli };
  const isFull = advanceBalance(builder, move, form);
  const remainder = isFull ? 0 : scaleRemainder(credit.remainder, limit.period, wanted.period);
  const attribute = limitAttribute(limit.limit.name, "rm");
  if (remainder > 0) builder.set(attribute, remainder);
  else if (getStoredRemainder(bucket, index) > 0) builder.remove(attribute);
  countTotal(builder, limit.limit.name, fold);
}

/**
 * Charges a window or gives back to it, opening one if need be. What sets `ttl` requires that the
 * window ends by `coveredMs`, which is when the item may expire.
 */
export function moveWindow(
  builder: ExpressionBuilder,
  move: LimitMove,
  coveredMs: number | undefined,
): void {
  const { bucket, index, wanted, fold } = move;
  const { name } = wanted.limit;
  const end = limitAttribute(name, "we");
  const seenMs = getStoredEndMs(bucket, index);
  const { endMs, isLeft, ...form } = planWindow(move);
  const isRedefined = wanted.window!.definition !== bucket.limits[index]!.window!.definition;
  advanceBalance(builder, move, { ...form, ceilingMilli: Infinity });
  countTotal(builder, name, fold);
  if (endMs !== seenMs || fold.isReturned || isRedefined || isLeft)
    requireEnd(builder, end, seenMs);
  else if (coveredMs !== undefined)
    if (seenMs === 0) builder.requireMissing(end);
    else builder.requireWithin(end, { most: coveredMs });
  if (endMs === seenMs) return;
  if (endMs === 0) builder.remove(end);
  else builder.set(end, endMs);
}

/** The end of the window after a write. */
export function planWindowEnd(move: LimitMove): number {
  return planWindow(move).endMs;
}

function planWindow({ bucket, index, wanted, fold, nowMs }: LimitMove): {
  readonly endMs: number;
  readonly map: TimeMap;
  readonly needMilli: number | undefined;
  /** Whether the window is over, and calls leave of what the next one begins with. */
  readonly isLeft?: boolean;
} {
  const [before, window] = [bucket.limits[index]!.window!, wanted.window!];
  const seen = { storedMilli: getStoredMilli(bucket, index), endMs: getStoredEndMs(bucket, index) };
  const { map, endMs } = planConversion(before, seen, window, nowMs);
  const isOver = nowMs >= endMs;
  // One that is over refuses nothing.
  if (!isOver || !fold.isCharged)
    return {
      endMs,
      map,
      needMilli: isOver ? undefined : fold.needMilli,
      isLeft: isOver && (fold.needMilli ?? 0) > 0,
    };
  // Had it carried anything into other terms, it would be open.
  const state = { storedMilli: seen.storedMilli, endMs };
  return {
    endMs: computeWindowEnd(window, nowMs, endMs),
    map: buildOpeningMap(window, state, nowMs),
    needMilli: fold.needMilli,
  };
}

/** Requires the end of a window as seen, which only its opening moves. */
export function requireEnd(builder: ExpressionBuilder, attribute: string, seenMs: number): void {
  if (seenMs === 0) builder.requireMissing(attribute);
  else builder.requireEqual(attribute, seenMs);
}

/** Writes a balance in the form of its region; returns whether it was full on the way. */
function advanceBalance(
  builder: ExpressionBuilder,
  { bucket, index, fold }: LimitMove,
  {
    map: { low, add, addMost, high },
    ceilingMilli: ceiling,
    needMilli,
  }: {
    readonly map: TimeMap;
    /** The most that the limit can hold afterwards. */
    readonly ceilingMilli: number;
    readonly needMilli: number | undefined;
  },
): boolean {
  const tokens = limitAttribute(bucket.limits[index]!.limit.name, "tk");
  const stored = getStoredMilli(bucket, index);
  const rise = fold.isCharged ? fold.riseMilli : 0;
  const setFrom = (milli: number): boolean => {
    const after = fold.computeBalanceAfter(milli, ceiling);
    builder.set(tokens, after.milli);
    return after.wasFull;
  };
  if (low === high) return setFrom(high);
  if (stored + add >= high) {
    // The limit is full, whatever its balance has become meanwhile.
    builder.requireWithin(tokens, { least: Math.max(high - add, Number.MIN_SAFE_INTEGER) });
    setFrom(high);
    return true;
  }
  if (stored + add <= low) {
    builder.requireWithin(tokens, { most: low - add });
    return setFrom(low);
  }
  if (stored + addMost + rise > high) {
    // What a member gives back is cut off before another takes: how much of it depends on the
    // balance, so it must be the seen one.
    builder.requireEqual(tokens, stored);
    return setFrom(stored + add);
  }
  builder.requireWithin(tokens, {
    least: largest(
      needMilli === undefined ? undefined : needMilli - add,
      Number.isFinite(low) ? low - add : undefined,
    ),
    most: Number.isFinite(high) ? high - addMost - rise : undefined,
  });
  builder.add(tokens, add - fold.netMilli);
  return false;
}

function countTotal(builder: ExpressionBuilder, name: string, fold: LimitFold): void {
  builder.add(limitAttribute(name, "tc"), fold.netMilli + fold.countedMilli);
}

/** The larger of two bounds, either of which may be absent. */
export function largest(left: number | undefined, right: number | undefined): number | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return Math.max(left, right);
}
