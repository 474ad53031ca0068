/*
 * The two updates of a bucket, built from its image and the clock, for a batch that takes c in all,
 * needs n of the balance it finds, and lifts it by g before it charges (batch-decision.ts; for a
 * lone acquire n = c and g = 0). Each requires, for each rate:
 *
 *   take               ADD tk −c, tc +c       rf ≥ seen, and n ≤ tk ≤ cp − earned − g if charged
 *   refill and take    SET rf, rm, tk         rf = seen, and what limit-forms.ts says of tk
 *
 * Limits with windows move in either (limit-forms.ts). Takes commute, so processes that share a
 * bucket do not disturb each other until one must refill. The upper bounds are what keeps an idle
 * bucket that overflowed from being credited twice: take from it only if it cannot have overflowed,
 * else refill it first. A change of limits is a refill that also writes parameters. A batch without
 * acquires drops the lower bounds; one that only gives back has none at all. Every write requires
 * `sv = seen`, so no write is ever decided with parameters that are no longer on the item, and no
 * item is ever created by an update. It also requires `cr = seen`: a bucket that was deleted and
 * created again can have the same version, by clocks that differ.
 */
import {
  ceilingMilli,
  computeEarned,
  roundUp,
  getStoredMilli,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { computeWindowEnd, type WindowEnds } from "../../../core/bucket/windows.ts";
import { LimitFold, type CountedCalls } from "./batch-decision.ts";
import { computeExpiry, type Expiry, type Predicted } from "../items/bucket-expiry.ts";
import {
  type BucketImage,
  hasOldMergedIds,
  limitAttribute,
  originAttribute,
  slotAttribute,
  type LimitOrigin,
} from "../items/bucket-item.ts";
import {
  largest,
  moveTokens,
  moveWindow,
  planWindowEnd,
  refillRate,
  type LimitMove,
} from "./limit-forms.ts";
import type { OperationMark } from "./operation-ids.ts";
import {
  addLimit,
  changeKind,
  countUnlimited,
  dropLimit,
  writeParameters,
} from "./parameter-update.ts";
import { MILLI } from "../../../core/amounts.ts";
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
  /** The windows that it leaves open; undefined when no limit has windows. */
  readonly windowEnds: WindowEnds | undefined;
}

/** The update that carries a change out, given the image that it was decided with. */
export function buildUpdate(image: BucketImage, change: BucketChange, nowMs: number): BucketUpdate {
  const builder = new ExpressionBuilder();
  builder.requireEqual("sv", image.version);
  builder.requireEqual("cr", image.creation);
  const giveBack = isGiveBack(change, image);
  const requiresStamp = !giveBack && !needsNoRefill(image, change, nowMs);
  const windowEnds = planWindowEnds(image, change, nowMs);
  if (giveBack) giveTokensBack(builder, image, change, nowMs);
  else if (requiresStamp) refillAndTake(builder, image, change, { nowMs, windowEnds });
  else take(builder, image, change, { nowMs, windowEnds });
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
    windowEnds,
  };
}

/** The windows that are open after the update, by limit. */
function planWindowEnds(
  { bucket }: BucketImage,
  change: BucketChange,
  nowMs: number,
): WindowEnds | undefined {
  let ends: Record<string, number> | undefined;
  change.limits.forEach((wanted, place) => {
    if (wanted.window === undefined) return;
    const fold = getFold(change, wanted);
    const index = indexOfLimit(bucket.limits, wanted, place);
    // One that joins is opened by what charges it.
    const joinedMs = fold.isCharged ? computeWindowEnd(wanted.window, nowMs, 0) : 0;
    const endMs = index < 0 ? joinedMs : predictEndMs({ bucket, index, wanted, fold, nowMs });
    (ends ??= {})[wanted.limit.name] = endMs;
  });
  return ends;
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
  // The reply would show a new balance beside an old end of its window.
  if (limits.some(({ window }) => window !== undefined)) return false;
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

/** When a write is decided, and the windows that it leaves open. */
interface PlannedMoment extends Pick<BucketUpdate, "windowEnds"> {
  readonly nowMs: number;
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
    if (limit.window !== undefined) return true;
    if (needMilli !== undefined && stored < needMilli) return false;
    return (
      !isCharged ||
      stored + roundUp(computeEarned(bucket, index, nowMs)) + riseMilli <= ceilingMilli(limit)
    );
  });
}

