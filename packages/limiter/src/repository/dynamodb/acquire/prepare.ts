/*
 * Prepares a call: which buckets it takes from, and under which policies. What is missing in memory
 * is read in one batch.
 */
import { checkKinds } from "../../../core/bucket/limit-change.ts";
import { inMilli } from "../../../core/amounts.ts";
import { holds } from "../../../core/bucket/bucket.ts";
import {
  buildClaims,
  costsMilli,
  hasAll,
  hasAllWanted,
  hasPolicyLimits,
  selectKnownAmounts,
  type BucketClaim,
  type WantedBucket,
} from "../../../core/bucket/decision.ts";
import { withDefaults, type Policy } from "../../../core/bucket/policy.ts";
import type { ConsumeRequest, MaybePromise, ResourceAmounts } from "../../port.ts";
import type { CachedPolicy, PolicySource } from "../../store.ts";
import type { Expiring } from "../cache/expiring.ts";
import { isYoung, type KnownBuckets } from "../cache/known-buckets.ts";
import type { PolicyResolver } from "../cache/policy-resolver.ts";
import type { UndecidedCalls } from "../cache/undecided-calls.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { bucketKey, type BucketKey } from "../items/bucket-key.ts";
import type { WantedClaim } from "./wanted-claim.ts";

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
export class ClaimPreparation {
  readonly #namespaceId: string;
  readonly #policies: PolicySource;
  readonly #resolver: PolicyResolver;
  readonly #known: KnownBuckets;
  readonly #entities: Expiring<KnownEntity>;
  readonly #active: Expiring<string>;
  readonly #undecided: UndecidedCalls;
  readonly #refusalMemoryMs: number;

