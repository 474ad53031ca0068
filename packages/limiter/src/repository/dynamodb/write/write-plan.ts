import {
  balanceMilli,
  crossesEnd,
  fullBucket,
  listWindowEnds,
  type Bucket,
} from "../../../core/bucket/bucket.ts";
import { afterRefusal, hasPolicyLimits, bringUnderPolicy } from "../../../core/bucket/decision.ts";
import { countAmounts } from "../../../core/bucket/counted-amounts.ts";
import { computeLeaves, shareLeaves } from "../../../core/bucket/leave.ts";
import { sameLimits, type Limit } from "../../../core/limit.ts";
import { sourceOfLimit, type Policy } from "../../../core/bucket/policy.ts";
import { shardPolicy } from "../../../core/bucket/shares.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import type { Conditional } from "../table/connection.ts";
import type { WriteOutput } from "../table/shared-requests.ts";
import { ItemUpdate, type ItemWrite } from "../table/update-expression.ts";
import { decideBatch, countCalls, UNDER_POLICY, type BatchStep } from "./batch-decision.ts";
import { buildPut } from "./bucket-creation.ts";
import {
  buildChangedImage,
  parseBucketItem,
  withoutOldMergedIds,
  type BucketImage,
} from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import { buildUpdate, type BucketChange } from "./bucket-update.ts";
import type { OperationMark } from "./operation-ids.ts";
import { boundTickMs, roundToTick } from "./tick.ts";
import type { RequiredState, ShardIncarnation } from "./unanswered-writes.ts";
import type { WriteIntent, WriteOutcome } from "./write-intent.ts";

/** A call to send. */
export interface PlannedWrite {
  readonly request: ItemWrite;
  /** The item of a put, which returns nothing. */
  readonly item: AttributeMap | undefined;
  /**
   * The image that the write was decided with, when the reply shows only what has changed of it.
   */
  readonly changed: BucketImage | undefined;
  readonly mark: OperationMark | undefined;
  /**
   * The shard that it is for, which its condition requires: an image that is seen later may be that
   * of one of its halves. Its windows are those of the plan until the answer shows them: a plan's
   * are never later than those that it charged, so what goes back to them is never credited twice.
   */
  incarnation: ShardIncarnation;
  /** What it requires beside its slot; undefined when it requires that there is no item. */
  readonly requires: RequiredState | undefined;
}

/** The shard as the reply to a write shows it. */
export function imageAfter(
  reply: Conditional<WriteOutput>,
  write: PlannedWrite,
  known: BucketImage | undefined,
): BucketImage | undefined {
  const item = reply.applied ? (reply.output.Attributes ?? write.item) : reply.item;
  if (item === undefined) return undefined;
  return reply.applied && write.changed !== undefined
    ? buildChangedImage(write.changed, item, write.mark)
    : parseBucketItem(item, known);
}

/** What becomes of a member: it is part of the write, or not. */
type MemberVerdict = "written" | "refused" | "gone" | "split";

/**
 * What to send for a batch, if anything, and what becomes of its members. When there are fewer
 * verdicts than members, the rest must go with another write.
 */
export interface Plan {
  readonly write: PlannedWrite | undefined;
  readonly verdicts: readonly MemberVerdict[];
  /** Milliseconds until the next tick, when the write fits by the exact time only. */
  readonly tickInMs?: number;
}

/** What a plan is made from. */
export interface PlanRequest {
  readonly key: BucketKey;
  /** In order of arrival. All takes and charges are to be decided with `policy`. */
  readonly intents: readonly WriteIntent[];
  readonly policy: Policy;
  readonly image: BucketImage | undefined;
  readonly nowMs: number;
  /** When acquires must have fitted: now, or earlier. */
  readonly asOfMs: number;
  /** What `nowMs` is rounded to, so that processes that share a bucket seldom move its stamp. */
  readonly tickMs: number;
  readonly outcomes: WriteMarker;
  readonly writeUnits: number;
  readonly ttlMultiplier: number;
}

/** Marks writes, so that an image shows whether they were applied; see write-outcomes.ts. */
export interface WriteMarker {
  mark(slots: BucketImage["slots"], nowMs: number): OperationMark | undefined;
}

