import type { Amounts } from "../../core/amounts.ts";
import { fullBucket, holds, storedMilli, type Bucket } from "../../core/bucket.ts";
import { fits, isUnder, underPolicy, type Charge } from "../../core/decision.ts";
import type { Policy } from "../../core/policy.ts";
import { shardPolicy } from "../../core/shares.ts";
import { costsOf, type Costs } from "./bucket-batch.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { KnownBucket, KnownShard } from "./bucket-shards.ts";

/** One bucket of a call, and what the call wants of it. */
export interface Target {
  /** Of shard 0, which tells how many there are. */
  key: BucketKey;
  readonly amounts: Amounts;
  /** The same in millitokens. */
  readonly costs: Costs;
  readonly override: boolean;
  /** Of the whole bucket; replaced when the bucket shows that the configuration has changed. */
  policy: Policy;
}

/** One shard's bucket as the target's policy wants it. */
export function bucketUnder(
  { policy }: Target,
  { bucket, shard, divisor }: BucketImage,
  nowMs: number,
): Bucket {
  return isUnder(bucket, policy)
    ? bucket
    : underPolicy(bucket, shardPolicy(policy, shard, divisor), nowMs);
}

/**
 * What a target asks of all shards of its bucket together; a bucket that does not exist yet is
 * full.
 */
export function chargeOf(target: Target, shards: readonly KnownShard[], nowMs: number): Charge {
  const { key, policy, amounts } = target;
  const [bucket = fullBucket(policy.bucketLimits, nowMs), ...others] = shards.map(({ image }) =>
    bucketUnder(target, image, nowMs),
  );
  return { entityId: key.entityId, resource: key.resource, policy, amounts, bucket, others };
}

/** Whether one shard holds all that a target wants. */
export function holdsAlone(target: Target, image: BucketImage, nowMs: number): boolean {
  const bucket = bucketUnder(target, image, nowMs);
  return holds(bucket, costsOf(bucket, target.costs), nowMs);
}

/** Whether shards hold together all that a target wants. */
export function holdTogether(
  target: Target,
  shards: readonly KnownShard[],
  nowMs: number,
): boolean {
  return fits([chargeOf(target, shards, nowMs)], nowMs);
}

/**
 * Whether the shards of a bucket serve a call, one of them or all together: a shard that holds it
 * alone may not, while others owe more than is left. A bucket that does not exist yet is full.
 */
export function serve(target: Target, { shards, isWhole }: KnownBucket, nowMs: number): boolean {
  const mayDecideAlone = shards.length > 1 && !(isWhole && shards.some(({ image }) => owes(image)));
  if (mayDecideAlone && shards.some(({ image }) => holdsAlone(target, image, nowMs))) return true;
  return (isWhole || shards.length === 0) && holdTogether(target, shards, nowMs);
}

function owes({ bucket }: BucketImage): boolean {
  return bucket.limits.some((_, index) => storedMilli(bucket, index) < 0);
}