  constructor(options: {
    readonly namespaceId: string;
    readonly policies: PolicySource;
    readonly resolver: PolicyResolver;
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
    this.#resolver = options.resolver;
    this.#known = options.known;
    this.#entities = options.entities;
    this.#active = options.active;
    this.#undecided = options.undecided;
    this.#refusalMemoryMs = options.refusalMemoryMs;
  }

  /** Every bucket that a call takes from; no promise when everything is in memory. */
  prepare(request: ConsumeRequest): MaybePromise<readonly WantedClaim[]> {
    const { entityId, resources, override, defaults } = request;
    const active = this.#active.get(this.#namespaceId);
    const entity = this.#entities.get(entityId);
    const own = resources.map(({ resource, amounts, leave }) =>
      this.#buildClaim({ entityId, resource, amounts, override, defaults, isParent: false, leave }),
    );
    if (active instanceof Promise || entity instanceof Promise || own.some(isPending))
      return this.#whenRead(request, active, entity, own);
    return this.#withParents(request, entity, own as readonly (WantedClaim | undefined)[]);
  }

  /**
   * What a call wants from its only bucket, if this process knows that the bucket is short of it.
   * Undefined for everything else, which takes the long way. That would refuse this call too, but
   * in 2.4 µs instead of 0.9.
   */
  shortage(
    { entityId, resources, override, defaults }: ConsumeRequest,
    nowMs: number,
  ): BucketClaim | undefined {
    const entity = this.#entities.fresh(entityId, nowMs);
    if (entity === undefined || entity.parentId !== undefined) return undefined;
    if (override !== undefined || resources.length > 1) return undefined;
    const { resource, amounts, leave } = resources[0]!;
    if (leave !== undefined) return undefined;
    const kept = entity.buckets.get(resource);
    if (kept === undefined) return undefined;
    const { shards, isWhole } = this.#known.get(kept.key);
    if (!isWhole || shards.length !== 1) return undefined;
    const { image, seenAt, sure } = shards[0]!;
    const { bucket } = image;
    const costs = costsMilli(bucket, amounts);
    if (holds(bucket, costs, Math.floor(nowMs)) || sure?.image !== image) return undefined;
    if (this.#undecided.has(kept)) return undefined;
    if (!isYoung(seenAt, nowMs, this.#refusalMemoryMs)) return undefined;
    if (this.#active.fresh(this.#namespaceId, nowMs) === undefined) return undefined;
    kept.policy = this.#policies.getCached(entityId, resource, kept.policy);
    const policy = withDefaults(kept.policy?.policy, defaults);
    if (policy === undefined || policy.counts !== undefined) return undefined;
    if (!hasPolicyLimits(bucket, policy) || !hasAll(policy, amounts)) return undefined;
    return { entityId, resource, policy, amounts, bucket, costs };
  }

  /** The key of shard 0 of a bucket. */
  findKey(entityId: string, resource: string): BucketKey {
    return this.#findBucket(entityId, resource).key;
  }

  #findBucket(entityId: string, resource: string): KeptBucket {
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
    own: readonly MaybePromise<WantedClaim | undefined>[],
  ): Promise<readonly WantedClaim[]> {
    const [, known, found] = await Promise.all([active, entity, Promise.all(own)]);
    return this.#withParents(request, known, found);
  }

  #withParents(
    request: ConsumeRequest,
    entity: KnownEntity,
    own: readonly (WantedClaim | undefined)[],
  ): MaybePromise<readonly WantedClaim[]> {
    const { parentId } = entity;
    if (parentId === undefined) return assemble(request, entity, own, []);
    const parents = request.resources.map(({ resource, amounts, leave }) =>
      this.#buildClaim({
        entityId: parentId,
        resource,
        amounts,
        override: undefined,
        defaults: request.defaults,
        isParent: true,
        leave,
      }),
    );
    return parents.some(isPending)
      ? Promise.all(parents).then((found) => assemble(request, entity, own, found))
      : assemble(request, entity, own, parents as readonly (WantedClaim | undefined)[]);
  }

  #buildClaim(wanted: WantedBucket): MaybePromise<WantedClaim | undefined> {
    const { entityId, resource, override } = wanted;
    const bucket = this.#findBucket(entityId, resource);
    const { key } = bucket;
    const image = this.#known.getImage(key);
    const cached =
      override === undefined
        ? (bucket.policy = this.#policies.getCached(entityId, resource, bucket.policy))
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
      const claim = await this.#underPolicy(wanted, key, this.#known.getImage(key), read);
      return claim && { ...claim, isNamespaceRead: isUnknown };
    });
  }

  /** Reads a bucket, and the namespace, which must be active for it to be created. */
  async #readUnknown(key: BucketKey): Promise<void> {
    await Promise.all([this.#known.read(key), this.#active.renew(this.#namespaceId)]);
  }

  /** The claim under the policy that the bucket shows to be the current one. */
  #underPolicy(
    { amounts, isParent, override, defaults, leave }: WantedBucket,
    key: BucketKey,
    image: BucketImage | undefined,
    stored: Policy | undefined,
  ): MaybePromise<WantedClaim | undefined> {
    const policy = override ?? (defaults === undefined ? stored : withDefaults(stored, defaults));
    if (policy === undefined) return undefined;
    if (override !== undefined) checkKinds(image?.bucket, override.bucketLimits);
    const parentId = isParent ? undefined : key.parentId;
    const costs = inMilli(amounts);
    const claim: WantedClaim = {
      key,
      amounts,
      costs,
      policy,
      parentId,
      isCascaded: isParent,
      leave,
    };
    const resolved = this.#resolver.resolveFor(policy, key, image);
    if (resolved === policy) return this.#withLevels(claim);
    return resolved instanceof Promise
      ? resolved.then((current) => this.#withLevels({ ...claim, policy: current }))
      : this.#withLevels({ ...claim, policy: resolved });
  }

  /** The claim with the other levels, when its policy lacks a limit that the call names. */
  #withLevels(claim: WantedClaim): MaybePromise<WantedClaim> {
    const { key, policy } = claim;
    if (policy.source === "override" || hasAllWanted(policy, claim)) return claim;
    const levels = this.#policies.levels(key.entityId, key.resource);
    return levels instanceof Promise
      ? levels.then((read) => ({ ...claim, levels: read }))
      : { ...claim, levels };
  }
}

/** Builds the claims of a call from what was found for its entity and for its parent. */
function assemble(
  request: ConsumeRequest,
  { parentId }: KnownEntity,
  own: readonly (WantedClaim | undefined)[],
  parents: readonly (WantedClaim | undefined)[],
): readonly WantedClaim[] {
  const { resources } = request;
  return buildClaims(request, (wanted) => {
    const isWanted = ({ resource }: ResourceAmounts): boolean => resource === wanted.resource;
    // Copies only what differs: this is on the path of every refusal from memory.
    const index = resources.length === 1 ? 0 : resources.findIndex(isWanted);
    const found = (wanted.isParent ? parents : own)[index];
    if (found === undefined) return undefined;
    const { policy, levels } = found;
    // Without other levels, the policy has every name; a call's own limits are still to be checked.
    const amounts =
      levels === undefined && wanted.override === undefined
        ? wanted.amounts
        : selectKnownAmounts(wanted, policy, levels ?? []);
    if (amounts !== found.amounts) return { ...found, amounts, costs: inMilli(amounts) };
    if (wanted.isParent || found.parentId === parentId) return found;
    // The parent of an entity that this process had not met came with the same read as its bucket.
    return { ...found, key: { ...found.key, parentId }, parentId };
  });
}

function isPending(value: unknown): boolean {
  return value instanceof Promise;
}
