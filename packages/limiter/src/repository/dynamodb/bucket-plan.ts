import {
  balanceMilli,
  ceilingMilli,
  fullBucket,
  storedMilli,
  type Bucket,
} from "../../core/bucket.ts";
import { afterRefusal, isUnder, underPolicy } from "../../core/decision.ts";
import { sameLimits, type Limit } from "../../core/limit.ts";
import type { Policy } from "../../core/policy.ts";
import { shardPolicy } from "../../core/shares.ts";
import type { MaybePromise } from "../port.ts";
import { Aliases, absent } from "./aliases.ts";
import { marshalItem, type AttributeMap } from "./attribute-values.ts";
import { decideBatch, type BatchStep } from "./bucket-batch.ts";
import { bucketAttributes, slotAttribute, type BucketImage } from "./bucket-item.ts";
import { keyAttributes, type BucketKey } from "./bucket-key.ts";
import { expiry, updateOf, type BucketChange, type OperationMark } from "./expressions.ts";
import type { OperationIds } from "./operation-ids.ts";
import { boundedTickMs, tickedMs } from "./tick.ts";
import type { OperationHistory } from "./unresolved.ts";

/** What is to be done to a bucket. */
export interface BucketIntent extends BatchStep {
  /** Granted acquires that this adds. */
  readonly grants: number;
  /** The limits to decide with, given what is stored on the bucket. */
  readonly policy: (image: BucketImage | undefined) => MaybePromise<Policy>;
  /** The bucket that a lease took from: what it owes to one that was deleted is owed to nobody. */
  readonly life?: BucketLife | undefined;
  /**
   * Whether a charge is meant for this shard, also when it cannot pay it; otherwise all shards pay
   * it together.
   */
  readonly mayOwe?: boolean | undefined;
  /** Given by a caller that may try again: what has become of it so far. */
  readonly history?: OperationHistory | undefined;
}

/** An intent on its way, and what has become of it so far. */
export interface BucketWork {
  readonly intent: BucketIntent;
  readonly history: OperationHistory;
}

/** Which of the shards that were ever at one key. */
export interface ShardLife {
  readonly creation: string | undefined;
  /**
   * Of the shard, when it was taken from: what goes back belongs to whoever owns that class now.
   */
  readonly divisor: number;
}

/** The same, and when the bucket may have expired: then a charge goes to its successor. */
export interface BucketLife extends ShardLife {
  readonly expiredBySeconds: number | undefined;
}

/**
 * Applied, or refused as of a time; `gone` when there is no bucket to write to, `split` when it
 * concerns several shards.
 */
export type BucketOutcome =
  | { readonly kind: "applied"; readonly life: BucketLife }
  | { readonly kind: "refused"; readonly atMs: number }
  | { readonly kind: "gone" | "split" };

/** A call to send. */
export interface PlannedWrite {
  readonly operation: "UpdateItem" | "PutItem";
  readonly input: object;
  /** The item of a put, which returns nothing. */
  readonly item: AttributeMap | undefined;
  /**
   * The image that the write was decided with, when the reply shows only what has changed of it.
   */
  readonly changed: BucketImage | undefined;
  readonly mark: OperationMark | undefined;
  /**
   * The shard that it is for, which its condition requires: an image that is seen later may be that
   * of one of its halves.
   */
  readonly life: ShardLife;
}

/** What becomes of a member: it is part of the write, or not. */
export type Verdict = "written" | "refused" | "gone" | "split";

/**
 * What to send for a batch, if anything, and what becomes of its members. Fewer verdicts than
 * members: the rest must go with another write.
 */
export interface Plan {
  readonly write: PlannedWrite | undefined;
  readonly verdicts: readonly Verdict[];
  /** Milliseconds until the next tick, when the write fits by the exact time only. */
  readonly tickInMs?: number;
}

/** What a plan is made from. */
export interface PlanRequest {
  readonly key: BucketKey;
  /** In order of arrival. All takes among them are to be decided with `policy`. */
  readonly intents: readonly BucketIntent[];
  readonly policy: Policy;
  readonly image: BucketImage | undefined;
  readonly nowMs: number;
  /** When acquires must have fitted: now, or earlier. */
  readonly asOfMs: number;
  /** What `nowMs` is rounded to, so that processes that share a bucket seldom move its stamp. */
  readonly tickMs: number;
  readonly ids: OperationIds;
  /** A write of this process to the bucket that got no answer. */
  readonly pending: OperationMark | undefined;
  readonly writeUnits: number;
  readonly ttlMultiplier: number;
}