/** What a write decides by: an intent, and the policy that was chosen for it. */
interface ChosenIntent {
  readonly intent: WriteIntent;
  readonly policy: Policy | undefined;
}

/**
 * How many of these intents, from the first on, one write can carry: up to the first acquire that
 * is to be decided with other limits. A call that brought limits along goes alone, and so does a
 * write of limits after a refusal.
 */
export function countCarried(open: readonly ChosenIntent[]): number {
  if (open.length < 2 || goesAlone(open[0]!)) return Math.min(1, open.length);
  const isChosen = ({ intent }: ChosenIntent): boolean => UNDER_POLICY.has(intent.kind);
  const first = open.find(isChosen)?.policy;
  const end = open.findIndex(
    (each) => goesAlone(each) || (isChosen(each) && !isSamePolicy(each.policy!, first!)),
  );
  return end < 0 ? open.length : end;
}

function goesAlone({ intent: { kind }, policy }: ChosenIntent): boolean {
  return kind === "applyLimits" || (UNDER_POLICY.has(kind) && policy!.source === "override");
}

function isSamePolicy(left: Policy, right: Policy): boolean {
  if (left === right) return true;
  const isSameLevel = ({ name }: Limit): boolean =>
    sourceOfLimit(left, name) === sourceOfLimit(right, name);
  return sameLimits(left.limits, right.limits) && left.limits.every(isSameLevel);
}

/** Decides what to send for a batch, from the image and the clock alone. */
export function planWrite(request: PlanRequest): Plan {
  const { intents, policy, image, nowMs } = request;
  if (image === undefined) return planCreation(request);
  if (intents[0]!.kind === "applyLimits") return planLimitsOnly(request, image);
  const present = filterList(
    intents,
    (intent) =>
      isFor(image, intent, nowMs) && !isDivided(image, intent) && !overdraws(request, intent),
  );
  const rewrites =
    !hasPolicyLimits(image.bucket, policy) && present.some(({ kind }) => UNDER_POLICY.has(kind));
  const bucket = rewrites
    ? bringUnderPolicy(image.bucket, policyOn(image, policy), nowMs)
    : image.bucket;
  // No decision reaches back over the end of a window.
  const asOfMs = crossesEnd(bucket, request.asOfMs, nowMs) ? nowMs : request.asOfMs;
  const { accepted, folds } = decideBatch(bucket, buildSteps(present, policy, image), asOfMs);
  const verdicts = listVerdicts(intents, {
    present,
    accepted,
    otherwise: (intent) => (isFor(image, intent, nowMs) ? "split" : "gone"),
  });
  const written = filterList(present, (_, index) => accepted[index] === true);
  if (written.length === 0) return { write: undefined, verdicts };
  const { limits } = bucket;
  if (rewrites)
    return { write: planUpdate(request, image, { written, folds, limits, nowMs }), verdicts };
  // Refusals were decided by the exact time, so what fits by the exact time only is also taken by
  // it.
  const roundedMs = request.tickMs === 1 ? nowMs : roundToTick(nowMs, request.tickMs, limits);
  const tickMs = crossesEnd(bucket, roundedMs, nowMs) ? nowMs : roundedMs;
  const isOffTick =
    tickMs !== nowMs &&
    decideBatch(bucket, buildSteps(written, policy, image), tickMs).accepted.includes(false);
  const write = planUpdate(request, image, {
    written,
    folds,
    limits,
    nowMs: isOffTick ? nowMs : tickMs,
  });
  return isOffTick
    ? { write, verdicts, tickInMs: tickMs + boundTickMs(request.tickMs, limits) - nowMs }
    : { write, verdicts };
}

/**
 * The outcome of a member that was applied to `incarnation`, or to the shard that the image shows.
 */
export function buildAppliedOutcome(
  incarnation: ShardIncarnation | undefined,
  image: BucketImage | undefined,
  policy: Policy,
): WriteOutcome {
  const { creation, divisor = 1, splitAtMs } = incarnation ?? image ?? {};
  const expiredBySeconds = image?.expiresAtSeconds;
  const windowEnds = incarnation?.windowEnds;
  return {
    kind: "applied",
    incarnation: { creation, divisor, splitAtMs, windowEnds, expiredBySeconds },
    policy,
    image,
  };
}