function giveTokensBack(
  builder: ExpressionBuilder,
  { bucket }: BucketImage,
  change: BucketChange,
  nowMs: number,
): void {
  change.limits.forEach((wanted, index) => {
    const fold = getFold(change, wanted);
    if (wanted.window === undefined) moveTokens(builder, wanted.limit.name, fold);
    else moveWindow(builder, { bucket, index, wanted, fold, nowMs }, undefined);
  });
}

function take(
  builder: ExpressionBuilder,
  image: BucketImage,
  change: BucketChange,
  { nowMs, windowEnds }: PlannedMoment,
): void {
  const { bucket } = image;
  builder.requireWithin("rf", { least: bucket.refilledAtMs });
  const expiry = renewExpiry(builder, image, change, {
    nowMs,
    windowEnds,
    predict: (limit, index) => getStoredMilli(bucket, index) - getFold(change, limit).netMilli,
  });
  bucket.limits.forEach((limit, index) => {
    const fold = getFold(change, limit);
    if (limit.window !== undefined) {
      moveWindow(builder, { bucket, index, wanted: limit, fold, nowMs }, toCoveredMs(expiry));
      return;
    }
    const { needMilli, netMilli, riseMilli, isCharged } = fold;
    const floor = expiry?.floorsMilli[index];
    const least = largest(needMilli, floor === undefined ? undefined : floor + netMilli);
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
  { nowMs, windowEnds }: PlannedMoment,
): void {
  const { bucket } = image;
  const atMs = Math.max(nowMs, bucket.refilledAtMs);
  builder.requireEqual("rf", bucket.refilledAtMs);
  builder.set("rf", atMs);
  const rewritten = change.limits !== bucket.limits;
  const expiry = renewExpiry(builder, image, change, {
    nowMs: atMs,
    windowEnds,
    predict: (limit, index) =>
      computeRefilledAfter(image, change, indexOfLimit(bucket.limits, limit, index), limit, nowMs),
  });
  bucket.limits.forEach((limit, index) => {
    const fold = getFold(change, limit);
    const at = indexOfLimit(change.limits, limit, index);
    const wanted = change.limits[at];
    if (wanted === undefined) return dropLimit(builder, bucket, index, { fold, nowMs });
    const move = { bucket, index, wanted, fold, nowMs };
    if (limit.window?.kind !== wanted.window?.kind) changeKind(builder, move);
    else if (wanted.window === undefined) refillRate(builder, move, expiry?.floorsMilli[at]);
    else moveWindow(builder, move, toCoveredMs(expiry));
    if (wanted !== limit) writeParameters(builder, limit, wanted);
  });
  if (!rewritten) return;
  builder.set("sv", Math.max(atMs, image.version + 1));
  const origin = originAttribute(change);
  if (origin !== undefined) builder.set("po", origin);
  else if (originAttribute(image) !== undefined) builder.remove("po");
  for (const limit of change.limits)
    if (!bucket.limits.some((other) => other.limit.name === limit.limit.name))
      addLimit(builder, limit, getFold(change, limit), nowMs);
}

function toCoveredMs(expiry: Expiry | undefined): number | undefined {
  return expiry && expiry.ttlSeconds * MILLI;
}

/** The end of the window of one limit after an update. */
function predictEndMs(move: LimitMove): number {
  const { bucket, index, wanted, nowMs } = move;
  const isSameKind = bucket.limits[index]!.window?.kind === wanted.window?.kind;
  return isSameKind ? planWindowEnd(move) : computeWindowEnd(wanted.window!, nowMs, 0);
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
 * back before the item expires. There is none where the item may not expire.
 */
function renewExpiry(
  builder: ExpressionBuilder,
  image: BucketImage,
  change: BucketChange,
  {
    nowMs,
    windowEnds,
    predict,
  }: PlannedMoment & {
    /** The balance of one limit after the write, as far as the image shows it. */
    readonly predict: (limit: BucketLimit, index: number) => number;
  },
): Expiry | undefined {
  const { limits, ttlMultiplier: multiplier } = change;
  const predicted: Predicted = {
    afterMilli: limits.map(predict),
    endsMs: limits.map(({ limit }) => windowEnds?.[limit.name] ?? 0),
  };
  const expiry =
    multiplier === 0 ? undefined : computeExpiry(limits, { nowMs, multiplier, ...predicted });
  if (expiry !== undefined) builder.set("ttl", expiry.ttlSeconds);
  else if (image.expiresAtSeconds !== undefined) builder.remove("ttl");
  return expiry;
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
