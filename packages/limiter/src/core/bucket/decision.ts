import {
  addAmounts,
  getAmount,
  checkNames,
  inMilli,
  MILLI,
  NO_AMOUNTS,
  type Amounts,
} from "../amounts.ts";
import {
  balanceMilli,
  findOpenEndMs,
  fullBucket,
  holds,
  waitMs,
  type Bucket,
  type BucketLimit,
} from "./bucket.ts";
import { ValidationError } from "../errors.ts";
import { countAmounts } from "./counted-amounts.ts";
import { addLeaves, type Leave } from "./leave.ts";
import { checkKinds, keepWindows, withLimits } from "./limit-change.ts";
import { isRate, type LimitKind } from "../limit-kinds.ts";
import type { SupportedLimit } from "../supported-limits.ts";
import { sourceOfLimit, type ConfigSource, type Policy } from "./policy.ts";
import { findShardsEndMs, shardSumMilli, waitForShardSumMs } from "./shard-sums.ts";
import { computeShare } from "./shares.ts";

/** One bucket of a decision, and what the call takes from it: 0 of each limit it does not name. */
export interface BucketClaim {
  readonly entityId: string;
  readonly resource: string;
  readonly policy: Policy;
  readonly bucket: Bucket;
  readonly amounts: Amounts;
  /** What is only counted, because the policy has no limit of that name; usually nothing. */
  readonly unlimited?: Amounts | undefined;
  /** The result of `costsMilli`, if the caller has computed it already. */
  readonly costs?: readonly number[];
  /**
   * Further shards of the same bucket under the same policy. The sum over all shards must then hold
   * the amounts, and the status shows the sum.
   */
  readonly others?: readonly Bucket[];
  /** Whole tokens by limit that must be left after the call; usually nothing. */
  readonly leaves?: Amounts | undefined;
  /** Where `bucket` and `others` are among the shards; only with `leaves`. */
  readonly places?: readonly { readonly shard: number; readonly divisor: number }[] | undefined;
}

/** The state of one limit in a decision, whether it was charged or not. */
export interface LimitStatus {
  /** Whose bucket it is: the call's entity or, where it cascades, its parent. */
  readonly entityId: string;
  /** The resource of the bucket. */
  readonly resource: string;
  /** The name of the limit, as in `limit.name`. */
  readonly limitName: string;
  /** The limit that the decision was made with. */
  readonly limit: SupportedLimit;
  /** The level that the limit came from. */
  readonly source: ConfigSource;
  /** The kind of the limit. */
  readonly kind: LimitKind;
  /** The end of the open window of a quota or session; undefined while none is open. */
  readonly resetsAt: Date | undefined;
  /** Seconds until then, by the clock of the decision. */
  readonly resetsInSeconds: number | undefined;
  /** Whole tokens, rounded down; negative in debt. */
  readonly available: number;
  /** Whole tokens that the call wanted; 0 if it did not name the limit. */
  readonly requested: number;
  /** Whole tokens that the call must leave for others. */
  readonly leaves: number;
  /** Whether this limit refused the call. */
  readonly exceeded: boolean;
  /** Whole tokens that are missing; 0 if the amount fits. */
  readonly deficit: number;
  /** 0 if the amount fits, `Infinity` if it never can. */
  readonly retryAfterSeconds: number;
}

/**
 * Decides an acquire: it fits if every limit of every bucket holds the amount taken from it, and
 * what must be left. A limit that nothing is taken from refuses while it is in debt. That is how
 * costs that are only known afterwards are limited.
 */
export function fits(claims: readonly BucketClaim[], nowMs: number): boolean {
  for (const claim of claims) {
    const { bucket, amounts, costs = costsMilli(bucket, amounts), others, leaves } = claim;
    if (others !== undefined && others.length > 0) {
      if (!shardsHold(claim, [bucket, ...others], nowMs)) return false;
    } else {
      const needs = leaves === undefined ? costs : addLeaves(bucket, costs, inMilli(leaves));
      if (!holds(bucket, needs, nowMs)) return false;
    }
  }
  return true;
}