/** The shard that an image shows. */
export function toIncarnation({
  bucket,
  creation,
  divisor,
  splitAtMs,
}: BucketImage): ShardIncarnation {
  return { creation, divisor, splitAtMs, windowEnds: listWindowEnds(bucket) };
}

/** The limits that a refusal was decided with, written without cutting anything off. */
function planLimitsOnly(request: PlanRequest, image: BucketImage): Plan {
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
  /** The intents that a write to this shard can carry. */
  readonly present: readonly WriteIntent[];
  /** The decisions on them, in order; the last ones may be undecided. */
  readonly accepted: readonly boolean[];
  /** The verdict on an intent that is not among them. */
  readonly otherwise: (intent: WriteIntent) => MemberVerdict;
}

/**
 * What intents are on one shard, under the policy that they are decided with. The list itself when
 * none of them leaves anything and no limit counts another name, as usual.
 */
function buildSteps(
  intents: readonly WriteIntent[],
  policy: Policy,
  { shard, divisor = 1 }: Pick<BucketImage, "shard"> & Partial<Pick<BucketImage, "divisor">>,
): readonly BatchStep[] {
  if (policy.counts === undefined && intents.every(({ leave }) => leave === undefined))
    return intents;
  return intents.map((intent) => {
    if (!UNDER_POLICY.has(intent.kind)) return intent;
    const leaves = computeLeaves(policy, intent.leave);
    return {
      ...intent,
      costs: countAmounts(policy, intent.costs),
      leaves: leaves && shareLeaves(leaves, { shard, divisor }),
    };
  });
}

/** The verdicts up to the first member that was not decided. */
function listVerdicts(
  intents: readonly WriteIntent[],
  { present, accepted, otherwise }: DecidedIntents,
): readonly MemberVerdict[] {
  const verdicts: MemberVerdict[] = [];
  let decided = 0;
  for (const intent of intents) {
    if (intent !== present[decided]) verdicts.push(otherwise(intent));
    else if (decided === accepted.length) break;
    else verdicts.push(accepted[decided++] === true ? "written" : "refused");
  }
  return verdicts;
}

/** The list itself when all of it is wanted, as it usually is. */
function filterList<Item>(
  list: readonly Item[],
  isWanted: (item: Item, index: number) => boolean,
): readonly Item[] {
  return list.every(isWanted) ? list : list.filter(isWanted);
}

/**
 * Whether two buckets have the same limits, the hidden ones included. A refusal that changes none
 * of them would be billed for nothing.
 */
function hasSameLimits(left: Bucket, right: Bucket): boolean {
  return [false, true].every((hidden) =>
    sameLimits(listLimits(left, hidden), listLimits(right, hidden)),
  );
}

function listLimits(bucket: Bucket, hidden: boolean): readonly Limit[] {
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
    readonly written: readonly WriteIntent[];
    readonly nowMs: number;
  },
): PlannedWrite {
  const { key, policy, outcomes, writeUnits } = request;
  const mark = outcomes.mark(image.slots, request.nowMs);
  const change: BucketChange = {
    limits,
    folds,
    ...countCalls(written),
    overridden: policy.source === "override",
    fromCode: policy.fromCode,
    writeUnits,
    mark,
    ttlMultiplier: chooseMultiplier(request),
  };
  const { expression, returns, requiresStamp, windowEnds } = buildUpdate(image, change, nowMs);
  return {
    request: new ItemUpdate(key, expression, returns),
    item: undefined,
    changed: returns === "UPDATED_NEW" ? withoutOldMergedIds(image, nowMs) : undefined,
    mark,
    incarnation: { ...toIncarnation(image), windowEnds },
    requires: {
      version: image.version,
      refilledAtMs: requiresStamp ? image.bucket.refilledAtMs : undefined,
    },
  };
}

/**
 * A bucket that does not exist is created already charged; if it turns out to exist, the reply
 * carries it.
 */
