/*
 * What a call wants from each bucket: which buckets it takes from, under which policies, whether
 * they hold it as far as this process knows, and the take from one shard.
 */
import { inMilli } from "../../../core/amounts.ts";
import { fullBucket, holds, storedMilli, type Bucket } from "../../../core/bucket/bucket.ts";
import {
  chargesOf,
  costsMilli,
  dividedAmounts,
  fits,
  hasAll,
  isUnder,
  knownAmounts,
  underPolicy,
  type Charge,
  type WantedBucket,
} from "../../../core/bucket/decision.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import { shardPolicy } from "../../../core/bucket/shares.ts";
import type { ConsumeRequest, MaybePromise, ResourceAmounts } from "../../port.ts";
import type { CachedPolicy, PolicySource } from "../../store.ts";
import { costsOf } from "../write/batch-decision.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { bucketKey, type BucketKey } from "../items/bucket-key.ts";
import type { BucketWriter } from "../write/bucket-writer.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import type { Expiring } from "../cache/expiring.ts";
import type { UndecidedCalls } from "../cache/undecided-calls.ts";
import {
  isYoung,
  type KnownBucket,
  type KnownBuckets,
  type KnownShard,
  type SeenShard,
} from "../cache/known-buckets.ts";
import { showsOtherLimits } from "./current-policy.ts";
import type { NotTaken, ReceiptPart, Taken, Throttled } from "./receipt.ts";
import type { PolicyChooser, PolicyHolder, WantedCharge } from "./wanted-charge.ts";
import type { AppliedOutcome, PolicyChoice, WriteIntent } from "../write/write-intent.ts";

/** What is remembered of an entity. */
export interface KnownEntity {
  /** The parent that its calls also take from. */
  readonly parentId: string | undefined;
  /** What is kept of its buckets, by resource: it would be made for every call. */
  readonly buckets: Map<string, KeptBucket>;
}

/** The key of a bucket, and the policy that was last found for it. */
interface KeptBucket {
  readonly key: BucketKey;
  policy: CachedPolicy | undefined;
}

/**
 * The most buckets remembered for one entity: a caller that invents resources must not fill the
 * memory.
 */
const MAX_BUCKETS = 64;

/** Prepares calls: finds the buckets that each takes from, and the policies to decide them with. */
export class ChargePreparation {
  readonly #namespaceId: string;
  readonly #policies: PolicySource;
  readonly #chooser: PolicyChooser;
  readonly #known: KnownBuckets;
  readonly #entities: Expiring<KnownEntity>;
  readonly #active: Expiring<string>;
  readonly #undecided: UndecidedCalls;
  readonly #refusalMemoryMs: number;

  constructor(options: {
    readonly namespaceId: string;
    readonly policies: PolicySource;
    readonly chooser: PolicyChooser;
    readonly known: KnownBuckets;
    readonly entities: Expiring<KnownEntity>;
    /** The names of active namespaces, by id; reading another one throws. */
    readonly active: Expiring<string>;
    readonly undecided: UndecidedCalls;
    /** How old an image may be and still refuse a call without a read. */
    readonly refusalMemoryMs: number;
  }) {
    this.#namespaceId = options.namespaceId;
    this.#policies = options.policies;
    this.#chooser = options.chooser;
    this.#known = options.known;
    this.#entities = options.entities;
    this.#active = options.active;
    this.#undecided = options.undecided;
    this.#refusalMemoryMs = options.refusalMemoryMs;
  }

  /** Every bucket that a call takes from; no promise when everything is in memory. */
  of(request: ConsumeRequest): MaybePromise<readonly WantedCharge[]> {
    const { entityId, resources, override } = request;
    const active = this.#active.get(this.#namespaceId);
    const entity = this.#entities.get(entityId);
    const own = resources.map(({ resource, amounts }) =>
      this.#charge({ entityId, resource, amounts, override, isParent: false }),
    );
    if (active instanceof Promise || entity instanceof Promise || own.some(isPending))
      return this.#whenRead(request, active, entity, own);
    return this.#withParents(request, entity, own as readonly (WantedCharge | undefined)[]);
  }