/**
 * The state of every limit of a decision, in the order of the claims and, within each, of the
 * policy. (Stores keep limits in an order of their own.)
 */
export function computeStatuses(
  claims: readonly BucketClaim[],
  nowMs: number,
): readonly LimitStatus[] {
  const statuses: LimitStatus[] = [];
  for (const claim of claims)
    for (const limit of claim.policy.limits) statuses.push(computeStatus(claim, limit, nowMs));
  return statuses;
}

/**
 * What each limit of a bucket is charged, in millitokens. Hidden limits are included, because a
 * give-back must reach them too.
 */
export function costsMilli(bucket: Bucket, amounts: Amounts): number[] {
  const { limits } = bucket;
  // As long as it has to be: `push` would reserve 17 numbers, and `map` needs a closure each time.
  // oxlint-disable-next-line unicorn/no-new-array -- see above; it saves the memory backend 4 %.
  const costs = new Array<number>(limits.length);
  for (let index = 0; index < limits.length; index += 1)
    costs[index] = getAmount(amounts, limits[index]!.limit.name) * MILLI;
  return costs;
}

/** Amounts with their signs reversed, to give them back. */
export function negate(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, -amount]));
}

/**
 * The bucket under the policy's limits: a full one if none is stored, and one that is carried over
 * if it was last decided with other limits. Throws if a call's own limits change a kind.
 */
export function withPolicyLimits(
  stored: Bucket | undefined,
  policy: Policy,
  nowMs: number,
): Bucket {
  // Nearly all calls end here: what is left of this function need not be compiled into them.
  if (stored !== undefined && hasPolicyLimits(stored, policy)) return stored;
  if (policy.source === "override") checkKinds(stored, policy.bucketLimits);
  return bringUnderPolicy(stored, policy, nowMs);
}

/** The same for a call that was checked before, since when a limit may have changed its kind. */
export function bringUnderPolicy(
  stored: Bucket | undefined,
  policy: Policy,
  nowMs: number,
): Bucket {
  if (stored === undefined) return fullBucket(policy.bucketLimits, nowMs);
  return hasPolicyLimits(stored, policy)
    ? stored
    : withLimits(stored, listWantedLimits(stored, policy), nowMs);
}

function listWantedLimits(
  stored: Bucket,
  { source, bucketLimits }: Policy,
): readonly BucketLimit[] {
  return source === "override" ? keepWindows(stored, bucketLimits) : bucketLimits;
}

/**
 * The bucket that a refusal has to store, or `undefined` if the stored one is already under the
 * policy. A refusal takes nothing, but it must store changed limits: an empty bucket would
 * otherwise keep earning at its old rate for as long as it refuses.
 */
export function afterRefusal(
  stored: Bucket | undefined,
  policy: Policy,
  nowMs: number,
): Bucket | undefined {
  if (stored === undefined || hasPolicyLimits(stored, policy)) return undefined;
  return withLimits(stored, listWantedLimits(stored, policy), nowMs, { keepCut: true });
}

/** Whether a bucket was last decided with the limits of this policy. */
export function hasPolicyLimits(bucket: Bucket, policy: Policy): boolean {
  if (bucket.limits === policy.bucketLimits) return true;
  const compared = COMPARISON_MEMO.get(bucket.limits);
  if (compared?.limits === policy.limits) return compared.isSame;
  const shown = bucket.limits.filter(({ hidden }) => !hidden);
  const isSame =
    shown.length === policy.bucketLimits.length &&
    shown.every((limit) => policy.bucketLimits.some((other) => isSameOnBucket(limit, other)));
  COMPARISON_MEMO.set(bucket.limits, { limits: policy.limits, isSame });
  return isSame;
}

/** Whether buckets keep two limits in the same way: options are configuration only. */
export function isSameOnBucket(left: BucketLimit, right: BucketLimit): boolean {
  return (
    left.limit.name === right.limit.name &&
    left.limit.capacity === right.limit.capacity &&
    left.window?.definition === right.window?.definition &&
    (left.window !== undefined || sameRate(left, right))
  );
}

