import {
  applyInPlace,
  fullBucket,
  isFull,
  listWindowEnds,
  type Bucket,
  type BucketLimit,
} from "../../core/bucket/bucket.ts";
import {
  afterRefusal,
  costsMilli,
  fits,
  hasPolicyLimits,
  addDivided,
  divideWanted,
  negateDivided,
  computeStatuses,
  withPolicyLimits,
  type LimitStatus,
  buildClaims,
  takesAnything,
  type DividedAmounts,
  type Levels,
  type WantedBucket,
} from "../../core/bucket/decision.ts";
import { computeLeaves } from "../../core/bucket/leave.ts";
import type { Entity } from "../../core/entity.ts";
import { withDefaults, type Policy } from "../../core/bucket/policy.ts";
import { Refused } from "../../core/bucket/refusal.ts";
import { settleParts, computeTakenStatuses } from "../../core/bucket/settlement.ts";
import type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "../port.ts";
import type { BucketStore, PolicySource, StoredBucket } from "../store.ts";
import { toDecided, Cell, MemoryReceipt, MeteredCell, type CellClaim, type Terms } from "./cell.ts";
import type { Counted, MemoryUsage } from "./usage.ts";

/** No bucket is dropped while there are at most this many. They take about 2 MB. */
export const FORGET_ABOVE = 10_000;

/** Buckets that are checked for each new one: two, so that dropping outpaces creating. */
const SWEPT_PER_BUCKET = 2;

/**
 * The version of a policy that did not come from the cache: an override, or the policy a lease
 * began with. The next call resolves the policy again.
 */
const UNRESOLVED = -1;

/** What a bucket is charged: whole tokens by name, and the same in millitokens by index. */
type Cost = Pick<CellClaim, "amounts" | "costs" | "unlimited" | "windowEnds">;

/** What the buckets need from the rest of their namespace. */
interface Dependencies {
  readonly policies: PolicySource;
  readonly entities: { get(entityId: string): Entity | undefined };
  /** Undefined if usage is not recorded. */
  readonly usage: MemoryUsage | undefined;
  readonly nowMs: () => number;
  /** The number of buckets above which full ones are dropped. */
  readonly forgetAbove: number;
  /** Throws if the namespace is no longer active. */
  readonly assertActive: () => void;
}

/**
 * Buckets in memory. Every method is synchronous, so a decision and its write are one atomic step.
 */
export class MemoryBuckets implements BucketStore {
  /** By resource, then by entity, so that no combined key has to be built. */
  readonly #cells = new Map<string, Map<string, Cell>>();
  /** Cells that were deleted, not just dropped: what a lease still owes them is not written. */
  readonly #deleted = new WeakSet<Cell>();
  /** The latest terms of each policy, shared by all buckets under it. */
  readonly #terms = new WeakMap<Policy, Terms>();
  readonly #dependencies: Dependencies;
  #count = 0;
  /** How many buckets still have to be checked for those that were created. */
  #unswept = 0;
  #sweep: Iterator<{ readonly entityId: string; readonly resource: string; readonly cell: Cell }> =
    [].values();
  writes = 0;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  consume(request: ConsumeRequest, extending?: Receipt): ConsumeOutcome {
    this.#dependencies.assertActive();
    const nowMs = this.#dependencies.nowMs();
    this.#forgetSome(nowMs);
    const claims = this.#buildClaims(request, nowMs);
    if (!fits(claims, nowMs)) return this.#refuse(claims, nowMs);
    for (const claim of claims) {
      claim.requests = extending === undefined ? 1 : 0;
      this.#take(claim, nowMs);
      if (claim.policy.hasWindows) claim.windowEnds = listWindowEnds(claim.cell!);
    }
    const taken = new MemoryReceipt(claims);
    return extending === undefined ? taken : (extending as MemoryReceipt).extend(taken);
  }

