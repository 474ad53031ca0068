import { amountOf, checkNames, MILLI, type Amounts } from "../amounts.ts";
import {
  balanceMilli,
  fullBucket,
  holds,
  waitMs,
  type Bucket,
  type BucketLimit,
} from "./bucket.ts";
import { ValidationError } from "../errors.ts";
import { withLimits } from "./limit-change.ts";
import { sameLimits, type Limit } from "../limit.ts";
import type { ConfigSource, Policy } from "./policy.ts";
import { shardSumMilli, waitForShardSumMs } from "./shard-sums.ts";

/**
 * One bucket of a decision, and what the call wants of it. Limits that `amounts` does not name are
 * wanted 0 of.
 */
export interface Charge {
  readonly entityId: string;
  readonly resource: string;
  readonly policy: Policy;
  readonly bucket: Bucket;
  readonly amounts: Amounts;
  /** The amounts as `costsMilli` answers them, from whoever needs them again. */
  readonly costs?: readonly number[];
  /**
   * Further shards of the same bucket, under the same policy: then it is the sum that must hold the
   * amounts, and that is shown.
   */
  readonly others?: readonly Bucket[];
}

/** One limit of one bucket of a decision, charged or not. */
export interface LimitStatus {
  readonly entityId: string;
  readonly resource: string;
  readonly limitName: string;
  readonly limit: Limit;
  readonly source: ConfigSource;
  /** Whole tokens, rounded down; negative in debt. */
  readonly available: number;
  readonly requested: number;
  readonly exceeded: boolean;
  /** Whole tokens that are missing; 0 when it fits. */
  readonly deficit: number;
  /** 0 when it fits, `Infinity` when it never can. */
  readonly retryAfterSeconds: number;
}

/**
 * This decides an acquire: it fits when every limit of every bucket holds what is wanted of it. A
 * limit of which nothing is wanted refuses while it is in debt: that is how a cost that is known
 * only afterwards is limited.
 */
export function fits(charges: readonly Charge[], nowMs: number): boolean {
  for (const { bucket, amounts, costs, others } of charges) {
    if (others !== undefined && others.length > 0) {
      if (!shardsHold(bucket, others, amounts, nowMs)) return false;
    } else if (!holds(bucket, costs ?? costsMilli(bucket, amounts), nowMs)) return false;
  }
  return true;
}

/**
 * The state of every limit of a decision, in the order of the charges and of each policy (stores
 * keep limits in an order of their own).
 */
export function statusesOf(charges: readonly Charge[], nowMs: number): readonly LimitStatus[] {
  return charges.flatMap((charge) =>
    charge.policy.limits.map(({ name }) => {
      const index = charge.bucket.limits.findIndex(({ limit }) => limit.name === name);
      return statusOf(charge, index, nowMs);
    }),
  );
}

/**
 * What each limit of a bucket is charged, in millitokens. A give-back reaches a limit also while it
 * is hidden.
 */
export function costsMilli(bucket: Bucket, amounts: Amounts): number[] {
  const { limits } = bucket;
  const costs: number[] = [];
  for (let index = 0; index < limits.length; index += 1)
    costs.push(amountOf(amounts, limits[index]!.limit.name) * MILLI);
  return costs;
}

/** The same with the sign turned: what is given back. */
export function negated(amounts: Amounts): Amounts {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, -amount]));
}

/**
 * The bucket as the policy wants it: a new one is full, one that was decided with other limits is
 * carried over.
 */
export function underPolicy(stored: Bucket | undefined, policy: Policy, nowMs: number): Bucket {
  if (stored === undefined) return fullBucket(policy.bucketLimits, nowMs);
  return isUnder(stored, policy) ? stored : withLimits(stored, policy.bucketLimits, nowMs);
}

/**
 * What a refusal leaves behind: `undefined` when the bucket is as the policy wants it. Otherwise
 * the new parameters must be stored even though nothing is taken, or an empty bucket would go on
 * earning at its old rate for as long as it refuses.
 */
export function afterRefusal(
  stored: Bucket | undefined,
  policy: Policy,
  nowMs: number,
): Bucket | undefined {
  if (stored === undefined || isUnder(stored, policy)) return undefined;
  return withLimits(stored, policy.bucketLimits, nowMs, { keepCut: true });
}

/**
 * The part of the amounts that a policy has limits for: a name that a parent lacks is not charged
 * there.
 */
export function amountsUnder(policy: Policy, amounts: Amounts): Amounts {
  const names = Object.keys(amounts);
  if (names.every((name) => policy.names.has(name))) return amounts;
  return Object.fromEntries(
    names.filter((name) => policy.names.has(name)).map((name) => [name, amountOf(amounts, name)]),
  );
}

/** Whether a bucket was last decided with these limits. */
export function isUnder(bucket: Bucket, policy: Policy): boolean {
  if (bucket.limits === policy.bucketLimits) return true;
  const compared = COMPARISON_MEMO.get(bucket.limits);
  if (compared?.limits === policy.limits) return compared.isSame;
  const shown = bucket.limits.flatMap(({ limit, hidden }) => (hidden ? [] : [limit]));
  const isSame = sameLimits(shown, policy.limits);
  COMPARISON_MEMO.set(bucket.limits, { limits: policy.limits, isSame });
  return isSame;
}