/** Compared as they are configured: a shard has shares of both. */
function sameRate({ limit: left }: BucketLimit, { limit: right }: BucketLimit): boolean {
  return (
    isRate(left) &&
    isRate(right) &&
    left.refillAmount === right.refillAmount &&
    left.refillPeriodSeconds === right.refillPeriodSeconds
  );
}

/**
 * The list that each bucket's limits were last compared with. Stores that read their buckets hold
 * lists of their own, and compare several times for each call; each comparison would take 1 µs.
 */
const COMPARISON_MEMO = new WeakMap<
  readonly BucketLimit[],
  { readonly limits: readonly SupportedLimit[]; readonly isSame: boolean }
>();

function shardsHold(claim: BucketClaim, shards: readonly Bucket[], nowMs: number): boolean {
  return claim.bucket.limits.every(({ limit: { name }, hidden }) => {
    if (hidden) return true;
    const { neededMilli, keptMilli } = findShardNeed(claim, name);
    return shardSumMilli(shards, name, nowMs, keptMilli) >= neededMilli;
  });
}

/**
 * What shards together must hold of one limit, and what each keeps of it: a call takes what they
 * hold above their shares of what it must leave. One that takes nothing of the limit finds all of
 * it left, wherever that is.
 */
function findShardNeed(
  { amounts, leaves = NO_AMOUNTS, places = [] }: BucketClaim,
  name: string,
): { readonly neededMilli: number; readonly keptMilli: readonly number[] | undefined } {
  const [costMilli, leftMilli] = [amounts, leaves].map((each) => getAmount(each, name) * MILLI);
  if (costMilli === 0 || leftMilli === 0)
    return { neededMilli: costMilli! + leftMilli!, keptMilli: undefined };
  const keptMilli = places.map(({ shard, divisor }) => computeShare(leftMilli!, shard, divisor));
  return { neededMilli: costMilli!, keptMilli };
}

/** The limit is that of the policy: buckets keep no options. */
function computeStatus(claim: BucketClaim, limit: SupportedLimit, nowMs: number): LimitStatus {
  const { entityId, resource, policy, bucket, amounts, others, leaves: left } = claim;
  const index = bucket.limits.findIndex((held) => held.limit.name === limit.name);
  // Adding 0 turns the -0 of a careless caller into 0.
  const requested = getAmount(amounts, limit.name) + 0;
  const shards = others === undefined || others.length === 0 ? undefined : [bucket, ...others];
  const balance =
    shards === undefined
      ? balanceMilli(bucket, index, nowMs)
      : shardSumMilli(shards, limit.name, nowMs);
  const available = Math.floor(balance / MILLI);
  const endMs =
    shards === undefined
      ? findOpenEndMs(bucket, index, nowMs)
      : findShardsEndMs(shards, limit.name, nowMs);
  const leaves = left === undefined ? 0 : getAmount(left, limit.name);
  const { neededMilli, keptMilli } = findShardNeed(claim, limit.name);
  // Shards may hold above their shares what the whole does not hold above all of it.
  const exceeded =
    keptMilli === undefined || shards === undefined
      ? available < requested + leaves
      : shardSumMilli(shards, limit.name, nowMs, keptMilli) < neededMilli;
  const findWaitMs = (): number =>
    shards === undefined
      ? waitMs(bucket, index, (requested + leaves) * MILLI, nowMs)
      : waitForShardSumMs(shards, limit.name, neededMilli, nowMs, keptMilli);
  return {
    entityId,
    resource,
    limitName: limit.name,
    limit,
    source: sourceOfLimit(policy, limit.name),
    kind: limit.kind ?? "rate",
    resetsAt: endMs === undefined ? undefined : new Date(endMs),
    resetsInSeconds: endMs === undefined ? undefined : (endMs - nowMs) / 1000,
    available,
    requested,
    leaves,
    exceeded,
    deficit: exceeded ? requested + leaves - available : 0,
    retryAfterSeconds: exceeded ? findWaitMs() / 1000 : 0,
  };
}

