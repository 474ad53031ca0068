import type { Entity, LimitStatus } from "zae-limiter";
import {
  afterRefusal,
  apply,
  buildClaims,
  computeLeaves,
  costsMilli,
  divideAmounts,
  fits,
  listWindowEnds,
  selectKnownAmounts,
  negate,
  computeStatuses,
  computeTakenStatuses,
  allocateSettlement,
  takesAnything,
  withDefaults,
  withPolicyLimits,
  type Bucket,
  type BucketStore,
  type ConsumeOutcome,
  type ConsumeRequest,
  type MaybePromise,
  type OwnedClaim,
  type PolicySource,
  type Receipt,
  type ResourceAmounts,
  type StoredBucket,
  type WantedBucket,
  type WindowEnds,
} from "zae-limiter/backend";

/** A stored bucket. Its identity shows whether a lease's bucket was deleted and made again. */
interface Slot {
  bucket: Bucket;
}

/** What a call takes from one bucket; `slot` is undefined until the bucket is stored. */
type SlotClaim = OwnedClaim & {
  readonly isParent: boolean;
  slot: Slot | undefined;
  /** The windows that it was taken from: nothing goes back to others. */
  windowEnds?: WindowEnds | undefined;
};

/** What a lease took. It ends once. */
class MapReceipt implements Receipt {
  readonly parts: SlotClaim[];
  isEnded = false;

  constructor(parts: SlotClaim[]) {
    this.parts = parts;
  }
}

/** What the buckets need from the rest of their namespace. */
interface Dependencies {
  readonly policies: PolicySource;
  readonly nowMs: () => number;
  readonly findEntity: (entityId: string) => Entity | undefined;
  /** Throws if the namespace is no longer active. */
  readonly assertActive: () => void;
}

/**
 * Buckets by resource, then by entity. Nothing here awaits, so each method is one atomic step. A
 * real store needs a transaction or a conditional write instead.
 */
export class MapBuckets implements BucketStore {
  readonly #slots = new Map<string, Map<string, Slot>>();
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  consume(request: ConsumeRequest, extending?: Receipt): ConsumeOutcome {
    const nowMs = this.#dependencies.nowMs();
    const claims = this.#findClaims(request, nowMs);
    if (!fits(claims, nowMs)) {
      const statuses = computeStatuses(claims, nowMs);
      for (const { slot, policy } of claims)
        if (slot !== undefined)
          slot.bucket = afterRefusal(slot.bucket, policy, nowMs) ?? slot.bucket;
      return { granted: false, statuses };
    }
    for (const claim of claims) {
      this.#take(claim, nowMs);
      claim.windowEnds = listWindowEnds(claim.slot!.bucket);
    }
    const receipt = (extending as MapReceipt | undefined) ?? new MapReceipt([]);
    receipt.parts.push(...claims);
    const own = claims.filter(({ isParent }) => !isParent);
    return { granted: true, receipt, policies: own.map(({ policy }) => policy) };
  }

  charge(request: ConsumeRequest): void {
    const nowMs = this.#dependencies.nowMs();
    for (const claim of this.#findClaims(request, nowMs))
      if (takesAnything(claim)) this.#take(claim, nowMs);
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): void {
    const parts = end(receipt);
    for (const { resource, amounts } of deltas)
      for (const share of allocateSettlement(parts, resource, amounts))
        this.#writeEnd(share.part, share.amounts);
  }

  giveBack(receipt: Receipt): void {
    for (const part of end(receipt)) this.#writeEnd(part, negate(part.amounts));
  }

  read(request: ConsumeRequest): readonly LimitStatus[] {
    const nowMs = this.#dependencies.nowMs();
    return computeStatuses(this.#findClaims(request, nowMs), nowMs);
  }

  remembered(receipt: Receipt): readonly LimitStatus[] {
    return computeTakenStatuses(
      receipt.parts,
      ({ entityId, resource }) => this.#slots.get(resource)?.get(entityId)?.bucket,
      this.#dependencies.nowMs(),
    );
  }

  ofEntity(entityId: string, resource: string | undefined): readonly StoredBucket[] {
    const resources = resource === undefined ? [...this.#slots.keys()].sort() : [resource];
    return resources.flatMap((name) =>
      this.ofResource(name).filter((stored) => stored.entityId === entityId),
    );
  }

  ofResource(resource: string): readonly StoredBucket[] {
    const slots = [...(this.#slots.get(resource) ?? [])];
    return slots.map(([entityId, { bucket }]) => ({
      entityId,
      resource,
      shard: 0,
      shardCount: 1,
      bucket,
    }));
  }

  deleteEntity(entityId: string): number {
    return [...this.#slots.values()].filter((slots) => slots.delete(entityId)).length;
  }

  #findClaims(request: ConsumeRequest, nowMs: number): SlotClaim[] {
    this.#dependencies.assertActive();
    return buildClaims(request, (wanted) => this.#findClaim(wanted, nowMs));
  }

  #findClaim(wanted: WantedBucket, nowMs: number): SlotClaim | undefined {
    const { entityId, resource, override, defaults, isParent } = wanted;
    const { policies, findEntity } = this.#dependencies;
    const policy =
      override ?? withDefaults(assertSync(policies.resolve(entityId, resource)), defaults);
    if (policy === undefined) return undefined;
    const known = selectKnownAmounts(
      wanted,
      policy,
      assertSync(policies.levels(entityId, resource)),
    );
    const slot = this.#slots.get(resource)?.get(entityId);
    const entity = findEntity(entityId);
    return {
      entityId,
      resource,
      policy,
      ...divideAmounts(policy, known),
      bucket: withPolicyLimits(slot?.bucket, policy, nowMs),
      leaves: computeLeaves(policy, wanted.leave),
      parentId: entity?.cascade === true ? entity.parentId : undefined,
      isParent,
      slot,
    };
  }

  #take(claim: SlotClaim, nowMs: number): void {
    const { entityId, resource, bucket, amounts } = claim;
    const taken = apply(bucket, costsMilli(bucket, amounts), nowMs);
    if (claim.slot === undefined) {
      claim.slot = { bucket: taken };
      const slots = this.#slots.get(resource) ?? new Map<string, Slot>();
      this.#slots.set(resource, slots.set(entityId, claim.slot));
    } else claim.slot.bucket = taken;
  }

  /** Writes the end of a lease, unless the bucket was deleted. */
  #writeEnd(part: SlotClaim, amounts: ResourceAmounts["amounts"]): void {
    const { entityId, resource, slot, windowEnds } = part;
    if (slot === undefined || this.#slots.get(resource)?.get(entityId) !== slot) return;
    const costs = costsMilli(slot.bucket, amounts);
    slot.bucket = apply(slot.bucket, costs, this.#dependencies.nowMs(), windowEnds);
  }
}

/** What is to be settled: nothing the second time, so that a repeated call is harmless. */
function end(receipt: Receipt): readonly SlotClaim[] {
  const { parts, isEnded } = receipt as MapReceipt;
  (receipt as MapReceipt).isEnded = true;
  return isEnded ? [] : parts;
}

/** The limits are in this process, so the policy is there without waiting. */
function assertSync<T>(value: MaybePromise<T>): T {
  if (value instanceof Promise) throw new TypeError("The limits of this backend need no I/O.");
  return value;
}
