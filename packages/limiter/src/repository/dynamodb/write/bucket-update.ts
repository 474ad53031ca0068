/*
 * The two updates of a bucket, built from its image and the clock, for a batch that takes c in all,
 * needs n of the balance it finds, and lifts it by g before it charges (batch-decision.ts; for a
 * lone acquire n = c and g = 0). Each requires, for each limit:
 *
 *   take               ADD tk −c, tc +c       rf ≥ seen, and n ≤ tk ≤ cp − earned − g if charged
 *   refill and take    SET rf, rm
 *     not cut off      ADD tk r−c             rf = seen, and n − r ≤ tk ≤ cp − r − g
 *     credit cut off   SET tk = cp less c     rf = seen, and tk ≥ cp − earned
 *     give-back cut    SET tk                 rf = seen, and tk = seen
 *
 * Takes commute, so processes that share a bucket do not disturb each other until one must refill.
 * The upper bounds are what keeps an idle bucket that overflowed from being credited twice: take
 * from it only if it cannot have overflowed, else refill it first. A change of limits is a refill
 * that also writes parameters. A batch without acquires drops the lower bounds; one that only gives
 * back has none at all. Every write requires `sv = seen`, so no write is ever decided with
 * parameters that are no longer on the item, and no item is ever created by an update. It also
 * requires `cr = seen`: a bucket that was deleted and created again can have the same version, by
 * clocks that differ.
 */