/** What a call wants: from its own resource first, then from further ones. */
interface WantedAmounts {
  readonly entityId: string;
  readonly resources: readonly {
    readonly resource: string;
    readonly amounts: Amounts;
    readonly field?: string;
    readonly leave?: Leave | undefined;
  }[];
  /** The call's own limits for its entity, which replace the stored ones. */
  readonly override: Policy | undefined;
  /** The limiter's defaults. */
  readonly defaults?: Policy | undefined;
}

/** Holds the parent that calls of its entity also take from. */
interface Owned {
  readonly parentId: string | undefined;
}

/** A bucket of a call, with the parent that calls of its entity also take from. */
export type OwnedClaim = BucketClaim & Owned;

/** What a call takes from one bucket: the entity's own, or its parent's. */
export interface WantedBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Amounts;
  /** The call's own limits, which replace the stored ones. */
  readonly override: Policy | undefined;
  /** The limiter's defaults, which apply below the stored levels. */
  readonly defaults?: Policy | undefined;
  readonly isParent: boolean;
  /** What the caller calls these amounts, for errors. @default "consume" */
  readonly field?: string | undefined;
  /** What the call leaves for others. */
  readonly leave?: Leave | undefined;
}

/** Finds a bucket under the limits that apply to it; undefined if no limits apply. */
type FindClaim<C extends Owned> = (wanted: WantedBucket, nowMs: number) => C | undefined;

/**
 * Every bucket that a call takes from: for each resource the entity's, then its parent's. It throws
 * before anything is written. The time is only passed on, to a `find` that is not a new closure for
 * each call: that saves the memory backend 30 ns.
 */
export function buildClaims<C extends Owned>(
  request: WantedAmounts,
  find: (wanted: WantedBucket) => C | undefined,
): C[];
export function buildClaims<C extends Owned>(
  request: WantedAmounts,
  find: FindClaim<C>,
  nowMs: number,
): C[];
export function buildClaims<C extends Owned>(
  request: WantedAmounts,
  find: FindClaim<C>,
  nowMs = 0,
): C[] {
  // Most calls have one resource, and need no second list.
  if (request.resources.length === 1)
    return buildClaimsOn(request, request.resources[0]!, find, nowMs);
  const all: C[] = [];
  for (const asked of request.resources) all.push(...buildClaimsOn(request, asked, find, nowMs));
  return all;
}

/** Whether a policy knows every name: as a limit, or as what limits count. */
export function hasAll({ knownNames }: Policy, amounts: Amounts): boolean {
  for (const name in amounts) if (!knownNames.has(name)) return false;
  return true;
}

/** Whether a policy knows every name of what a call takes and leaves. */
export function hasAllWanted(
  policy: Policy,
  { amounts, leave }: Pick<WantedBucket, "amounts" | "leave">,
): boolean {
  return hasAll(policy, amounts) && (leave === undefined || hasAll(policy, leave.amounts));
}

/**
 * The amounts of a call that its policy or another level knows. Limits that only other levels have
 * are not charged (ADR 003). A name that no level knows is an error; of a parent it is left out. A
 * call with limits of its own may name no others. The same holds for what the call leaves.
 */
export function selectKnownAmounts(
  { amounts, override, isParent, field = "consume", leave }: WantedBucket,
  policy: Policy,
  levels: Levels,
): Amounts {
  const isKnown = (name: string): boolean =>
    policy.knownNames.has(name) ||
    (override === undefined &&
      (knows(levels, name) || policy.defaults?.knownNames.has(name) === true));
  if (isParent) return onlyNames(amounts, isKnown);
  for (const name in amounts)
    if (!isKnown(name)) checkNames({ [name]: 0 }, policy.knownNames, field);
  for (const name in leave?.amounts)
    if (!isKnown(name)) checkNames({ [name]: 0 }, policy.knownNames, "leave");
  return amounts;
}

