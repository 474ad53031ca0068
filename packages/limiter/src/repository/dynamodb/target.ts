import type { Amounts } from "../../core/amounts.ts";
import { isUnder, underPolicy, type Charge } from "../../core/decision.ts";
import { fullBucket, holds, type Bucket } from "../../core/bucket.ts";
import type { Policy } from "../../core/policy.ts";
import { shardPolicy } from "../../core/shares.ts";
import type { Costs } from "./bucket-batch.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import { costsOf } from "./bucket-batch.ts";

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
export function bucketUnder({ policy }: Target, { bucket, shard, divisor }: BucketImage, nowMs: number): Bucket {
  return isUnder(bucket, policy) ? bucket : underPolicy(bucket, shardPolicy(policy, shard, divisor), nowMs);
}

/** What a target asks of all shards of its bucket together; a bucket that does not exist yet is full. */
export function chargeOf(target: Target, images: readonly BucketImage[], nowMs: number): Charge {
  const { key, policy, amounts } = target;
  const [bucket = fullBucket(policy.bucketLimits, nowMs), ...others] = images.map((image) => bucketUnder(target, image, nowMs));
  return { entityId: key.entityId, resource: key.resource, policy, amounts, bucket, others };
}

/** Whether one shard holds all that a target wants. */
export function holdsAlone(target: Target, image: BucketImage, nowMs: number): boolean {
  const bucket = bucketUnder(target, image, nowMs);
  return holds(bucket, costsOf(bucket, target.costs), nowMs);
}
