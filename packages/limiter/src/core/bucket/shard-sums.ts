import {
  balanceMilli,
  ceilingMilli,
  findOpenEndMs,
  getStoredEndMs,
  getStoredMilli,
  waitMs,
  type Bucket,
} from "./bucket.ts";
import { aboveKept, computeWindowWaitMs, type StoredWindow } from "./windows.ts";

/*
 * A bucket may be stored as several shards, each a `Bucket` with its share of every limit. Any
 * shard can serve a call, and so can several together, so the sum decides. Limits of different
 * shards are matched by name, because each shard has its own order and its own stamp.
 */

/**
 * What the shards together hold of one limit, refill included: all of it, or what each holds above
 * what it keeps. Debts count in full.
 */
export function shardSumMilli(
  shards: readonly Bucket[],
  limitName: string,
  nowMs: number,
  keptMilli?: readonly number[],
): number {
  let sum = 0;
  for (const [place, shard] of shards.entries()) {
    const index = indexOf(shard, limitName);
    if (index >= 0) sum += aboveKept(balanceMilli(shard, index, nowMs), keptMilli?.[place]);
    // Debts may add up beyond the safe range. Such a sum is rounded only once, at the end, so that
    // it still grows with time.
    if (!Number.isSafeInteger(sum)) return exactShardSum(shards, limitName, nowMs, keptMilli);
  }
  return sum;
}

/**
 * The time until the shards together hold `neededMilli` of one limit if nothing is taken;
 * `Infinity` if they never can.
 */
export function waitForShardSumMs(
  shards: readonly Bucket[],
  limitName: string,
  neededMilli: number,
  nowMs: number,
  keptMilli?: readonly number[],
): number {
  let ceiling = 0;
  let allFullMs = 0;
  const windows: StoredWindow[] = [];
  for (const [place, shard] of shards.entries()) {
    const index = indexOf(shard, limitName);
    if (index < 0) continue;
    const { window } = shard.limits[index]!;
    const own = ceilingMilli(shard.limits[index]!);
    ceiling += aboveKept(own, keptMilli?.[place]);
    if (window !== undefined) {
      const [storedMilli, endMs] = [getStoredMilli(shard, index), getStoredEndMs(shard, index)];
      windows.push({ window, storedMilli, endMs, keptMilli: keptMilli?.[place] });
    } else allFullMs = Math.max(allFullMs, waitMs(shard, index, own, nowMs));
  }
  if (neededMilli > ceiling) return Infinity;
  const isHeld = (afterMs: number): boolean =>
    shardSumMilli(shards, limitName, nowMs + afterMs, keptMilli) >= neededMilli;
  if (isHeld(0)) return 0;
  if (windows.length > 0) return computeWindowWaitMs(windows, neededMilli, nowMs);
  // Balances only grow, and after `allFullMs` all of them are full, so the time can be found by
  // bisection.
  let [tooShortMs, enoughMs] = [0, allFullMs];
  for (let halving = 0; halving < MAX_HALVINGS && enoughMs - tooShortMs > 1; halving += 1) {
    const middleMs = Math.floor(tooShortMs + (enoughMs - tooShortMs) / 2);
    if (isHeld(middleMs)) enoughMs = middleMs;
    else tooShortMs = middleMs;
  }
  return enoughMs;
}

/** The latest end of the windows of one limit that are open on any of the shards, if any is. */
export function findShardsEndMs(
  shards: readonly Bucket[],
  limitName: string,
  nowMs: number,
): number | undefined {
  const ends = shards.flatMap((shard) => {
    const index = indexOf(shard, limitName);
    return index < 0 ? [] : (findOpenEndMs(shard, index, nowMs) ?? []);
  });
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/**
 * The longest possible wait, for a debt of 2^53 millitokens at one per 2^53 milliseconds, is below
 * 2^107 ms. Realistic waits need less than half as many steps.
 */
const MAX_HALVINGS = 107;

function exactShardSum(
  shards: readonly Bucket[],
  limitName: string,
  nowMs: number,
  keptMilli: readonly number[] | undefined,
): number {
  let sum = 0n;
  for (const [place, shard] of shards.entries()) {
    const index = indexOf(shard, limitName);
    if (index >= 0) sum += BigInt(aboveKept(balanceMilli(shard, index, nowMs), keptMilli?.[place]));
  }
  return Number(sum);
}

function indexOf({ limits }: Bucket, limitName: string): number {
  for (let index = 0; index < limits.length; index += 1)
    if (limits[index]!.limit.name === limitName) return index;
  return -1;
}