/** The stored levels of an entity and a resource. */
export type Levels = readonly (Policy | undefined)[];

/** Whether some level has a limit of this name, or one that counts it. */
export function knows(levels: Levels, name: string): boolean {
  return levels.some((level) => level?.knownNames.has(name));
}

/** The part of an amount that a policy limits, and the part that it does not. */
export type DividedAmounts = Pick<BucketClaim, "amounts" | "unlimited">;

/**
 * Divides the amounts of a call into those that the limits of a policy are charged and, if there
 * are any, the others.
 */
export function divideAmounts(policy: Policy, amounts: Amounts): DividedAmounts {
  return divideByNames(policy, countAmounts(policy, amounts));
}

/** Divides amounts that are by limit already. */
export function divideByNames(policy: Policy, amounts: Amounts): DividedAmounts {
  if (hasAll(policy, amounts)) return { amounts };
  return {
    amounts: onlyNames(amounts, (name) => policy.names.has(name)),
    unlimited: onlyNames(amounts, (name) => !policy.names.has(name)),
  };
}

/**
 * Divides what a call wants from a bucket. The `levels` are read only for a name that the policy
 * lacks.
 */
export function divideWanted(
  wanted: WantedBucket,
  policy: Policy,
  levels: (entityId: string, resource: string) => Levels,
): DividedAmounts {
  if (policy.counts === undefined && hasAllWanted(policy, wanted)) return wanted;
  const known = selectKnownAmounts(wanted, policy, levels(wanted.entityId, wanted.resource));
  return divideAmounts(policy, known);
}

/** The amounts that give back what was charged and counted. */
export function negateDivided({ amounts, unlimited }: DividedAmounts): DividedAmounts {
  return { amounts: negate(amounts), unlimited: unlimited && negate(unlimited) };
}

/** What was used: charged, or only counted. */
export function addDivided({ amounts, unlimited }: DividedAmounts): Amounts {
  return unlimited === undefined ? amounts : addAmounts(amounts, unlimited);
}

/** Whether an amount is charged or counted. */
export function takesAnything({ amounts, unlimited = NO_AMOUNTS }: DividedAmounts): boolean {
  return [amounts, unlimited].some((each) => Object.values(each).some((amount) => amount !== 0));
}

function onlyNames(amounts: Amounts, isWanted: (name: string) => boolean): Amounts {
  return Object.fromEntries(Object.entries(amounts).filter(([name]) => isWanted(name)));
}

/** The error for an entity and a resource for which no level has limits. */
function buildNoLimitsError(entityId: string, resource: string): ValidationError {
  const reason = `no limits are configured for ${entityId} on ${resource}; set some with setSystemDefaults, setResourceDefaults or setLimits, or pass defaults to the RateLimiter`;
  return new ValidationError("limits", undefined, reason);
}

/** The policies of the entity on each resource of a call, in the call's order. */
export function listPolicies(
  { entityId, resources }: WantedAmounts,
  claims: readonly BucketClaim[],
): readonly Policy[] {
  // Most calls have one bucket.
  if (claims.length === 1) return [claims[0]!.policy];
  const own =
    resources.length === claims.length
      ? claims
      : claims.filter((claim) => claim.entityId === entityId);
  return own.map(({ policy }) => policy);
}

function buildClaimsOn<C extends Owned>(
  { entityId, override, defaults }: WantedAmounts,
  { resource, amounts, field, leave }: WantedAmounts["resources"][number],
  find: FindClaim<C>,
  nowMs: number,
): C[] {
  const own = find(
    { entityId, resource, amounts, override, defaults, isParent: false, field, leave },
    nowMs,
  );
  if (own === undefined) throw buildNoLimitsError(entityId, resource);
  const { parentId } = own;
  if (parentId === undefined) return [own];
  const parent = find(
    { entityId: parentId, resource, amounts, override: undefined, defaults, isParent: true, leave },
    nowMs,
  );
  return parent === undefined ? [own] : [own, parent];
}
