import {
  balanceMilli,
  computeEarned,
  getStoredEndMs,
  getStoredMilli,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { computeWindowEnd } from "../../../core/bucket/windows.ts";
import type { LimitFold } from "./batch-decision.ts";
import { limitAttribute, parameterAttributes, type LimitField } from "../items/bucket-item.ts";
import { requireEnd, type LimitMove } from "./limit-forms.ts";
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
  const endMs = getStoredEndMs(bucket, index);
  if (limit.window !== undefined)
    requireEnd(builder, limitAttribute(limit.limit.name, "we"), endMs);
  // A window that is over is full, whatever its balance.
  if (limit.window === undefined || nowMs < endMs)
    builder.requireWithin(limitAttribute(limit.limit.name, "tk"), {
      least: Math.max(limit.capacityMilli - credit, Number.MIN_SAFE_INTEGER),
    });
  for (const field of ["tk", ...listParameters(limit), ...listState(limit), "hd"] as const)
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
export function addLimit(
  builder: ExpressionBuilder,
  limit: BucketLimit,
  fold: LimitFold,
  nowMs: number,
): void {
  for (const [attribute, value] of Object.entries(parameterAttributes(limit)))
    builder.set(attribute, value);
  builder.set(
    limitAttribute(limit.limit.name, "tk"),
    fold.computeBalanceAfter(limit.capacityMilli, limit.capacityMilli).milli,
  );
  if (limit.window !== undefined && fold.isCharged)
    builder.set(
      limitAttribute(limit.limit.name, "we"),
      computeWindowEnd(limit.window, nowMs, 0),
    );
  builder.begin(limitAttribute(limit.limit.name, "tc"), fold.netMilli + fold.countedMilli);
}

/**
 * Turns a limit into one of another kind, with its balance as seen: a quota or session into a window
 * that opens now.
 */
export function changeKind(
  builder: ExpressionBuilder,
  { bucket, index, wanted, fold, nowMs }: LimitMove,
): void {
  const before = bucket.limits[index]!;
  const { name } = wanted.limit;
  const tokens = limitAttribute(name, "tk");
  const start = Math.min(wanted.capacityMilli, balanceMilli(bucket, index, nowMs));
  builder.requireEqual(tokens, getStoredMilli(bucket, index));
  if (before.window !== undefined)
    requireEnd(builder, limitAttribute(name, "we"), getStoredEndMs(bucket, index));
  builder.set(tokens, fold.computeBalanceAfter(start, wanted.capacityMilli).milli);
  builder.add(limitAttribute(name, "tc"), fold.netMilli + fold.countedMilli);
  if (wanted.window !== undefined)
    builder.set(limitAttribute(name, "we"), computeWindowEnd(wanted.window, nowMs, 0));
  const kept: readonly string[] = [...listParameters(wanted), ...listState(wanted)];
  for (const field of [...listParameters(before), ...listState(before)])
    if (!kept.includes(field)) builder.remove(limitAttribute(name, field));
}

/** The fields that only one kind of limit has. */
function listParameters({ window }: BucketLimit): readonly LimitField[] {
  return window === undefined ? ["cp", "ra", "rp"] : ["cp", "kd"];
}

function listState({ window }: BucketLimit): readonly LimitField[] {
  return [window === undefined ? "rm" : "we"];
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