/** Decides what to send for a batch, from the image and the clock alone. */
export function planWrite(request: PlanRequest): Plan {
  const { intents, policy, image, nowMs, asOfMs } = request;
  if (image === undefined) return planCreation(request);
  if (intents[0]!.kind === "adopt") return planAdoption(request, image);
  const present = intents.filter(
    (intent) =>
      isFor(image, intent, nowMs) && !isDivided(image, intent) && !overdraws(image, intent, nowMs),
  );
  const rewrites = present.some(({ kind }) => kind === "take") && !isUnder(image.bucket, policy);
  const bucket = rewrites
    ? underPolicy(image.bucket, policyOn(image, policy), nowMs)
    : image.bucket;
  const { accepted, folds } = decideBatch(bucket, present, asOfMs);
  const verdicts = verdictsOf(intents, {
    present,
    accepted,
    otherwise: (intent) => (isFor(image, intent, nowMs) ? "split" : "gone"),
  });
  const written = present.filter((_, index) => accepted[index]);
  if (written.length === 0) return { write: undefined, verdicts };
  const { limits } = bucket;
  if (rewrites)
    return { write: planUpdate(request, image, { written, folds, limits, nowMs }), verdicts };
  // Whether it is refused was decided by the exact time, so what only fits by that is taken by
  // that.
  const tickMs = tickedMs(nowMs, request.tickMs, limits);
  const isOffTick =
    tickMs !== nowMs && decideBatch(bucket, written, tickMs).accepted.includes(false);
  const write = planUpdate(request, image, {
    written,
    folds,
    limits,
    nowMs: isOffTick ? nowMs : tickMs,
  });
  return isOffTick
    ? { write, verdicts, tickInMs: tickMs + boundedTickMs(request.tickMs, limits) - nowMs }
    : { write, verdicts };
}

/** The limits that a refusal was decided with, written without cutting anything off. */
function planAdoption(request: PlanRequest, image: BucketImage): Plan {
  const { policy, nowMs } = request;
  const left = afterRefusal(image.bucket, policyOn(image, policy), nowMs);
  if (left === undefined || hasSameLimits(image.bucket, left))
    return { write: undefined, verdicts: ["written"] };
  return {
    write: planUpdate(request, image, {
      written: [],
      folds: new Map(),
      limits: left.limits,
      nowMs,
    }),
    verdicts: ["written"],
  };
}

interface DecidedIntents {
  /** Those that a write to this shard can carry. */
  readonly present: readonly BucketIntent[];
  /** What was decided of them, in order; of the last ones perhaps nothing. */
  readonly accepted: readonly boolean[];
  /** What becomes of one that is not among them. */
  readonly otherwise: (intent: BucketIntent) => Verdict;
}

/** Up to the first member that was not decided. */
function verdictsOf(
  intents: readonly BucketIntent[],
  { present, accepted, otherwise }: DecidedIntents,
): readonly Verdict[] {
  const verdicts: Verdict[] = [];
  let decided = 0;
  for (const intent of intents) {
    if (intent !== present[decided]) verdicts.push(otherwise(intent));
    else if (decided === accepted.length) break;
    else verdicts.push(accepted[decided++] === true ? "written" : "refused");
  }
  return verdicts;
}

/**
 * Whether two buckets have the same limits, the hidden ones included. A refusal that changes none
 * of them would be billed for nothing.
 */
function hasSameLimits(left: Bucket, right: Bucket): boolean {
  return [false, true].every((hidden) =>
    sameLimits(limitsOf(left, hidden), limitsOf(right, hidden)),
  );
}

function limitsOf(bucket: Bucket, hidden: boolean): readonly Limit[] {
  return bucket.limits.filter((limit) => limit.hidden === hidden).map(({ limit }) => limit);
}

function planUpdate(
  request: PlanRequest,
  image: BucketImage,
  {
    written,
    folds,
    limits,
    nowMs,
  }: Pick<BucketChange, "folds" | "limits"> & {
    readonly written: readonly BucketIntent[];
    readonly nowMs: number;
  },
): PlannedWrite {
  const { key, policy, ids, pending, writeUnits } = request;
  const mark = ids.next(image.slots, pending);
  const change: BucketChange = {
    limits,
    folds,
    grants: grantsOf(written),
    overridden: policy.source === "override",
    writeUnits,
    mark,
    afterUnresolved: pending !== undefined,
    ttlMultiplier: multiplierOf(request),
  };
  const update = updateOf(image, change, nowMs);
  return {
    operation: "UpdateItem",
    input: { Key: key.marshalled, ...update, ReturnValuesOnConditionCheckFailure: "ALL_OLD" },
    item: undefined,
    changed: update.ReturnValues === "UPDATED_NEW" ? image : undefined,
    mark,
    life: { creation: image.creation, divisor: image.divisor },
  };
}

