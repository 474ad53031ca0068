import { listWindowEnds, type Bucket } from "../../../core/bucket/bucket.ts";
import { computeWindowEnd, type WindowEnds } from "../../../core/bucket/windows.ts";
import { marshalItem, type AttributeMap } from "../transport/attribute-values.ts";
import { bucketAttributes, limitAttribute, slotAttribute } from "../items/bucket-item.ts";
import { computeExpiry, predict } from "../items/bucket-expiry.ts";
import { keyAttributes, type BucketKey } from "../items/bucket-key.ts";
import type { BucketChange } from "./bucket-update.ts";
import type { OperationMark } from "./operation-ids.ts";
import { absent, Aliases } from "../table/aliases.ts";

/** The put that creates a bucket already charged, unless it exists. */
export function buildPut(
  key: BucketKey,
  full: Bucket,
  change: Omit<BucketChange, "limits"> & { readonly mark: OperationMark },
): { readonly input: { readonly Item: AttributeMap }; readonly windowEnds: WindowEnds | undefined } {
  const { folds, cascadedRequests, overridden, writeUnits, mark, ttlMultiplier } = change;
  const bucket = buildChargedBucket(full, folds);
  const nowMs = full.refilledAtMs;
  const expiry =
    ttlMultiplier > 0
      ? computeExpiry(bucket.limits, { nowMs, multiplier: ttlMultiplier, ...predict(bucket) })
      : undefined;
  const item = marshalItem({
    ...keyAttributes(key),
    ...buildCountedAttributes(folds),
    ...bucketAttributes(bucket),
    sv: nowMs,
    gr: change.requests,
    ...(cascadedRequests !== 0 && { gc: cascadedRequests }),
    ...(change.undone !== undefined && { ud: change.undone }),
    b_wcu_tc: writeUnits,
    shard_count: 1,
    ...(overridden && { po: 1 }),
    [slotAttribute(mark.slot)]: mark.id,
    cr: mark.id,
    ...(expiry !== undefined && { ttl: expiry.ttlSeconds }),
  });
  const alias = new Aliases();
  const input = {
    Item: item,
    ConditionExpression: absent(alias),
    ...alias.fields(),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
  return { input, windowEnds: listWindowEnds(bucket) };
}

/** What is only counted, and what came by cascade; the totals of limits are written over it. */
function buildCountedAttributes(folds: BucketChange["folds"]): Record<string, number> {
  const totals: Record<string, number> = {};
  for (const [name, { countedMilli, cascadedMilli }] of folds) {
    if (countedMilli !== 0) totals[limitAttribute(name, "tc")] = countedMilli;
    if (cascadedMilli !== 0) totals[limitAttribute(name, "cc")] = cascadedMilli;
  }
  return totals;
}

/**
 * A full bucket after a batch. What a member gives back to a full limit is cut off, even if others
 * take afterwards. A limit with windows opens its first one if it is charged.
 */
function buildChargedBucket(bucket: Bucket, folds: BucketChange["folds"]): Bucket {
  const balances = bucket.limits.flatMap((limit) => {
    const fold = folds.get(limit.limit.name)!;
    const { capacityMilli, window } = limit;
    const { milli } = fold.computeBalanceAfter(capacityMilli, capacityMilli);
    const opens = window !== undefined && fold.isCharged;
    const endMs = opens ? computeWindowEnd(window, bucket.refilledAtMs, 0) : 0;
    return [milli, endMs, fold.netMilli + fold.countedMilli];
  });
  return { ...bucket, balances };
}
