import type { BucketLimit } from "./bucket.ts";
import { reduceRate } from "../check-limit.ts";
import type { Policy } from "./policy.ts";

/*
 * A bucket may be stored as several shards. Shard `j` with divisor `n` owns the residue class j mod
 * n: of a whole `x` it has as many millitokens as there are k in [0, x) with k mod n = j. The
 * shares of shards that cover all classes add up to the whole, exactly, no matter which shards have
 * split. Divisors are powers of two.
 */

/** How many of `whole` a shard owns. */
export function computeShare(whole: number, shard: number, divisor: number): number {
  return whole > shard ? Math.floor((whole - 1 - shard) / divisor) + 1 : 0;
}

/**
 * A limit as one shard sees it: capacity and rate are the shard's shares, while `limit` stays the
 * configured limit.
 */
export function shardLimit(limit: BucketLimit, shard: number, divisor: number): BucketLimit {
  if (divisor === 1) return limit;
  const capacityMilli = computeShare(limit.capacityMilli, shard, divisor);
  const { window } = limit;
  if (window !== undefined) {
    const unusedMilli = computeShare(window.unusedMilli, shard, divisor);
    return { ...limit, capacityMilli, window: { ...window, capacityMilli, unusedMilli } };
  }
  const refillAmountMilli = computeShare(limit.refillAmountMilli, shard, divisor);
  return {
    ...limit,
    capacityMilli,
    refillAmountMilli,
    ...reduceRate(refillAmountMilli, limit.refillPeriodMs),
  };
}

/**
 * A list of limits as one shard sees them. The same list and shard always give the same result,
 * because decisions compare lists by identity.
 */
export function shardLimits(
  limits: readonly BucketLimit[],
  shard: number,
  divisor: number,
): readonly BucketLimit[] {
  if (divisor === 1) return limits;
  return memoize(LIMITS_MEMO, limits, divisor + shard, () =>
    limits.map((limit) => shardLimit(limit, shard, divisor)),
  );
}

/** A policy as one shard sees it; the same policy and shard always give the same result. */
export function shardPolicy(policy: Policy, shard: number, divisor: number): Policy {
  if (divisor === 1) return policy;
  return memoize(POLICY_MEMO, policy, divisor + shard, () => ({
    ...policy,
    bucketLimits: shardLimits(policy.bucketLimits, shard, divisor),
  }));
}

/**
 * Keyed by the whole, then by the shard's place in the tree. Shard < divisor, and divisors are
 * powers of two, so `divisor + shard` is different for each place.
 */
type ShareMemo<Whole extends object> = WeakMap<Whole, Map<number, Whole>>;

const LIMITS_MEMO: ShareMemo<readonly BucketLimit[]> = new WeakMap();
const POLICY_MEMO: ShareMemo<Policy> = new WeakMap();

/**
 * Each memo is bounded by the number of shards a bucket can have, and is dropped with its whole.
 */
function memoize<Whole extends object>(
  shares: ShareMemo<Whole>,
  whole: Whole,
  place: number,
  make: () => Whole,
): Whole {
  const places = shares.get(whole) ?? new Map<number, Whole>();
  if (places.size === 0) shares.set(whole, places);
  const held = places.get(place) ?? make();
  places.set(place, held);
  return held;
}
