/*
 * Whether buckets hold what a call wants, as far as this process knows them. Nothing is read here,
 * and nothing changes.
 */
import {
  balanceMilli,
  crossesEnd,
  fullBucket,
  getStoredMilli,
  holds,
  type Bucket,
} from "../../../core/bucket/bucket.ts";
import {
  costsMilli,
  fits,
  hasPolicyLimits,
  bringUnderPolicy,
  type BucketClaim,
} from "../../../core/bucket/decision.ts";
import { countAmounts } from "../../../core/bucket/counted-amounts.ts";
import { addLeaves, computeLeaves, shareLeaves } from "../../../core/bucket/leave.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import { shardPolicy } from "../../../core/bucket/shares.ts";
import type { KnownBucket, KnownShard, SeenShard } from "../cache/known-buckets.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { WantedClaim } from "./wanted-claim.ts";

/**
 * Whether a bucket may serve a call, from one shard or from all together. One shard that holds it
 * does not suffice while others owe more than is left. A bucket that does not exist yet is full.
 */
export function mayFit(
  claim: WantedClaim,
  { count, shards, isWhole }: KnownBucket,
  nowMs: number,
): boolean {
  if (isWhole && shards.length === 1) return fitsShard(claim, shards[0]!.image, nowMs);
  const mayDecideAlone =
    count > 1 && !(isWhole && shards.some(({ image }) => isInDebt(image, nowMs)));
  if (mayDecideAlone && shards.some(({ image }) => fitsShard(claim, image, nowMs))) return true;
  return (isWhole || shards.length === 0) && fitsTogether(claim, shards, nowMs);
}

/** Whether one shard holds all that a claim wants, and its share of what the claim leaves. */
export function fitsShard(claim: WantedClaim, image: BucketImage, nowMs: number): boolean {
  const { policy, amounts, leave } = claim;
  const bucket = applyPolicy(policy, image, nowMs);
  const costs = costsMilli(bucket, countAmounts(policy, amounts));
  const leaves = computeLeaves(policy, leave);
  const needs = leaves === undefined ? costs : addLeaves(bucket, costs, shareLeaves(leaves, image));
  return holds(bucket, needs, nowMs);
}

/** Whether shards together hold all that a claim wants; no shards means a new, full bucket. */
export function fitsTogether(
  claim: WantedClaim,
  shards: readonly SeenShard[],
  nowMs: number,
): boolean {
  return fits([buildBucketClaim(claim, shards, nowMs)], nowMs);
}

/** A claim with all shards of its bucket; a bucket that does not exist yet is full. */
export function buildBucketClaim(
  claim: Pick<WantedClaim, "key" | "policy" | "amounts" | "leave">,
  shards: readonly Pick<KnownShard, "image">[],
  nowMs: number,
): BucketClaim {
  const { key, policy, leave } = claim;
  const amounts = countAmounts(policy, claim.amounts);
  const [bucket = fullBucket(policy.bucketLimits, nowMs), ...others] = shards.map(({ image }) =>
    applyPolicy(claim.policy, image, nowMs),
  );
  const leaves = computeLeaves(policy, leave);
  const places = leaves && shards.map(({ image }) => image);
  const { entityId, resource } = key;
  return { entityId, resource, policy, amounts, bucket, others, leaves, places };
}

/** Brings the bucket of one shard under a policy of the whole bucket. */
export function applyPolicy(
  policy: Policy,
  { bucket, shard, divisor }: BucketImage,
  nowMs: number,
): Bucket {
  return hasPolicyLimits(bucket, policy)
    ? bucket
    : bringUnderPolicy(bucket, shardPolicy(policy, shard, divisor), nowMs);
}

/** When a call is decided: not earlier than now where a window has ended since. */
export function afterLastEnd(shards: readonly SeenShard[], asOfMs: number, nowMs: number): number {
  return shards.some(({ image: { bucket } }) => crossesEnd(bucket, asOfMs, nowMs)) ? nowMs : asOfMs;
}

function isInDebt({ bucket }: BucketImage, nowMs: number): boolean {
  return bucket.limits.some(
    ({ window }, index) =>
      getStoredMilli(bucket, index) < 0 &&
      (window === undefined || balanceMilli(bucket, index, nowMs) < 0),
  );
}