import {
  ceilingMilli,
  computeEarned,
  roundUp,
  scaleRemainder,
  getStoredMilli,
  getStoredRemainder,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { LimitFold, type CountedCalls } from "./batch-decision.ts";
import {
  type BucketImage,
  expiry,
  hasOldMergedIds,
  limitAttribute,
  originAttribute,
  slotAttribute,
  type LimitOrigin,
} from "../items/bucket-item.ts";
import type { OperationMark } from "./operation-ids.ts";
import { addLimit, countUnlimited, dropLimit, writeParameters } from "./parameter-update.ts";
import { ExpressionBuilder } from "../table/update-expression.ts";

/** A change to a bucket. */
export interface BucketChange extends CountedCalls, LimitOrigin {
  /** What the batch does to each limit, by name. */
  readonly folds: ReadonlyMap<string, LimitFold>;
  /**
   * The limits that the item shall have, hidden ones included; the image's own list when nothing
   * changes.
   */
  readonly limits: readonly BucketLimit[];
  /** Write units since this writer's last successful write, this one included. */
  readonly writeUnits: number;
  /** Undefined when the writer has no slot on this item; the write must then not be repeated. */
  readonly mark: OperationMark | undefined;
  /** Fill times that an idle bucket is kept for; 0 when buckets never expire. */
  readonly ttlMultiplier: number;
}

/** An update. */
export interface BucketUpdate {
  readonly expression: ExpressionBuilder;
  /** How much of the item its reply must show. */
  readonly returns: "ALL_NEW" | "UPDATED_NEW";
  /** Whether it requires the stamp to be the seen one, which moves with every refill. */
  readonly requiresStamp: boolean;
}

/** The update that carries a change out, given the image that it was decided with. */
export function buildUpdate(image: BucketImage, change: BucketChange, nowMs: number): BucketUpdate {
  const builder = new ExpressionBuilder();
  builder.requireEqual("sv", image.version);
  builder.requireEqual("cr", image.creation);
  const giveBack = isGiveBack(change, image);
  const requiresStamp = !giveBack && !needsNoRefill(image, change, nowMs);
  if (giveBack) addTokens(builder, change);
  else if (requiresStamp) refillAndTake(builder, image, change, nowMs);
  else take(builder, image, change, nowMs);
  builder.add("b_wcu_tc", change.writeUnits);
  builder.add("gr", change.requests);
  builder.add("gc", change.cascadedRequests);
  if (change.undone !== undefined) countUndone(builder, image, change.undone);
  for (const [name, fold] of change.folds) {
    if (fold.countedMilli !== 0) countUnlimited(builder, name, fold);
    if (fold.cascadedMilli !== 0) builder.add(limitAttribute(name, "cc"), fold.cascadedMilli);
  }
  if (hasOldMergedIds(image, nowMs)) builder.remove("mi");
  markOperation(builder, change.mark);
  // A reply must show what it is about: by an operation id, or by the key that the whole item has.
  const isMarked = change.mark !== undefined;
  return {
    expression: builder,
    returns: isMarked && writesAllBalances(builder, image, change) ? "UPDATED_NEW" : "ALL_NEW",
    requiresStamp,
  };
}

/**
 * Whether the image is known after the update from what it wrote alone: every balance, and the
 * stamp that it required as seen. All else belongs to the version, which it required too, but for
 * the slots of other writers (ADR 010).
 */
function writesAllBalances(
  builder: ExpressionBuilder,
  { bucket }: BucketImage,
  { limits }: BucketChange,
): boolean {
  if (limits !== bucket.limits || !builder.changes("rf") || !builder.changes("ttl")) return false;
  return limits.every(
    ({ limit: { name } }) =>
      builder.changes(limitAttribute(name, "tk")) && builder.changes(limitAttribute(name, "tc")),
  );
}

/** Statements can only add to what exists, so the first such write begins the count. */
function countUndone(builder: ExpressionBuilder, image: BucketImage, undone: number): void {
  if (image.undone !== undefined) return builder.add("ud", undone);
  builder.requireMissing("ud");
  builder.set("ud", undone);
}

function isGiveBack({ folds, limits }: BucketChange, { bucket }: BucketImage): boolean {
  if (limits !== bucket.limits) return false;
  for (const { needMilli, isCharged } of folds.values())
    if (needMilli !== undefined || isCharged) return false;
  return true;
}

/**
 * Whether the stored balance suffices: nothing must be refilled first, and no parameters change.
 */
function needsNoRefill(image: BucketImage, change: BucketChange, nowMs: number): boolean {
  const { bucket } = image;
  if (change.limits !== bucket.limits) return false;
  return bucket.limits.every((limit, index) => {
    const { needMilli, riseMilli, isCharged } = getFold(change, limit);
    const stored = getStoredMilli(bucket, index);
    if (needMilli !== undefined && stored < needMilli) return false;
    return (
      !isCharged ||
      stored + roundUp(computeEarned(bucket, index, nowMs)) + riseMilli <= ceilingMilli(limit)
    );
  });
}

function addTokens(builder: ExpressionBuilder, change: BucketChange): void {
  for (const limit of change.limits) moveTokens(builder, limit.limit.name, getFold(change, limit));
}

function take(
  builder: ExpressionBuilder,
  image: BucketImage,
  change: BucketChange,
  nowMs: number,
): void {
  const { bucket } = image;
  builder.requireWithin("rf", { least: bucket.refilledAtMs });
  const after = bucket.limits.map(
    (limit, index) => getStoredMilli(bucket, index) - getFold(change, limit).netMilli,
  );
  const floors = renewExpiry(builder, image, change, { nowMs, afterMilli: after });
  bucket.limits.forEach((limit, index) => {
    const fold = getFold(change, limit);
    const { needMilli, netMilli, riseMilli, isCharged } = fold;
    const least = largest(
      needMilli,
      floors?.[index] === undefined ? undefined : floors[index] + netMilli,
    );
    const most = isCharged
      ? ceilingMilli(limit) - roundUp(computeEarned(bucket, index, nowMs)) - riseMilli
      : undefined;
    builder.requireWithin(limitAttribute(limit.limit.name, "tk"), { least, most });
    moveTokens(builder, limit.limit.name, fold);
  });
}

function refillAndTake(
  builder: ExpressionBuilder,
  image: BucketImage,
  change: BucketChange,
  nowMs: number,
): void {
  const { bucket } = image;
  const atMs = Math.max(nowMs, bucket.refilledAtMs);
  builder.requireEqual("rf", bucket.refilledAtMs);
  builder.set("rf", atMs);
  const rewritten = change.limits !== bucket.limits;
  const floors = renewExpiry(builder, image, change, {
    nowMs: atMs,
    afterMilli: change.limits.map((limit, index) =>
      computeRefilledAfter(image, change, indexOfLimit(bucket.limits, limit, index), limit, nowMs),
    ),
  });
  bucket.limits.forEach((limit, index) => {
    const wanted = indexOfLimit(change.limits, limit, index);
    if (wanted < 0)
      dropLimit(builder, image.bucket, index, { fold: getFold(change, limit), nowMs });
    else
      refillLimit(builder, image, index, {
        change,
        wanted: change.limits[wanted]!,
        floorMilli: floors?.[wanted],
        nowMs,
      });
  });
  if (!rewritten) return;
  builder.set("sv", Math.max(atMs, image.version + 1));
  const origin = originAttribute(change);
  if (origin !== undefined) builder.set("po", origin);
  else if (originAttribute(image) !== undefined) builder.remove("po");
  for (const limit of change.limits)
    if (!bucket.limits.some((other) => other.limit.name === limit.limit.name))
      addLimit(builder, limit, getFold(change, limit));
}

interface LimitRefill {
  readonly change: BucketChange;
  readonly wanted: BucketLimit;
  readonly floorMilli: number | undefined;
  readonly nowMs: number;
}

function refillLimit(
  builder: ExpressionBuilder,
  { bucket }: BucketImage,
  index: number,
  { change, wanted, floorMilli, nowMs }: LimitRefill,
): void {
  const limit = bucket.limits[index]!;
  const { name } = limit.limit;
  const tokens = limitAttribute(name, "tk");
  const stored = getStoredMilli(bucket, index);
  const fold = getFold(change, wanted);
  const { needMilli, netMilli } = fold;
  const credit = computeEarned(bucket, index, nowMs);
  const remainder = scaleRemainder(credit.remainder, limit.period, wanted.period);
  // When parameters change, what was earned so far was earned under the old ceiling and is cut off
  // at the new one.
  const ceiling = Math.min(ceilingMilli(limit), ceilingMilli(wanted));
  const rise = fold.isCharged ? fold.riseMilli : 0;
  if (stored + credit.milli >= ceiling) {
    // The limit is full, whatever its balance has become meanwhile.
    builder.requireWithin(tokens, {
      least: Math.max(ceiling - credit.milli, Number.MIN_SAFE_INTEGER),
    });
    builder.set(tokens, fold.computeBalanceAfter(ceiling, ceilingMilli(wanted)).milli);
    writeRemainder(builder, bucket, index, 0);
  } else if (stored + roundUp(credit) + rise > ceiling) {
    // What a member gives back is cut off before another takes: how much of it depends on the
    // balance, so it must be the seen one.
    const { milli, wasFull } = fold.computeBalanceAfter(
      stored + credit.milli,
      ceilingMilli(wanted),
    );
    builder.requireEqual(tokens, stored);
    builder.set(tokens, milli);
    writeRemainder(builder, bucket, index, wasFull ? 0 : remainder);
  } else {
    const needed = needMilli === undefined ? undefined : needMilli - credit.milli;
    const covered = floorMilli === undefined ? undefined : floorMilli + netMilli - credit.milli;
    builder.requireWithin(tokens, {
      least: largest(needed, covered),
      most: ceiling - roundUp(credit) - rise,
    });
    builder.add(tokens, credit.milli - netMilli);
    writeRemainder(builder, bucket, index, remainder);
  }
  builder.add(limitAttribute(name, "tc"), netMilli + fold.countedMilli);
  if (wanted !== limit) writeParameters(builder, limit, wanted);
}

function writeRemainder(
  builder: ExpressionBuilder,
  bucket: BucketImage["bucket"],
  index: number,
  remainder: number,
): void {
  const attribute = limitAttribute(bucket.limits[index]!.limit.name, "rm");
  if (remainder > 0) builder.set(attribute, remainder);
  else if (getStoredRemainder(bucket, index) > 0) builder.remove(attribute);
}

function moveTokens(builder: ExpressionBuilder, name: string, fold: LimitFold): void {
  builder.add(limitAttribute(name, "tk"), -fold.netMilli);
  builder.add(limitAttribute(name, "tc"), fold.netMilli + fold.countedMilli);
}

/** The balance that the image predicts for one limit after a refill and a take. */
function computeRefilledAfter(
  { bucket }: BucketImage,
  change: BucketChange,
  index: number,
  limit: BucketLimit,
  nowMs: number,
): number {
  const refilled =
    index < 0
      ? ceilingMilli(limit)
      : getStoredMilli(bucket, index) + computeEarned(bucket, index, nowMs).milli;
  const start = Math.min(ceilingMilli(limit), refilled);
  const fold = getFold(change, limit);
  // The store adds up debts beyond the safe range, where a fold ends.
  return Math.min(
    start - fold.netMilli,
    fold.computeBalanceAfter(start, ceilingMilli(limit)).milli,
  );
}

/**
 * Sets `ttl`; returns what each limit must still hold after the write, so that its debt is earned
 * back before the item expires.
 */
function renewExpiry(
  builder: ExpressionBuilder,
  image: BucketImage,
  change: BucketChange,
  { nowMs, afterMilli }: { readonly nowMs: number; readonly afterMilli: readonly number[] },
): readonly number[] | undefined {
  if (change.ttlMultiplier === 0) {
    if (image.expiresAtSeconds !== undefined) builder.remove("ttl");
    return undefined;
  }
  const { ttlSeconds, floorsMilli } = expiry(change.limits, {
    nowMs,
    multiplier: change.ttlMultiplier,
    afterMilli,
  });
  builder.set("ttl", ttlSeconds);
  return floorsMilli;
}

/**
 * Writes the operation id where the slot still holds what the image shows, or an older id of the
 * same writer. The first attempt requires it too: a request that was given up may still arrive, and
 * must not act after a later one.
 */
export function markOperation(builder: ExpressionBuilder, mark: OperationMark | undefined): void {
  if (mark === undefined) return;
  const slot = slotAttribute(mark.slot);
  const prefix = `${mark.writer}.`;
  // A slot that is taken over must be as seen, because the id that it held is kept.
  const isOwn = mark.seenId?.startsWith(prefix) === true;
  if (isOwn && !mark.afterUnanswered) builder.requirePrefixAndLess(slot, prefix, mark.id);
  else if (mark.seenId === undefined) builder.requireMissing(slot);
  else builder.requireEqual(slot, mark.seenId);
  builder.set(slot, mark.id);
}

/** Where a list has the limit of this name, which is at the same place in most; -1 for nowhere. */
function indexOfLimit(
  limits: readonly BucketLimit[],
  { limit: { name } }: BucketLimit,
  index: number,
): number {
  return limits[index]?.limit.name === name
    ? index
    : limits.findIndex(({ limit }) => limit.name === name);
}

function getFold({ folds }: BucketChange, { limit }: BucketLimit): LimitFold {
  return folds.get(limit.name) ?? UNTOUCHED;
}

const UNTOUCHED = new LimitFold();

function largest(left: number | undefined, right: number | undefined): number | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return Math.max(left, right);
}
