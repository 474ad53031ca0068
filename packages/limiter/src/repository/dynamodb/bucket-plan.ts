import type { Amounts } from "../../core/amounts.ts";
import { apply, fullBucket, storedMilli, type Bucket } from "../../core/bucket.ts";
import { afterRefusal, costsMilli, fits, isUnder, underPolicy } from "../../core/decision.ts";
import { sameLimits, type Limit } from "../../core/limit.ts";
import type { Policy } from "../../core/policy.ts";
import type { MaybePromise } from "../port.ts";
import { Aliases, absent } from "./aliases.ts";
import { marshalItem, type AttributeMap } from "./attribute-values.ts";
import { bucketAttributes, slotAttribute, type BucketImage } from "./bucket-item.ts";
import { keyAttributes, type BucketKey } from "./bucket-key.ts";
import { expiry, updateOf, type BucketChange, type OperationMark } from "./expressions.ts";
import type { OperationIds } from "./operation-ids.ts";
import { tickedMs } from "./tick.ts";
import type { OperationHistory } from "./unresolved.ts";

/** What is to be done to a bucket. */
export interface BucketIntent {
  /**
   * `take` refuses what does not fit; `charge` may go into debt; `give` puts back, and its amounts are negative; `adopt` takes nothing, but
   * writes the limits that a refusal was decided with.
   */
  readonly kind: "take" | "charge" | "give" | "adopt";
  readonly amounts: Amounts;
  /** Granted acquires that this adds. */
  readonly grants: number;
  /** The limits to decide with, given what is stored on the bucket. */
  readonly policy: (image: BucketImage | undefined) => MaybePromise<Policy>;
  /** The bucket that a lease took from: what it owes to one that was deleted is owed to nobody. */
  readonly life?: BucketLife | undefined;
  /** Given by a caller that may try again: what has become of it so far. */
  readonly history?: OperationHistory | undefined;
}

/** Which of the buckets that were ever at one key, and when it may have expired: then a charge goes to its successor. */
export interface BucketLife {
  readonly creation: string | undefined;
  readonly expiredBySeconds: number | undefined;
}

/** Applied, or refused as of a time; `gone` when there is no bucket to write to. */
export type BucketOutcome = { readonly kind: "applied" } | { readonly kind: "refused"; readonly atMs: number } | { readonly kind: "gone" };

/** A call to send, and what it means when it is applied. */
export interface SentPlan {
  readonly kind: "send";
  readonly operation: "UpdateItem" | "PutItem";
  readonly input: object;
  /** The item of a put, which returns nothing. */
  readonly item: AttributeMap | undefined;
  readonly mark: OperationMark | undefined;
  readonly outcome: BucketOutcome;
}

export type Plan = SentPlan | { readonly kind: "nothing"; readonly outcome: BucketOutcome };

/** What a plan is made from. */
export interface PlanRequest {
  readonly key: BucketKey;
  readonly intent: BucketIntent;
  readonly policy: Policy;
  readonly image: BucketImage | undefined;
  readonly nowMs: number;
  /** What `nowMs` is rounded to, so that processes that share a bucket seldom move its stamp. */
  readonly tickMs: number;
  readonly ids: OperationIds;
  /** A write of this process to the bucket that got no answer. */
  readonly pending: OperationMark | undefined;
  readonly writeUnits: number;
  readonly ttlMultiplier: number;
}

/** Decides what to send for an intent, from the image and the clock alone. */
export function planWrite(request: PlanRequest): Plan {
  const { intent, policy, image, nowMs } = request;
  if (image === undefined) return planCreation(request);
  if (intent.kind === "adopt") {
    const left = afterRefusal(image.bucket, policy, nowMs);
    if (left === undefined || hasSameLimits(image.bucket, left)) return { kind: "nothing", outcome: { kind: "applied" } };
    return sendUpdate(request, image, left.limits);
  }
  if (intent.life !== undefined && intent.life.creation !== image.creation && !outlived(request))
    return { kind: "nothing", outcome: { kind: "gone" } };
  if (intent.kind !== "take") return sendUpdate(ticked(request, image), image, image.bucket.limits);
  const bucket = underPolicy(image.bucket, policy, nowMs);
  if (!holds(request, bucket)) return { kind: "nothing", outcome: { kind: "refused", atMs: nowMs } };
  if (!isUnder(image.bucket, policy)) return sendUpdate(request, image, bucket.limits);
  // Whether it is refused was decided by the exact time, so what only fits by that is taken by that.
  const rounded = ticked(request, image);
  return sendUpdate(holds(rounded, bucket) ? rounded : request, image, image.bucket.limits);
}