/**
 * A bucket that does not exist is created already charged; if it turns out to exist, the reply
 * carries it.
 */
function planCreation(request: PlanRequest): Plan {
  const { key, intents, policy, nowMs, ids, pending, writeUnits } = request;
  const bucket = fullBucket(policy.bucketLimits, nowMs);
  // Only shard 0 begins a bucket; the others come from splits, and are gone with it.
  const present = intents.filter(
    (intent) => key.shard === 0 && (intent.kind === "take" || outlived(intent, nowMs)),
  );
  const { accepted, folds } = decideBatch(bucket, present, nowMs);
  const verdicts = verdictsOf(intents, { present, accepted, otherwise: () => "gone" });
  const written = present.filter((_, index) => accepted[index]);
  if (written.length === 0) return { write: undefined, verdicts };
  const charged = chargedBucket(bucket, folds);
  const multiplier = multiplierOf(request);
  const afterMilli = charged.limits.map((_, index) => storedMilli(charged, index));
  const mark = ids.next([], pending);
  const item = marshalItem({
    ...keyAttributes(key),
    ...bucketAttributes(charged),
    sv: nowMs,
    gr: grantsOf(written),
    b_wcu_tc: writeUnits,
    shard_count: 1,
    ...(policy.source === "override" && { po: 1 }),
    ...(mark !== undefined && { [slotAttribute(mark.slot)]: mark.id, cr: mark.id }),
    ...(multiplier > 0 && {
      ttl: expiry(charged.limits, { nowMs, multiplier, afterMilli }).ttlSeconds,
    }),
  });
  const alias = new Aliases();
  const input = {
    Item: item,
    ConditionExpression: absent(alias),
    ...alias.fields(),
    ReturnValuesOnConditionCheckFailure: "ALL_OLD",
  };
  const life = { creation: mark?.id, divisor: 1 };
  return { write: { operation: "PutItem", input, item, changed: undefined, mark, life }, verdicts };
}

/**
 * A full bucket after a batch. What a member gives back to a full limit is cut off, whatever others
 * take afterwards.
 */
function chargedBucket(bucket: Bucket, folds: BucketChange["folds"]): Bucket {
  const balances = bucket.limits.flatMap((limit) => {
    const fold = folds.get(limit.limit.name)!;
    return [fold.after(ceilingMilli(limit), ceilingMilli(limit)).milli, 0, fold.netMilli];
  });
  return { ...bucket, balances };
}

function grantsOf(intents: readonly BucketIntent[]): number {
  return intents.reduce((sum, { grants }) => sum + grants, 0);
}

/**
 * Whether the bucket is the one that an intent is meant for: a lease's, unless it was deleted
 * since.
 */
function isFor({ creation }: BucketImage, intent: BucketIntent, nowMs: number): boolean {
  return intent.life === undefined || intent.life.creation === creation || outlived(intent, nowMs);
}

/**
 * Whether a shard was split since an intent's lease took from it, and something goes back, which is
 * not its alone any more.
 */
function isDivided({ divisor }: BucketImage, { life, costs }: BucketIntent): boolean {
  return (
    life !== undefined && life.divisor !== divisor && Object.values(costs).some((cost) => cost < 0)
  );
}

/**
 * Whether one shard of several cannot pay a charge: while it owed all of it, the others would go on
 * as if nobody did.
 */
function overdraws(
  { bucket, divisor }: BucketImage,
  { kind, costs, mayOwe }: BucketIntent,
  nowMs: number,
): boolean {
  if (divisor === 1 || kind !== "charge" || mayOwe === true) return false;
  return bucket.limits.some(({ limit }, index) => {
    const cost = costs[limit.name] ?? 0;
    return cost > 0 && balanceMilli(bucket, index, nowMs) < cost;
  });
}

function policyOn({ shard, divisor }: BucketImage, policy: Policy): Policy {
  return shardPolicy(policy, shard, divisor);
}

/**
 * Whether a charge goes to whatever bucket there is: the one that its lease took from may have
 * expired, full.
 */
function outlived({ kind, life }: BucketIntent, nowMs: number): boolean {
  return (
    kind === "charge" &&
    life?.expiredBySeconds !== undefined &&
    life.expiredBySeconds * 1000 <= nowMs
  );
}

/**
 * Buckets with limits of their own do not expire: their balance is somebody's, not a default's. Nor
 * do shards: one would come back whole.
 */
function multiplierOf({ policy, image, ttlMultiplier }: PlanRequest): number {
  return policy.source === "entity" || (image !== undefined && image.divisor > 1)
    ? 0
    : ttlMultiplier;
}
