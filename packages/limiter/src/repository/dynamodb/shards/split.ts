/*
 * The transaction that splits shard p of divisor d into p and p + d of divisor 2d (ADR 012).
 *
 *   Update p     requires rf, sv, cr and shard_count exactly as seen and, for each limit, hidden
 *                ones included, one of
 *                  moved    ADD tk −m         if m ≤ tk ≤ share' + m − earned'
 *                  full     SET tk = L − m    if tk ≥ L, the lowest balance that is full by now
 *                  exact    ADD tk −m         if tk = seen, where one millitoken more would
 *                                             overflow a half
 *                  window   ADD tk −m         if m ≤ tk and we = seen: a quota, of which both
 *                                             halves keep the window
 *   Put p + d    unconditionally: the divisor of p decides which shards exist, so any item at that
 *                key no longer belongs to a bucket
 *
 * m is fixed, so takes and give-backs that are applied in between do not disturb the split, unless
 * one half would overflow. `rf` stays on both halves, so what was earned before the split and not
 * credited yet is earned by the halves, at their rates, which add up to the whole. No choice of m
 * can mint tokens (the sum of the minima is at most the minimum of the sums); a bad m could only
 * lose some.
 */
import { MILLI } from "../../../core/amounts.ts";
import {
  bucketLimit,
  ceilingMilli,
  getConsumedMilli,
  computeEarned,
  roundUp,
  scaleRemainder,
  getStoredEndMs,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { shardLimit, computeShare } from "../../../core/bucket/shares.ts";
import { marshalItem } from "../transport/attribute-values.ts";
import {
  bucketAttributes,
  limitAttribute,
  originAttribute,
  type BucketImage,
} from "../items/bucket-item.ts";
import { bucketKey, keyAttributes, type BucketKey } from "../items/bucket-key.ts";
import { TRANSACTION_WRITE_UNITS, type TransactItem } from "../table/connection.ts";
import { ExpressionBuilder } from "../table/update-expression.ts";
import { requireEnd } from "../write/limit-forms.ts";
import { nextHalf } from "./shard-tree.ts";

/** Why a shard must not be split. */
export type SplitObstacle =
  /** The bucket would have more shards than it may. */
  | "more than maxShards allows"
  /**
   * A share of a visible limit would be less than a token, which no ordinary call could ever take
   * from one shard.
   */
  | "shares below one token"
  /** A debt so deep that its last digits were lost on reading it: half of it would not be half. */
  | "balance not exact"
  /** A call opens a session, and halves would have one each. */
  | "sessions are not divided";

/**
 * What prevents the split of a shard, if anything does. A limit of an unknown kind prevents even
 * its image: `parseBucketItem` throws.
 */
export function splitObstacle(
  { bucket, divisor }: BucketImage,
  maxShards: number,
): SplitObstacle | undefined {
  if (divisor * 2 > maxShards) return "more than maxShards allows";
  if (bucket.limits.some(({ window }) => window?.kind === "session"))
    return "sessions are not divided";
  // Checked for the smallest share of the next level, so that either all shards of a level can come
  // to exist or none.
  const isTooSmall = ({ limit, hidden }: BucketLimit): boolean =>
    !hidden && computeShare(limit.capacity * MILLI, divisor * 2 - 1, divisor * 2) < MILLI;
  if (bucket.limits.some(isTooSmall)) return "shares below one token";
  const isExact = bucket.limits.every((_, index) =>
    Number.isSafeInteger(getStoredMilli(bucket, index)),
  );
  return isExact ? undefined : "balance not exact";
}

/**
 * Whether every shard of the next level would hold several calls of the usual size. Smaller shards
 * would serve hardly any call alone, and a call that takes from several of them costs more than
 * being throttled. The usual size is what the bucket's acquires have cost so far, on average.
 */
export function leavesRoomForCalls({ bucket, divisor, requests }: BucketImage): boolean {
  if (requests <= 0) return true;
  return bucket.limits.every(({ limit, hidden }, index) => {
    const usualMilli = getConsumedMilli(bucket, index) / requests;
    const shareMilli = computeShare(limit.capacity * MILLI, divisor * 2 - 1, divisor * 2);
    return hidden || shareMilli >= CALLS_IN_A_SHARE * usualMilli;
  });
}

/** How many calls of the usual size the smallest share must hold. */
const CALLS_IN_A_SHARE = 4;

/**
 * The writes of a split, from the image of the shard and the clock. When they are cancelled, the
 * first reason carries the shard's item.
 */
export function buildSplit({
  key,
  image,
  nowMs,
}: SplitRequest): readonly [TransactItem, TransactItem] {
  const { bucket, shard, divisor } = image;
  const parts = bucket.limits.map((_, index) => computePart(image, index, nowMs));
  const version = Math.max(nowMs, image.version + 1);
  const builder = new ExpressionBuilder();
  requireSeen(builder, image);
  parts.forEach((part, index) => keepPart(builder, { bucket, index, part }));
  builder.set("shard_count", 2 * divisor);
  builder.set("sv", version);
  builder.set("sd", version);
  builder.add("b_wcu_tc", TRANSACTION_WRITE_UNITS);
  // A shard that expired would come back full, as a whole bucket or with a stale divisor: sharded
  // buckets do not expire.
  builder.remove("ttl");
  const half = nextHalf({ shard, divisor });
  const moved: Bucket = {
    limits: parts.map(({ movedLimit }) => movedLimit),
    refilledAtMs: bucket.refilledAtMs,
    balances: parts.flatMap(({ movedMilli }, index) => [
      movedMilli,
      getStoredEndMs(bucket, index),
      0,
    ]),
  };
  const { namespaceId, entityId, resource } = key;
  const halfKey = bucketKey({ namespaceId, entityId, resource, shard: half.shard }, image.parentId);
  const item = marshalItem({
    ...keyAttributes(halfKey),
    ...bucketAttributes(moved),
    sv: version,
    sd: version,
    shard_count: half.divisor,
    gr: 0,
    b_wcu_tc: TRANSACTION_WRITE_UNITS,
    cr: image.creation,
    po: originAttribute(image),
    ...(image.undone !== undefined && { ud: 0 }),
  });
  return [
    {
      Update: {
        Key: key.marshalled,
        ...builder.build(),
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      },
    },
    { Put: { Item: item } },
  ];
}

/** What a split is made from. */
export interface SplitRequest {
  /** The key of the shard that is split. */
  readonly key: BucketKey;
  readonly image: BucketImage;
  /** A whole number. */
  readonly nowMs: number;
}

/** What a split does to one limit. */
interface Part extends Division {
  readonly movedLimit: BucketLimit;
  readonly keptRemainder: number;
}

/** How the balance of one limit is divided; see the forms at the top of this file. */
interface Division {
  readonly form: "moved" | "full" | "exact";
  readonly movedMilli: number;
  /** The balance that is divided: L in the form `full`, otherwise the one in the image. */
  readonly fromMilli: number;
  readonly leastMilli: number | undefined;
  readonly mostMilli: number | undefined;
}

/** One limit of a shard, and what its halves have earned by the time of the split. */
interface DividedLimit {
  readonly limit: BucketLimit;
  readonly keptLimit: BucketLimit;
  readonly movedLimit: BucketLimit;
  readonly storedMilli: number;
  readonly creditMilli: number;
  readonly keptCredit: ReturnType<typeof computeEarned>;
  readonly movedCredit: ReturnType<typeof computeEarned>;
}

function computePart({ bucket, shard, divisor }: BucketImage, index: number, nowMs: number): Part {
  const limit = bucket.limits[index]!;
  const whole = bucketLimit(limit.limit, limit.hidden);
  const keptLimit = shardLimit(whole, shard, 2 * divisor);
  const movedLimit = shardLimit(whole, shard + divisor, 2 * divisor);
  const stored = getStoredMilli(bucket, index);
  if (limit.window !== undefined) {
    const movedMilli = computeProportion(stored, movedLimit, limit);
    return { movedLimit, keptRemainder: 0, ...toMovedDivision(stored, movedMilli, undefined) };
  }
  const keptRemainder = scaleRemainder(
    getStoredRemainder(bucket, index),
    limit.period,
    keptLimit.period,
  );
  const since = { refilledAtMs: bucket.refilledAtMs, nowMs };
  const divided: DividedLimit = {
    limit,
    keptLimit,
    movedLimit,
    storedMilli: stored,
    creditMilli: computeEarned(bucket, index, nowMs).milli,
    keptCredit: computeCredit(keptLimit, keptRemainder, since),
    movedCredit: computeCredit(movedLimit, 0, since),
  };
  return { movedLimit, keptRemainder, ...computeDivision(divided) };
}

function computeDivision(divided: DividedLimit): Division {
  const { limit, keptLimit, movedLimit, storedMilli: stored, keptCredit, movedCredit } = divided;
  const nowMilli = stored + divided.creditMilli;
  if (nowMilli >= ceilingMilli(limit)) return fullDivision(divided);
  const lowest = Math.min(0, nowMilli) - movedCredit.milli;
  const highest = Math.max(0, nowMilli) - movedCredit.milli;
  const movedMilli = Math.min(
    highest,
    Math.max(lowest, computeBalancedHalf(limit, movedLimit, stored)),
  );
  const most = ceilingMilli(keptLimit) + movedMilli - roundUp(keptCredit);
  const overflows = stored > most || movedMilli + roundUp(movedCredit) > ceilingMilli(movedLimit);
  return overflows ? exactDivision(stored, movedMilli) : toMovedDivision(stored, movedMilli, most);
}

/**
 * The limit is full with any balance from L on. L is not below 0 unless it must be: a clock that is
 * behind would see a debt.
 */
function fullDivision({
  limit,
  movedLimit,
  storedMilli: stored,
  creditMilli,
}: DividedLimit): Division {
  const least = Math.max(ceilingMilli(limit) - creditMilli, Math.min(stored, 0));
  const movedMilli = computeBalancedHalf(limit, movedLimit, least);
  return { form: "full", movedMilli, fromMilli: least, leastMilli: least, mostMilli: undefined };
}

/** One more millitoken would overflow a half, so the balance must be the one that was seen. */
function exactDivision(stored: number, movedMilli: number): Division {
  return {
    form: "exact",
    movedMilli,
    fromMilli: stored,
    leastMilli: undefined,
    mostMilli: undefined,
  };
}

/** Debt has no lower bound: charges that are applied in between stay in the half that they hit. */
function toMovedDivision(
  stored: number,
  movedMilli: number,
  mostMilli: number | undefined,
): Division {
  const leastMilli = movedMilli > 0 ? Math.min(movedMilli, stored) : undefined;
  return { form: "moved", movedMilli, fromMilli: stored, leastMilli, mostMilli };
}

/**
 * What the new half gets of a balance, so that both halves are full at the same moment: each lacks
 * what its rate earns in the same time. With equal halves that is half of the balance. From divisor
 * 16 on, shares of a few tokens differ by a millitoken, and shares of a capacity differ from shares
 * of a rate. A half that is full earlier stops earning, and what was earned before the split must
 * not be lost that way.
 */
function computeBalancedHalf(whole: BucketLimit, half: BucketLimit, balanceMilli: number): number {
  const missing = BigInt(ceilingMilli(whole)) - BigInt(balanceMilli);
  const [part, rate] = [BigInt(half.refillAmountMilli), BigInt(whole.refillAmountMilli)];
  return Number(BigInt(ceilingMilli(half)) - floorDivided(2n * missing * part + rate, 2n * rate));
}

/** What the new half gets of a window: as much as its share is of the whole. */
function computeProportion(milli: number, half: BucketLimit, whole: BucketLimit): number {
  const [part, all] = [half, whole].map(({ capacityMilli }) => BigInt(capacityMilli));
  return all === 0n ? 0 : Number(floorDivided(BigInt(milli) * part!, all!));
}

/**
 * Requires everything but the balances exactly as seen. The divisor is compared with `=`, not `≥`,
 * because shards may be merged.
 */
function requireSeen(
  builder: ExpressionBuilder,
  { bucket, version, creation, divisor }: BucketImage,
): void {
  builder.requireEqual("rf", bucket.refilledAtMs);
  requireVersion(builder, { version, creation });
  builder.requireEqual("shard_count", divisor);
}

function keepPart(
  builder: ExpressionBuilder,
  { bucket, index, part }: { readonly bucket: Bucket; readonly index: number; readonly part: Part },
): void {
  const { name } = bucket.limits[index]!.limit;
  const tokens = limitAttribute(name, "tk");
  if (part.form === "exact") builder.requireEqual(tokens, part.fromMilli);
  else builder.requireWithin(tokens, { least: part.leastMilli, most: part.mostMilli });
  // What is moved belongs to the window that was seen.
  if (bucket.limits[index]!.window !== undefined)
    requireEnd(builder, limitAttribute(name, "we"), getStoredEndMs(bucket, index));
  if (part.form === "full") builder.set(tokens, part.fromMilli - part.movedMilli);
  else builder.add(tokens, -part.movedMilli);
  const remainder = getStoredRemainder(bucket, index);
  if (remainder === 0) return;
  // A refill within the same millisecond that finds the limit full clears the remainder without
  // moving `rf`.
  builder.requireEqual(limitAttribute(name, "rm"), remainder);
  if (part.keptRemainder > 0) builder.set(limitAttribute(name, "rm"), part.keptRemainder);
  else builder.remove(limitAttribute(name, "rm"));
}

/** Requires that a shard has the version that was seen, in the bucket that was seen. */
export function requireVersion(
  builder: ExpressionBuilder,
  { version, creation }: Pick<BucketImage, "version" | "creation">,
): void {
  builder.requireEqual("sv", version);
  builder.requireEqual("cr", creation);
}

function computeCredit(
  limit: BucketLimit,
  remainder: number,
  { refilledAtMs, nowMs }: { readonly refilledAtMs: number; readonly nowMs: number },
): ReturnType<typeof computeEarned> {
  return computeEarned({ limits: [limit], refilledAtMs, balances: [0, remainder, 0] }, 0, nowMs);
}

function floorDivided(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  return dividend % divisor < 0n ? quotient - 1n : quotient;
}
