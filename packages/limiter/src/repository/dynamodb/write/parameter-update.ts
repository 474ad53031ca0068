import {
  ceilingMilli,
  computeEarned,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import type { LimitFold } from "./batch-decision.ts";
import { limitAttribute, parameterAttributes } from "../items/bucket-item.ts";
import type { ExpressionBuilder } from "../table/update-expression.ts";

/** Removes a limit that left the policy and is full: a new one would be the same. */
export function dropLimit(
  builder: ExpressionBuilder,
  bucket: Bucket,
  index: number,
  { fold, nowMs }: { readonly fold: LimitFold; readonly nowMs: number },
): void {
  const limit = bucket.limits[index]!;
  const credit = computeEarned(bucket, index, nowMs).milli;
  builder.requireWithin(limitAttribute(limit.limit.name, "tk"), {
    least: Math.max(ceilingMilli(limit) - credit, Number.MIN_SAFE_INTEGER),
  });
  for (const field of ["tk", "cp", "ra", "rp", "rm", "hd"] as const)
    builder.remove(limitAttribute(limit.limit.name, field));
  // No attribute can be removed and added to in one update.
  if (fold.countedMilli !== 0 || fold.cascadedMilli !== 0) return;
  for (const field of ["tc", "cc"] as const)
    builder.remove(limitAttribute(limit.limit.name, field));
}

/**
 * Adds a limit that joins the policy: it starts full, less what the batch takes. Its total may have
 * begun earlier, when another level's limit of that name was counted and not charged.
 */
export function addLimit(builder: ExpressionBuilder, limit: BucketLimit, fold: LimitFold): void {
  for (const [attribute, value] of Object.entries(parameterAttributes(limit)))
    builder.set(attribute, value);
  builder.set(
    limitAttribute(limit.limit.name, "tk"),
    fold.computeBalanceAfter(ceilingMilli(limit), ceilingMilli(limit)).milli,
  );
  builder.begin(limitAttribute(limit.limit.name, "tc"), fold.netMilli + fold.countedMilli);
}

/**
 * Writes those parameters of a limit that change: an expression must fit 4 KB, and a policy may
 * hide 32 limits and bring 32 others.
 */
export function writeParameters(
  builder: ExpressionBuilder,
  before: BucketLimit,
  wanted: BucketLimit,
): void {
  const held = parameterAttributes(before);
  for (const [attribute, value] of Object.entries(parameterAttributes(wanted)))
    if (held[attribute] !== value) builder.set(attribute, value);
  if (before.hidden && !wanted.hidden) builder.remove(limitAttribute(wanted.limit.name, "hd"));
}

/**
 * Counts what the bucket has no limit for, or whose limit it drops. The total of any other limit
 * has been changed already, by what was charged and counted together, unless that is nothing.
 */
export function countUnlimited(
  builder: ExpressionBuilder,
  name: string,
  { netMilli, countedMilli }: LimitFold,
): void {
  const total = limitAttribute(name, "tc");
  if (netMilli + countedMilli !== 0 && !builder.changes(total)) builder.add(total, countedMilli);
}