  charge(request: ConsumeRequest): void {
    this.#dependencies.assertActive();
    const nowMs = this.#dependencies.nowMs();
    this.#forgetSome(nowMs);
    for (const claim of this.#buildClaims(request, nowMs))
      if (takesAnything(claim)) this.#take(claim, nowMs);
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): void {
    const parts = (receipt as MemoryReceipt).end();
    const nowMs = this.#dependencies.nowMs();
    for (const share of settleParts(parts, deltas, this.#levels))
      this.#writeEnd(share.part, share, 0, nowMs);
  }

  giveBack(receipt: Receipt): void {
    const nowMs = this.#dependencies.nowMs();
    for (const part of (receipt as MemoryReceipt).end())
      this.#writeEnd(part, negateDivided(part), -part.requests, nowMs);
  }

  read(request: ConsumeRequest): readonly LimitStatus[] {
    this.#dependencies.assertActive();
    const nowMs = this.#dependencies.nowMs();
    return computeStatuses(this.#buildClaims(request, nowMs), nowMs);
  }

  remembered(receipt: Receipt): readonly LimitStatus[] {
    const { parts } = receipt as MemoryReceipt;
    const findCell = ({ entityId, resource }: CellClaim): Cell | undefined =>
      this.#cells.get(resource)?.get(entityId);
    return computeTakenStatuses(parts, findCell, this.#dependencies.nowMs());
  }

  ofEntity(entityId: string, resource: string | undefined): readonly StoredBucket[] {
    const resources = resource === undefined ? [...this.#cells.keys()].sort() : [resource];
    return resources.flatMap((name) =>
      this.#toStored(entityId, name, this.#cells.get(name)?.get(entityId)),
    );
  }

  ofResource(resource: string): readonly StoredBucket[] {
    return [...(this.#cells.get(resource) ?? [])].flatMap(([entityId, cell]) =>
      this.#toStored(entityId, resource, cell),
    );
  }

  deleteEntity(entityId: string): number {
    const resources = [...this.#cells.keys()].filter((resource) =>
      this.#cells.get(resource)?.has(entityId),
    );
    for (const resource of resources) {
      this.#deleted.add(this.#cells.get(resource)!.get(entityId)!);
      this.#remove(entityId, resource);
    }
    return resources.length;
  }

  clear(): number {
    const count = this.#count;
    for (const cells of this.#cells.values())
      for (const cell of cells.values()) this.#deleted.add(cell);
    this.#cells.clear();
    this.#count = 0;
    return count;
  }

  #buildClaims(request: ConsumeRequest, nowMs: number): CellClaim[] {
    return buildClaims(request, this.#buildClaim, nowMs);
  }

  /** Created once, because each call passes it on. */
  readonly #buildClaim = (wanted: WantedBucket, nowMs: number): CellClaim | undefined => {
    const { entityId, resource, override, defaults } = wanted;
    const cell = this.#cells.get(resource)?.get(entityId);
    const policy = override ?? this.#policy(entityId, resource, cell, defaults);
    if (policy === undefined) return undefined;
    const { amounts, unlimited } = divideWanted(wanted, policy, this.#levels);
    const bucket = withPolicyLimits(cell, policy, nowMs);
    const entity = this.#dependencies.entities.get(entityId);
    return {
      entityId,
      resource,
      policy,
      bucket,
      amounts,
      unlimited,
      costs: costsMilli(bucket, amounts),
      cell,
      isCascaded: wanted.isParent,
      requests: 0,
      windowEnds: undefined,
      leaves: wanted.leave && computeLeaves(policy, wanted.leave),
      parentId: entity?.cascade === true ? entity.parentId : undefined,
    };
  };

  #policy(
    entityId: string,
    resource: string,
    cell: Cell | undefined,
    defaults: Policy | undefined,
  ): Policy | undefined {
    const { policies } = this.#dependencies;
    if (
      cell !== undefined &&
      cell.terms.policy.defaults === defaults &&
      policies.isUnchangedSince(cell.terms.version)
    )
      return cell.terms.policy;
    const { version } = policies;
    const policy = withDefaults(synchronous(policies.resolve(entityId, resource)), defaults);
    if (cell !== undefined && policy !== undefined)
      cell.terms = this.#getTerms(policy, version, cell.limits);
    return policy;
  }

  readonly #levels = (entityId: string, resource: string): Levels =>
    synchronous(this.#dependencies.policies.levels(entityId, resource));

  /** All buckets that have exactly the limits of their policy share its terms: nearly all do. */
  #getTerms(policy: Policy, version: number, limits: readonly BucketLimit[]): Terms {
    if (limits !== policy.bucketLimits) return { policy, version, limits };
    const held = this.#terms.get(policy);
    if (held?.version === version) return held;
    const terms = { policy, version, limits };
    this.#terms.set(policy, terms);
    return terms;
  }

  #refuse(claims: readonly CellClaim[], nowMs: number): ConsumeOutcome {
    const refused = new Refused(claims.map(toDecided), nowMs);
    for (const { cell, policy } of claims) {
      const bucket = afterRefusal(cell, policy, nowMs);
      if (cell !== undefined && bucket !== undefined) this.#replace(cell, bucket);
    }
    return refused;
  }

  /** Takes what a claim wants, whether it fits or not. */
  #take(claim: CellClaim, nowMs: number): void {
    if (claim.cell === undefined)
      claim.cell = this.#create(
        claim,
        claim.policy.source === "override" ? UNRESOLVED : this.#dependencies.policies.version,
      );
    else if (claim.bucket !== claim.cell) this.#replace(claim.cell, claim.bucket);
    this.#write(claim.cell, claim, claim, nowMs);
  }

  #write(cell: Cell, cost: Cost, counted: Counted, nowMs: number): void {
    applyInPlace(cell, cost.costs, nowMs, cost.windowEnds);
    if (cell instanceof MeteredCell)
      this.#dependencies.usage?.record(cell.meter, addDivided(cost), counted, nowMs);
    this.writes += 1;
  }

  /** Stores a bucket that was carried over to other limits. */
  #replace(cell: Cell, bucket: Bucket): void {
    const { policy, version } = cell.terms;
    cell.replace(bucket, this.#getTerms(policy, version, bucket.limits));
  }

  /**
   * Writes the end of a lease to a bucket. If it was dropped meanwhile, it was full and comes back
   * full; if it was deleted, nothing is written.
   */
  #writeEnd(part: CellClaim, share: DividedAmounts, requests: number, nowMs: number): void {
    const { entityId, resource, policy, windowEnds } = part;
    if (part.cell !== undefined && this.#deleted.has(part.cell)) return;
    const cell =
      this.#cells.get(resource)?.get(entityId) ??
      this.#create({ ...part, bucket: fullBucket(policy.bucketLimits, nowMs) }, UNRESOLVED);
    const counted = { requests, isCascaded: part.isCascaded };
    const costs = costsMilli(cell, share.amounts);
    this.#write(cell, { ...share, costs, windowEnds }, counted, nowMs);
  }

  #create({ entityId, resource, policy, bucket }: CellClaim, version: number): Cell {
    const cells = this.#cells.get(resource) ?? new Map<string, Cell>();
    this.#cells.set(resource, cells);
    const { usage } = this.#dependencies;
    const terms = this.#getTerms(policy, version, bucket.limits);
    const cell =
      usage === undefined
        ? new Cell(bucket, terms)
        : new MeteredCell(bucket, terms, usage.meter(entityId, resource));
    cells.set(entityId, cell);
    this.#count += 1;
    if (this.#count > this.#dependencies.forgetAbove) this.#unswept += SWEPT_PER_BUCKET;
    return cell;
  }

  /**
   * Drops buckets that are full again, because a new one would decide the same. A bucket in debt is
   * not full, so it is never dropped. This runs before a call looks up its buckets and never in
   * between: what the call took from a dropped bucket would be lost.
   */
  #forgetSome(nowMs: number): void {
    for (; this.#unswept > 0; this.#unswept -= 1) {
      const { value, done } = this.#sweep.next();
      if (done) this.#sweep = this.#listAll();
      else if (this.#isLikeNew(value, nowMs)) this.#remove(value.entityId, value.resource);
    }
  }

  /**
   * Whether a bucket is full, both under its own limits and under those that apply now: a bucket
   * that an override made small must not come back large.
   */
  #isLikeNew(
    {
      entityId,
      resource,
      cell,
    }: { readonly entityId: string; readonly resource: string; readonly cell: Cell },
    nowMs: number,
  ): boolean {
    if (!isFull(cell, nowMs)) return false;
    const { policy: before } = cell.terms;
    let policy: Policy | undefined;
    try {
      policy = this.#policy(entityId, resource, cell, before.defaults);
    } catch {
      // Its levels have too many limits together. Its own calls report that; this is another's.
      return false;
    }
    if (policy === undefined) return true;
    if (policy !== before && hasPolicyLimits(cell, before))
      this.#replace(cell, withPolicyLimits(cell, policy, nowMs));
    return isFull(withPolicyLimits(cell, policy, nowMs), nowMs);
  }

  *#listAll(): Generator<{
    readonly entityId: string;
    readonly resource: string;
    readonly cell: Cell;
  }> {
    for (const [resource, cells] of this.#cells)
      for (const [entityId, cell] of cells) yield { entityId, resource, cell };
  }

  #remove(entityId: string, resource: string): void {
    const cells = this.#cells.get(resource);
    if (cells?.delete(entityId)) this.#count -= 1;
    if (cells?.size === 0) this.#cells.delete(resource);
  }

  #toStored(entityId: string, resource: string, cell: Cell | undefined): readonly StoredBucket[] {
    return cell === undefined
      ? []
      : [{ entityId, resource, shard: 0, shardCount: 1, bucket: cell.snapshot() }];
  }
}

function synchronous<T>(value: MaybePromise<T>): T {
  if (value instanceof Promise)
    throw new TypeError("The policy source of the memory backend must be synchronous.");
  return value;
}