function ticked(request: PlanRequest, { bucket }: BucketImage): PlanRequest {
  const { nowMs, tickMs } = request;
  return tickMs === 1 ? request : { ...request, nowMs: tickedMs(nowMs, tickMs, bucket.limits) };
}

/** Whether two buckets have the same limits, the hidden ones included. A refusal that changes none of them would be billed for nothing. */
function hasSameLimits(left: Bucket, right: Bucket): boolean {
  return [false, true].every((hidden) => sameLimits(limitsOf(left, hidden), limitsOf(right, hidden)));
}

function limitsOf(bucket: Bucket, hidden: boolean): readonly Limit[] {
  return bucket.limits.filter((limit) => limit.hidden === hidden).map(({ limit }) => limit);
}

function holds({ key, intent, policy, nowMs }: PlanRequest, bucket: Bucket): boolean {
  return fits([{ entityId: key.entityId, resource: key.resource, policy, bucket, amounts: intent.amounts }], nowMs);
}

function sendUpdate(request: PlanRequest, image: BucketImage, limits: BucketChange["limits"]): SentPlan {
  const { key, intent, policy, nowMs, ids, pending, writeUnits } = request;
  const mark = ids.next(image.slots, pending);
  const change: BucketChange = {
    limits,
    amounts: intent.amounts,
    grants: intent.grants,
    strict: intent.kind === "take",
    overridden: policy.source === "override",
    writeUnits,
    mark,
    afterUnresolved: pending !== undefined,
    ttlMultiplier: multiplierOf(request),
  };
  const returned = { ReturnValues: "ALL_NEW", ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
  return {
    kind: "send",
    operation: "UpdateItem",
    input: { Key: marshalItem(key.primary), ...updateOf(image, change, nowMs), ...returned },
    item: undefined,
    mark,
    outcome: { kind: "applied" },
  };
}

/** A bucket that does not exist is created already charged; if it turns out to exist, the reply carries it. */
function planCreation(request: PlanRequest): Plan {
  const { key, intent, policy, nowMs, ids, pending, writeUnits } = request;
  if (intent.kind === "give" || (intent.kind === "charge" && !outlived(request))) return { kind: "nothing", outcome: { kind: "gone" } };
  const full = fullBucket(policy.bucketLimits, nowMs);
  if (intent.kind === "take" && !holds(request, full)) return { kind: "nothing", outcome: { kind: "refused", atMs: nowMs } };
  const bucket = apply(full, costsMilli(full, intent.amounts), nowMs);
  const multiplier = multiplierOf(request);
  const afterMilli = bucket.limits.map((_, index) => storedMilli(bucket, index));
  const mark = ids.next([], pending);
  const item = marshalItem({
    ...keyAttributes(key),
    ...bucketAttributes(bucket),
    sv: nowMs,
    gr: intent.grants,
    b_wcu_tc: writeUnits,
    shard_count: 1,
    ...(policy.source === "override" && { po: 1 }),
    ...(mark !== undefined && { [slotAttribute(mark.slot)]: mark.id, cr: mark.id }),
    ...(multiplier > 0 && { ttl: expiry(bucket.limits, { nowMs, multiplier, afterMilli }).ttlSeconds }),
  });
  const alias = new Aliases();
  const input = { Item: item, ConditionExpression: absent(alias), ...alias.fields(), ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
  return { kind: "send", operation: "PutItem", input, item, mark, outcome: { kind: "applied" } };
}

/** Whether a charge goes to whatever bucket there is: the one that its lease took from may have expired, full. */
function outlived({ intent, nowMs }: PlanRequest): boolean {
  const expiredBySeconds = intent.life?.expiredBySeconds;
  return intent.kind === "charge" && expiredBySeconds !== undefined && expiredBySeconds * 1000 <= nowMs;
}

/** Buckets with limits of their own do not expire: their balance is somebody's, not a default's. */
function multiplierOf({ policy, ttlMultiplier }: PlanRequest): number {
  return policy.source === "entity" ? 0 : ttlMultiplier;
}
