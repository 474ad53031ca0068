/*
 * A refill moves a bucket's stamp, and the stamp is its lock, so processes that share a busy bucket
 * would invalidate each other with every write. The clock that a bucket is written with is
 * therefore rounded down to a tick: within a tick only the first refill moves the stamp; all other
 * writes are takes, and takes commute. The tick is 1 ms for a process that is alone, doubles with
 * every failed condition and shrinks by a tenth with every write that succeeds, so it settles where
 * about one write in eight fails.
 */
import { ceilingMilli, type BucketLimit } from "../../../core/bucket/bucket.ts";

/** The longest tick. What a bucket earns in it is all that rounding can add, once. */
export const LARGEST_TICK_MS = 100;

/** The tick after a write. */
export function nextTickMs(
  tickMs: number,
  { applied, largestMs }: { readonly applied: boolean; readonly largestMs: number },
): number {
  return applied ? Math.max(1, Math.floor(tickMs * 0.9)) : Math.min(largestMs, tickMs * 2);
}

/** A time rounded down to a tick. */
export function roundToTick(nowMs: number, tickMs: number, limits: readonly BucketLimit[]): number {
  return nowMs - (nowMs % boundTickMs(tickMs, limits));
}

/** A tick is at most a quarter of the time that the fastest limit needs to fill. */
export function boundTickMs(tickMs: number, limits: readonly BucketLimit[]): number {
  if (tickMs === 1) return 1;
  const fillsMs = limits.map((limit) => (ceilingMilli(limit) / limit.amount) * limit.period);
  return Math.max(1, Math.floor(Math.min(tickMs, ...fillsMs.map((fillMs) => fillMs / 4))));
}