  /**
   * What a call wants from its only bucket, if this process knows that the bucket is short of it.
   * Undefined for everything else: that takes the long way, which would refuse this call too, but
   * in 2.3 µs instead of 1.7.
   */
  shortage({ entityId, resources, override }: ConsumeRequest, nowMs: number): Charge | undefined {
    const entity = this.#entities.fresh(entityId, nowMs);
    if (entity === undefined || entity.parentId !== undefined) return undefined;
    if (override !== undefined || resources.length > 1) return undefined;
    const { resource, amounts } = resources[0]!;
    const kept = entity.buckets.get(resource);
    if (kept === undefined) return undefined;
    const { shards, isWhole } = this.#known.known(kept.key);
    if (!isWhole || shards.length !== 1) return undefined;
    const { image, seenAt, sure } = shards[0]!;
    const { bucket } = image;
    const costs = costsMilli(bucket, amounts);
    if (holds(bucket, costs, Math.floor(nowMs)) || sure?.image !== image) return undefined;
    if (this.#undecided.has(kept)) return undefined;
    if (!isYoung(seenAt, nowMs, this.#refusalMemoryMs)) return undefined;
    if (this.#active.fresh(this.#namespaceId, nowMs) === undefined) return undefined;
    kept.policy = this.#policies.cached(entityId, resource, kept.policy);
    const policy = kept.policy?.policy;
    if (policy === undefined || !isUnder(bucket, policy) || !hasAll(policy, amounts))
      return undefined;
    return { entityId, resource, policy, amounts, bucket, costs };
  }

  /** The key of shard 0 of a bucket. */
  keyOf(entityId: string, resource: string): BucketKey {
    return this.#bucketOf(entityId, resource).key;
  }

  #bucketOf(entityId: string, resource: string): KeptBucket {
    const entity = this.#entities.fresh(entityId);
    const held = entity?.buckets.get(resource);
    if (held !== undefined) return held;
    const name = { namespaceId: this.#namespaceId, entityId, resource, shard: 0 };
    const bucket = { key: bucketKey(name, entity?.parentId), policy: undefined };
    if (entity !== undefined && entity.buckets.size < MAX_BUCKETS)
      entity.buckets.set(resource, bucket);
    return bucket;
  }

  async #whenRead(
    request: ConsumeRequest,
    active: MaybePromise<unknown>,
    entity: MaybePromise<KnownEntity>,
    own: readonly MaybePromise<WantedCharge | undefined>[],
  ): Promise<readonly WantedCharge[]> {
    const [, known, found] = await Promise.all([active, entity, Promise.all(own)]);
    return this.#withParents(request, known, found);
  }

  #withParents(
    request: ConsumeRequest,
    entity: KnownEntity,
    own: readonly (WantedCharge | undefined)[],
  ): MaybePromise<readonly WantedCharge[]> {
    const { parentId } = entity;
    if (parentId === undefined) return assembled(request, entity, own, []);
    const parents = request.resources.map(({ resource, amounts }) =>
      this.#charge({ entityId: parentId, resource, amounts, override: undefined, isParent: true }),
    );
    return parents.some(isPending)
      ? Promise.all(parents).then((found) => assembled(request, entity, own, found))
      : assembled(request, entity, own, parents as readonly (WantedCharge | undefined)[]);
  }

  #charge(wanted: WantedBucket): MaybePromise<WantedCharge | undefined> {
    const { entityId, resource, override } = wanted;
    const bucket = this.#bucketOf(entityId, resource);
    const { key } = bucket;
    const image = this.#known.imageOf(key);
    const cached =
      override === undefined
        ? (bucket.policy = this.#policies.cached(entityId, resource, bucket.policy))
        : { policy: override };
    // A process that does not know this entity yet reads its bucket together with everything else.
    // One that knows the entity, but not the bucket, tries to create it: if it exists after all,
    // the reply to the failed condition carries it.
    const isUnknown =
      image === undefined && (cached === undefined || this.#entities.fresh(entityId) === undefined);
    const policy =
      cached === undefined ? this.#policies.resolve(entityId, resource) : cached.policy;
    if (!isUnknown && !(policy instanceof Promise))
      return this.#underPolicy(wanted, key, image, policy);
    const reading = isUnknown ? this.#readUnknown(key) : undefined;
    return Promise.all([policy, reading]).then(async ([read]) => {
      const charge = await this.#underPolicy(wanted, key, this.#known.imageOf(key), read);
      return charge && { ...charge, isNamespaceRead: isUnknown };
    });
  }

  /** Reads a bucket, and the namespace, which must be active for it to be created. */
  async #readUnknown(key: BucketKey): Promise<void> {
    await Promise.all([this.#known.read(key), this.#active.renew(this.#namespaceId)]);
  }

  /** The charge under the policy that the bucket shows to be the current one. */
  #underPolicy(
    { amounts, override, isParent }: WantedBucket,
    key: BucketKey,
    image: BucketImage | undefined,
    policy: Policy | undefined,
  ): MaybePromise<WantedCharge | undefined> {
    if (policy === undefined) return undefined;
    const isOverride = override !== undefined;
    const parentId = isParent ? undefined : key.parentId;
    const costs = inMilli(amounts);
    const charge: WantedCharge = {
      key,
      amounts,
      costs,
      policy,
      isOverride,
      parentId,
      isCascaded: isParent,
    };
    if (!showsOtherLimits(charge, image)) return this.#withLevels(charge);
    const chosen = this.#chooser.on(charge, key, image);
    return chosen instanceof Promise
      ? chosen.then((current) => this.#withLevels({ ...charge, policy: current }))
      : this.#withLevels({ ...charge, policy: chosen });
  }

  /** The charge with the other levels, when its policy lacks a limit that the call names. */
  #withLevels(charge: WantedCharge): MaybePromise<WantedCharge> {
    const { key, amounts, policy, isOverride } = charge;
    if (isOverride || hasAll(policy, amounts)) return charge;
    const levels = this.#policies.levels(key.entityId, key.resource);
    return levels instanceof Promise
      ? levels.then((read) => ({ ...charge, levels: read }))
      : { ...charge, levels };
  }
}

/** The charges of a call, of what was found for its entity and for its parent. */
function assembled(
  request: ConsumeRequest,
  { parentId }: KnownEntity,
  own: readonly (WantedCharge | undefined)[],
  parents: readonly (WantedCharge | undefined)[],
): readonly WantedCharge[] {
  const { resources } = request;
  return chargesOf(request, (wanted) => {
    const isWanted = ({ resource }: ResourceAmounts): boolean => resource === wanted.resource;
    // Copies only what differs: this is on the way of every refusal from memory.
    const index = resources.length === 1 ? 0 : resources.findIndex(isWanted);
    const found = (wanted.isParent ? parents : own)[index];
    if (found === undefined) return undefined;
    const { policy, levels } = found;
    // Without other levels, the policy has every name; a call's own limits are still to be checked.
    const amounts =
      levels === undefined && wanted.override === undefined
        ? wanted.amounts
        : knownAmounts(wanted, policy, levels ?? []);
    if (amounts !== found.amounts) return { ...found, amounts, costs: inMilli(amounts) };
    if (wanted.isParent || found.parentId === parentId) return found;
    // The parent of an entity that this process had not met came with the same read as its bucket.
    return { ...found, key: { ...found.key, parentId }, parentId };
  });
}

/**
 * Whether a bucket may serve a call, from one shard or from all together. One shard that holds it
 * does not suffice while others owe more than is left. A bucket that does not exist yet is full.
 */
export function mayFit(
  charge: WantedCharge,
  { count, shards, isWhole }: KnownBucket,
  nowMs: number,
): boolean {
  if (isWhole && shards.length === 1) return fitsShard(charge, shards[0]!.image, nowMs);
  const mayDecideAlone = count > 1 && !(isWhole && shards.some(({ image }) => isInDebt(image)));
  if (mayDecideAlone && shards.some(({ image }) => fitsShard(charge, image, nowMs))) return true;
  return (isWhole || shards.length === 0) && fitsTogether(charge, shards, nowMs);
}

/** Whether one shard holds all that a charge wants. */
export function fitsShard(charge: WantedCharge, image: BucketImage, nowMs: number): boolean {
  const bucket = bucketUnder(charge, image, nowMs);
  return holds(bucket, costsOf(bucket, charge.costs), nowMs);
}

/** Whether shards hold together all that a charge wants; none of them means a new, full bucket. */
export function fitsTogether(
  charge: WantedCharge,
  shards: readonly SeenShard[],
  nowMs: number,
): boolean {
  return fits([decidedCharge(charge, shards, nowMs)], nowMs);
}

/** A charge with all shards of its bucket; a bucket that does not exist yet is full. */
export function decidedCharge(
  charge: Pick<WantedCharge, "key" | "policy" | "amounts">,
  shards: readonly Pick<KnownShard, "image">[],
  nowMs: number,
): Charge {
  const { key, policy, amounts } = charge;
  const [bucket = fullBucket(policy.bucketLimits, nowMs), ...others] = shards.map(({ image }) =>
    bucketUnder(charge, image, nowMs),
  );
  return { entityId: key.entityId, resource: key.resource, policy, amounts, bucket, others };
}

/** The bucket of one shard under the policy of a charge. */
export function bucketUnder(
  { policy }: Pick<PolicyHolder, "policy">,
  { bucket, shard, divisor }: BucketImage,
  nowMs: number,
): Bucket {
  return isUnder(bucket, policy)
    ? bucket
    : underPolicy(bucket, shardPolicy(policy, shard, divisor), nowMs);
}

/**
 * Takes all that a charge wants from one shard, or nothing. It is not `async`, like most on the way
 * of every call: each such function takes half a kilobyte and a microtask of its own.
 */
export function takeFromShard(
  charge: WantedCharge,
  key: BucketKey,
  { requests, undone }: Pick<WriteIntent, "requests" | "undone">,
  { writer, chooser }: { readonly writer: BucketWriter; readonly chooser: PolicyChooser },
): Promise<Taken | Throttled | NotTaken> {
  const { costs, isCascaded, isNamespaceRead } = charge;
  const policy = policyChoice(charge, key, chooser);
  return writer
    .write(key, { kind: "take", costs, requests, undone, policy, isCascaded, isNamespaceRead })
    .then((outcome) => {
      if (outcome.kind === "applied")
        return { kind: "taken", parts: [takenPart(charge, key, requests, outcome)] };
      if (outcome.kind !== "refused") return { kind: "undecided", charge, refusedAtMs: undefined };
      const refused = { ...charge, policy: outcome.policy };
      return { kind: "undecided", charge: refused, refusedAtMs: outcome.atMs };
    }, throttled);
}

/** The outcome of a take whose write was throttled. */
function throttled(error: unknown): Throttled {
  if (!(error instanceof TableUnavailable && error.throttled && !error.ambiguous)) throw error;
  return { kind: "throttled", error };
}

function takenPart(
  charge: WantedCharge,
  key: BucketKey,
  requests: number,
  { policy, incarnation, image }: AppliedOutcome,
): ReceiptPart {
  const { costs, isCascaded } = charge;
  const isSame = policy === charge.policy && charge.levels === undefined;
  const { amounts, unlimited } = isSame ? { amounts: costs } : dividedAmounts(policy, costs);
  return {
    key,
    entityId: key.entityId,
    resource: key.resource,
    policy,
    amounts,
    unlimited,
    requests,
    isCascaded,
    incarnation,
    seen: image && { image },
  };
}

/** The policy that an intent of a charge is decided with, whatever shard it is written to. */
export function policyChoice(
  holder: PolicyHolder,
  key: BucketKey,
  chooser: PolicyChooser,
): PolicyChoice {
  return (image, decidedWith) => {
    const current = decidedWith === undefined ? holder : { ...holder, policy: decidedWith };
    return showsOtherLimits(current, image) ? chooser.on(current, key, image) : current.policy;
  };
}

function isInDebt({ bucket }: BucketImage): boolean {
  return bucket.limits.some((_, index) => storedMilli(bucket, index) < 0);
}

function isPending(value: unknown): boolean {
  return value instanceof Promise;
}