function planCreation(request: PlanRequest): Plan {
  const { key, intents, policy, nowMs, outcomes, writeUnits } = request;
  const bucket = fullBucket(policy.bucketLimits, nowMs);
  // Only shard 0 begins a bucket; the others come from splits, and are gone with it.
  const present = intents.filter(
    (intent) =>
      key.shard === 0 && (UNDER_POLICY.has(intent.kind) || mayHaveOutlived(intent, nowMs)),
  );
  const { accepted, folds } = decideBatch(bucket, buildSteps(present, policy, key), nowMs);
  const verdicts = listVerdicts(intents, { present, accepted, otherwise: () => "gone" });
  const written = filterList(present, (_, index) => accepted[index] === true);
  if (written.length === 0) return { write: undefined, verdicts };
  // A new item has free slots.
  const mark = outcomes.mark([], nowMs)!;
  const put = buildPut(key, bucket, {
    folds,
    ...countCalls(written),
    overridden: policy.source === "override",
    fromCode: policy.fromCode,
    writeUnits,
    mark,
    ttlMultiplier: chooseMultiplier(request),
  });
  const { windowEnds } = put;
  const incarnation = { creation: mark.id, divisor: 1, splitAtMs: undefined, windowEnds };
  return {
    write: {
      request: {
        operation: "PutItem",
        key,
        input: (tableName) => ({ TableName: tableName, ...put.input }),
        statement: () => undefined,
      },
      item: put.input.Item,
      changed: undefined,
      mark,
      incarnation,
      requires: undefined,
    },
    verdicts,
  };
}

/** Whether the bucket is the one that an intent is meant for: its lease's, if it has one. */
function isFor({ creation }: BucketImage, intent: WriteIntent, nowMs: number): boolean {
  return (
    intent.incarnation === undefined ||
    intent.incarnation.creation === creation ||
    mayHaveOutlived(intent, nowMs)
  );
}

/**
 * Whether a shard was split or merged since an intent's lease took from it, and something goes
 * back, which no longer belongs to it alone.
 */
function isDivided(
  { divisor, splitAtMs }: BucketImage,
  { incarnation, costs }: WriteIntent,
): boolean {
  return (
    incarnation !== undefined &&
    (incarnation.divisor !== divisor || (divisor > 1 && incarnation.splitAtMs !== splitAtMs)) &&
    Object.values(costs).some((cost) => cost < 0)
  );
}

/**
 * Whether one shard of several cannot pay a charge: while it owed everything, the others would go
 * on as if there were no debt.
 */
function overdraws({ image, policy, nowMs }: PlanRequest, intent: WriteIntent): boolean {
  const { kind, costs, mayOwe } = intent;
  if (image!.divisor === 1 || (kind !== "overrun" && kind !== "charge") || mayOwe === true)
    return false;
  // A charge brings the shard under its policy first.
  const bucket =
    kind === "charge"
      ? bringUnderPolicy(image!.bucket, policyOn(image!, policy), nowMs)
      : image!.bucket;
  const charged = kind === "charge" ? countAmounts(policy, costs) : costs;
  return bucket.limits.some(({ limit }, index) => {
    const cost = charged[limit.name] ?? 0;
    return cost > 0 && balanceMilli(bucket, index, nowMs) < cost;
  });
}

function policyOn({ shard, divisor }: BucketImage, policy: Policy): Policy {
  return shardPolicy(policy, shard, divisor);
}

/**
 * Whether a charge goes to whichever bucket there is: the one that its lease took from may have
 * expired, when it was full.
 */
function mayHaveOutlived({ kind, incarnation }: WriteIntent, nowMs: number): boolean {
  return (
    kind === "overrun" &&
    incarnation?.expiredBySeconds !== undefined &&
    incarnation.expiredBySeconds * 1000 <= nowMs
  );
}

/**
 * Buckets of entities with their own limits do not expire: such a balance belongs to one entity, so
 * it must survive. Shards never expire either: an expired shard would come back as a whole bucket.
 */
function chooseMultiplier({ policy, image, ttlMultiplier }: PlanRequest): number {
  return policy.source === "entity" || (image !== undefined && image.divisor > 1)
    ? 0
    : ttlMultiplier;
}
