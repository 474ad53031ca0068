import { balanceMilli, ceilingMilli, waitMs, type Bucket } from "./bucket.ts";

/*
 * One bucket that is stored as several shards, each a `Bucket` with its share of every limit. A
 * call may be served by any of them, or by several at once, so what counts is the sum. Shards are
 * matched by the names of limits: each keeps its own order, and its own stamp.
 */

/** What the shards hold of one limit together, refill included. */
export function shardSumMilli(shards: readonly Bucket[], limitName: string, nowMs: number): number {
  let sum = 0;
  for (const shard of shards) {
    const index = indexOf(shard, limitName);
    if (index >= 0) sum += balanceMilli(shard, index, nowMs);
    // Debts may add up beyond the safe range. A sum that far down is rounded at the very end, so
    // that it still grows with time.
    if (!Number.isSafeInteger(sum)) return exactShardSum(shards, limitName, nowMs);
  }
  return sum;
}

/**
 * How long until the shards together hold `neededMilli` of one limit if nobody takes; `Infinity`
 * when they never can.
 */
export function waitForShardSumMs(
  shards: readonly Bucket[],
  limitName: string,
  neededMilli: number,
  nowMs: number,
): number {
  let ceiling = 0;
  let allFullMs = 0;
  for (const shard of shards) {
    const index = indexOf(shard, limitName);
    if (index < 0) continue;
    const own = ceilingMilli(shard.limits[index]!);
    ceiling += own;
    allFullMs = Math.max(allFullMs, waitMs(shard, index, own, nowMs));
  }
  if (neededMilli > ceiling) return Infinity;
  if (shardSumMilli(shards, limitName, nowMs) >= neededMilli) return 0;
  // Each balance only grows, and all of them are at their ceilings in the end: what lies between is
  // found by halving.
  let [tooShortMs, enoughMs] = [0, allFullMs];
  for (let halving = 0; halving < MAX_HALVINGS && enoughMs - tooShortMs > 1; halving += 1) {
    const middleMs = Math.floor(tooShortMs + (enoughMs - tooShortMs) / 2);
    if (shardSumMilli(shards, limitName, nowMs + middleMs) >= neededMilli) enoughMs = middleMs;
    else tooShortMs = middleMs;
  }
  return enoughMs;
}

/**
 * The longest wait, a debt of 2^53 at a millitoken in 2^53 milliseconds, is below 2^107; every wait
 * that ends in this epoch needs less than half.
 */
const MAX_HALVINGS = 107;

function exactShardSum(shards: readonly Bucket[], limitName: string, nowMs: number): number {
  let sum = 0n;
  for (const shard of shards) {
    const index = indexOf(shard, limitName);
    if (index >= 0) sum += BigInt(balanceMilli(shard, index, nowMs));
  }
  return Number(sum);
}

function indexOf({ limits }: Bucket, limitName: string): number {
  for (let index = 0; index < limits.length; index += 1)
    if (limits[index]!.limit.name === limitName) return index;
  return -1;
}
