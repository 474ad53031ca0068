/*
 * The transaction that merges the shards p and q = p + d, both of divisor 2d, into p of divisor d
 * (ADR 012).
 *
 *   Update p    requires sv, cr and b_wcu_tc exactly as read
 *   Delete q    requires the same of q
 *
 * Every write moves b_wcu_tc, so nothing has been written to either half since it was read, and the
 * sums below are exact. A take on the half that stays would not be harmless: the other half may
 * have become full meanwhile, and what it earned since must not be counted twice.
 *
 *   T      the largest of both stamps and the clock after both reads
 *   tk     each half is credited up to T at its own rate and cut off at its own ceiling; then added
 *   rm     added as fractions, and rounded down once; a whole millitoken is carried into tk
 *   we     of a quota, the later one: see `mergeWindows`
 *   tc, cc, gr, gc, b_wcu_tc    added
 *   sv     max(now, sv of p + 1, sv of q + 1): higher than in any life of q so far, so that a late
 *          write to q fails in its later lives too
 *   mi     the operation ids of q, by which its writes without an answer are resolved
 *
 * A limit that one half lacks is full there. Where the halves show different parameters, both are
 * converted first, as a write under the new parameters would.
 */
import {
  bucketLimit,
  getStoredEndMs,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { mergeWindows } from "../../../core/bucket/merge-windows.ts";
import { withLimits } from "../../../core/bucket/limit-change.ts";
import { shardLimit } from "../../../core/bucket/shares.ts";
import { sameLimits } from "../../../core/limit.ts";
import type { SupportedLimit } from "../../../core/supported-limits.ts";
import { getString, readNumber, type AttributeMap } from "../transport/attribute-values.ts";
import {
  type BucketImage,
  limitAttribute,
  listMergedIds,
  originAttribute,
  type LimitOrigin,
  parameterAttributes,
} from "../items/bucket-item.ts";
import { computeExpiry, predict } from "../items/bucket-expiry.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import { TRANSACTION_WRITE_UNITS, type TransactItem } from "../table/connection.ts";
import { ExpressionBuilder } from "../table/update-expression.ts";
import { requireVersion } from "./split.ts";

/** One half of a merge, as it was read. */
export interface Half {
  readonly key: BucketKey;
  readonly item: AttributeMap;
  readonly image: BucketImage;
}

/** What a merge is made from. */
export interface MergeRequest {
  /** The half that stays. */
  readonly kept: Half;
  /** The half that goes: `kept.shard + divisor / 2`. */
  readonly gone: Half;
  /** The limits of the configuration, for halves that show different ones. */
  readonly configured: readonly SupportedLimit[] | undefined;
  /** The clock after both halves were read; a whole number. */
  readonly nowMs: number;
  /** Fill times that an idle bucket is kept for once it is whole; 0 when it never expires. */
  readonly ttlMultiplier: number;
}

/** Why two halves must not be merged. */
export type MergeObstacle =
  /** A debt so deep that its last digits were lost on reading it: the sum would not be exact. */
  | "balance not exact"
  /** Each half has another window open, because clocks differ: one will be over soon. */
  | "different windows open";

/** The writes of a merge, or what prevents it. */
export function buildMerge(
  request: MergeRequest,
): readonly [TransactItem, TransactItem] | MergeObstacle {
  const { kept, gone, nowMs } = request;
  const atMs = Math.max(nowMs, kept.image.bucket.refilledAtMs, gone.image.bucket.refilledAtMs);
  const { limits, ...origin } = mergeLimits(request);
  const merged = addBuckets(limits, kept.image, gone.image, atMs);
  if (typeof merged === "string") return merged;
  return [
    { Update: { Key: kept.key.marshalled, ...updateOfKept(request, { merged, origin }) } },
    { Delete: { Key: gone.key.marshalled, ...conditionOn(gone.image) } },
  ];
}

/** The limits of the merged bucket, of the whole, hidden ones included. */
function mergeLimits({
  kept,
  gone,
  ...request
}: MergeRequest): LimitOrigin & { readonly limits: readonly BucketLimit[] } {
  const [left, right] = [kept.image, gone.image];
  const isSame = sameLimits(visibleLimits(left), visibleLimits(right));
  const newer = left.version >= right.version ? left : right;
  // The configuration lacks limits that came from code.
  const configured = newer.fromCode === undefined ? request.configured : undefined;
  const visible = isSame ? visibleLimits(left) : (configured ?? visibleLimits(newer));
  return {
    limits: [
      ...visible.map((limit) => bucketLimit(limit, false)),
      ...listHiddenBeside(visible, kept, gone),
    ],
    overridden: isSame
      ? left.overridden && right.overridden
      : configured === undefined && newer.overridden,
    fromCode: newer.fromCode,
  };
}

function visibleLimits({ bucket }: BucketImage): readonly SupportedLimit[] {
  return bucket.limits.filter(({ hidden }) => !hidden).map(({ limit }) => limit);
}

/** Every other limit once, as the first of the halves has it. */
function listHiddenBeside(
  visible: readonly SupportedLimit[],
  ...halves: readonly Half[]
): readonly BucketLimit[] {
  const hidden = new Map<string, BucketLimit>();
  for (const { image } of halves)
    for (const { limit } of image.bucket.limits)
      if (!hidden.has(limit.name) && !visible.some(({ name }) => name === limit.name))
        hidden.set(limit.name, bucketLimit(limit, true));
  return [...hidden.values()];
}

/** The bucket of the merged shard as of a time, or what prevents it. */
function addBuckets(
  limits: readonly BucketLimit[],
  kept: BucketImage,
  gone: BucketImage,
  atMs: number,
): Bucket | MergeObstacle {
  const own = (image: BucketImage): readonly BucketLimit[] =>
    limits.map((limit) => shardLimit(limit, image.shard, image.divisor));
  const halves = [kept, gone].map((image) => withLimits(image.bucket, own(image), atMs));
  const shares = limits.map((limit) => shardLimit(limit, kept.shard, kept.divisor / 2));
  const balances: number[] = [];
  for (const [index, { period, window }] of shares.entries())
    if (window === undefined) {
      const { carriedMilli, remainder } = addRemainders(halves, index, period);
      const [left, right] = halves.map((half) => getStoredMilli(half, index));
      balances.push(left! + right! + carriedMilli, remainder, 0);
    } else {
      const state = mergeWindows(
        halves.map((half) => ({
          window: half.limits[index]!.window!,
          storedMilli: getStoredMilli(half, index),
          endMs: getStoredEndMs(half, index),
        })),
        atMs,
      );
      if (state === undefined) return "different windows open";
      balances.push(state.storedMilli, state.endMs, 0);
    }
  const isExact = [kept.bucket, gone.bucket].every(isSafe) && balances.every(Number.isSafeInteger);
  return isExact ? { limits: shares, refilledAtMs: atMs, balances } : "balance not exact";
}

function isSafe(bucket: Bucket): boolean {
  return bucket.limits.every((_, index) => Number.isSafeInteger(getStoredMilli(bucket, index)));
}

/** The remainders of one limit in units of 1/period; what makes a whole millitoken is carried. */
function addRemainders(
  halves: readonly Bucket[],
  index: number,
  period: number,
): { readonly carriedMilli: number; readonly remainder: number } {
  const fractions = halves.map((half) => ({
    part: BigInt(getStoredRemainder(half, index)),
    whole: BigInt(half.limits[index]!.period),
  }));
  const whole = fractions.reduce((product, fraction) => product * fraction.whole, 1n);
  const part = fractions.reduce(
    (sum, fraction) => sum + (fraction.part * whole) / fraction.whole,
    0n,
  );
  const units = Number((part * BigInt(period)) / whole);
  return { carriedMilli: Math.floor(units / period), remainder: units % period };
}

function updateOfKept(
  { kept: { image, item }, gone, nowMs, ttlMultiplier }: MergeRequest,
  { merged, origin }: { readonly merged: Bucket; readonly origin: LimitOrigin },
): object {
  const divisor = image.divisor / 2;
  const builder = new ExpressionBuilder();
  const removeIfPresent = (attribute: string): void => {
    if (item[attribute] !== undefined) builder.remove(attribute);
  };
  requireAsRead(builder, image);
  merged.limits.forEach((limit, index) => {
    const { name } = limit.limit;
    const parameters = parameterAttributes(limit);
    for (const [attribute, value] of Object.entries(parameters))
      if ((numberIn(item, attribute) ?? getString(item[attribute])) !== value)
        builder.set(attribute, value);
    // Those of another kind that the kept half has.
    for (const field of ["ra", "rp", "kd", "hd"] as const)
      if (!(limitAttribute(name, field) in parameters))
        removeIfPresent(limitAttribute(name, field));
    builder.set(limitAttribute(name, "tk"), getStoredMilli(merged, index));
    const state = { rm: getStoredRemainder(merged, index), we: getStoredEndMs(merged, index) };
    for (const [field, value] of Object.entries(state) as ["rm" | "we", number][])
      if (value > 0) builder.set(limitAttribute(name, field), value);
      else removeIfPresent(limitAttribute(name, field));
  });
  builder.set("rf", merged.refilledAtMs);
  const version = Math.max(nowMs, image.version + 1, gone.image.version + 1);
  builder.set("sv", version);
  builder.set("sd", version);
  builder.set("shard_count", divisor);
  builder.set("mi", listMergedIds(image, gone.image));
  const po = originAttribute(origin);
  if (po !== undefined) builder.set("po", po);
  else removeIfPresent("po");
  builder.add("gr", numberIn(gone.item, "gr") ?? 0);
  builder.add("gc", numberIn(gone.item, "gc") ?? 0);
  if (gone.image.undone !== undefined) builder.begin("ud", gone.image.undone);
  builder.add("b_wcu_tc", gone.image.writes + 2 * TRANSACTION_WRITE_UNITS);
  for (const total of listTotals(gone.item)) builder.add(total, numberIn(gone.item, total) ?? 0);
  if (divisor === 1 && ttlMultiplier > 0) renewExpiry(builder, merged, nowMs, ttlMultiplier);
  return { ...builder.build(), ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
}

/** The totals consumed, in all and by cascade, also of names that the bucket has no limit for. */
function listTotals(item: AttributeMap): readonly string[] {
  return Object.keys(item).filter((name) => /^b_.+_[tc]c$/.test(name) && name !== "b_wcu_tc");
}

/** A bucket that is whole again may expire, once all that it owes has been earned back. */
function renewExpiry(
  builder: ExpressionBuilder,
  merged: Bucket,
  nowMs: number,
  multiplier: number,
): void {
  const fromMs = Math.max(nowMs, merged.refilledAtMs);
  const options = { nowMs: fromMs, multiplier, ...predict(merged) };
  const expiry = computeExpiry(merged.limits, options);
  if (expiry !== undefined) builder.set("ttl", expiry.ttlSeconds);
}

function conditionOn(image: BucketImage): object {
  const builder = new ExpressionBuilder();
  requireAsRead(builder, image);
  const { UpdateExpression: _, ...condition } = builder.build();
  return { ...condition, ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
}

/** Requires that nothing was written to a half since it was read. */
function requireAsRead(builder: ExpressionBuilder, image: BucketImage): void {
  requireVersion(builder, image);
  builder.requireEqual("b_wcu_tc", image.writes);
}

/** A number as stored, exactly; totals may have left the safe range. */
function numberIn(item: AttributeMap, attribute: string): number | bigint | undefined {
  const value = item[attribute];
  return value !== undefined && "N" in value ? readNumber(value.N) : undefined;
}