/**
 * What the limits of a bucket were last compared with. Stores that read their buckets have other
 * lists than the policy has, and ask several times for each call: 1 µs each time.
 */
const COMPARISON_MEMO = new WeakMap<
  readonly BucketLimit[],
  { readonly limits: readonly Limit[]; readonly isSame: boolean }
>();

function shardsHold(
  bucket: Bucket,
  others: readonly Bucket[],
  amounts: Amounts,
  nowMs: number,
): boolean {
  const shards = [bucket, ...others];
  return bucket.limits.every(
    ({ limit: { name }, hidden }) =>
      hidden || shardSumMilli(shards, name, nowMs) >= amountOf(amounts, name) * MILLI,
  );
}

function statusOf(
  { entityId, resource, policy, bucket, amounts, others }: Charge,
  index: number,
  nowMs: number,
): LimitStatus {
  const { limit } = bucket.limits[index]!;
  // A caller may have asked for -0, which is not what a status shows.
  const requested = amountOf(amounts, limit.name) + 0;
  const shards = others === undefined || others.length === 0 ? undefined : [bucket, ...others];
  const balance =
    shards === undefined
      ? balanceMilli(bucket, index, nowMs)
      : shardSumMilli(shards, limit.name, nowMs);
  const available = Math.floor(balance / MILLI);
  const exceeded = available < requested;
  const wait = (neededMilli: number): number =>
    shards === undefined
      ? waitMs(bucket, index, neededMilli, nowMs)
      : waitForShardSumMs(shards, limit.name, neededMilli, nowMs);
  return {
    entityId,
    resource,
    limitName: limit.name,
    limit,
    source: policy.source,
    available,
    requested,
    exceeded,
    deficit: exceeded ? requested - available : 0,
    retryAfterSeconds: exceeded ? wait(requested * MILLI) / 1000 : 0,
  };
}

/** What a call wants: of its own resource first, then of further ones. */
interface WantedAmounts {
  readonly entityId: string;
  readonly charges: readonly { readonly resource: string; readonly amounts: Amounts }[];
  /** Limits that the call brought along for its entity, in place of the stored ones. */
  readonly override: Policy | undefined;
}

/** Something that has a parent which calls of its entity also take from. */
interface Owned {
  readonly parentId: string | undefined;
}

/** A bucket of a call, with the parent that calls of its entity also take from. */
export type OwnedCharge = Charge & Owned;

/** What a call wants of one bucket: the entity's own, or its parent's. */
export interface WantedBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: Amounts;
  /** Limits that the call brought along, in place of the stored ones. */
  readonly override: Policy | undefined;
  readonly isParent: boolean;
}

/** Finds a bucket under the limits that hold for it; undefined when no limits hold. */
type FindCharge<C extends Owned> = (wanted: WantedBucket) => C | undefined;

/**
 * Every bucket that a call takes from: for each resource the entity's, then its parent's. It throws
 * before anything is written.
 */
export function chargesOf<C extends Owned>(
  request: WantedAmounts,
  find: FindCharge<C>,
): readonly C[] {
  // Most calls have one resource, and need no second list.
  if (request.charges.length === 1) return chargesOn(request, request.charges[0]!, find);
  const all: C[] = [];
  for (const asked of request.charges) all.push(...chargesOn(request, asked, find));
  return all;
}

/**
 * What a call takes from a bucket under its policy. Of the entity's own bucket, every limit that
 * the call names must exist; of its parent's, only the limits that the parent has are charged.
 */
export function amountsOf({ amounts, isParent }: WantedBucket, policy: Policy): Amounts {
  if (isParent) return amountsUnder(policy, amounts);
  checkNames(amounts, policy.names, "consume");
  return amounts;
}

/** The error for an entity and a resource that no level has limits for. */
function noLimits(entityId: string, resource: string): ValidationError {
  const reason = `no limits are configured for ${entityId} on ${resource}; set some at any level, or pass limits`;
  return new ValidationError("limits", entityId, reason);
}

/** The names of the entity's limits on each resource of a call, in the call's order. */
export function limitNamesOf(
  { entityId, charges: asked }: WantedAmounts,
  charges: readonly Charge[],
): readonly ReadonlySet<string>[] {
  const own =
    asked.length === charges.length
      ? charges
      : charges.filter((charge) => charge.entityId === entityId);
  return own.map(({ policy }) => policy.names);
}

function chargesOn<C extends Owned>(
  { entityId, override }: WantedAmounts,
  { resource, amounts }: WantedAmounts["charges"][number],
  find: FindCharge<C>,
): readonly C[] {
  const own = find({ entityId, resource, amounts, override, isParent: false });
  if (own === undefined) throw noLimits(entityId, resource);
  const { parentId } = own;
  if (parentId === undefined) return [own];
  const parents = find({
    entityId: parentId,
    resource,
    amounts,
    override: undefined,
    isParent: true,
  });
  return parents === undefined ? [own] : [own, parents];
}
