import type { Amounts } from "../../core/amounts.ts";
import {
  applyInPlace,
  fullBucket,
  isFull,
  type Bucket,
  type BucketLimit,
} from "../../core/bucket/bucket.ts";
import {
  afterRefusal,
  costsMilli,
  fits,
  isUnder,
  negated,
  statusesOf,
  underPolicy,
  type LimitStatus,
  amountsOf,
  chargesOf,
  limitNamesOf,
  type OwnedCharge,
  type WantedBucket,
} from "../../core/bucket/decision.ts";
import type { Entity } from "../../core/entity.ts";
import type { Policy } from "../../core/bucket/policy.ts";
import { settlementOf } from "../../core/bucket/settlement.ts";
import type { ConsumeOutcome, ConsumeRequest, Receipt, ResourceAmounts } from "../port.ts";
import type { BucketStore, PolicySource, StoredBucket } from "../store.ts";
import { Cell, MeteredCell, type Terms } from "./cell.ts";
import type { MemoryUsage } from "./usage.ts";

/** Below this many buckets nothing is forgotten: they cost about 2 MB. */
export const FORGET_ABOVE = 10_000;

/** Buckets that each new one looks at: two, so that forgetting outpaces creation. */
const SWEPT_PER_BUCKET = 2;

/**
 * The version of a policy that was not resolved: an override, or what a lease began with. The next
 * call asks for the policy that holds.
 */
const UNRESOLVED = -1;

/** One bucket of a call. `cell` is undefined until the bucket exists. */
interface CellCharge extends OwnedCharge {
  readonly costs: readonly number[];
  cell: Cell | undefined;
  /**
   * 1 when it counted as a request: the acquire does, what `lease.consume` takes later does not.
   */
  requests: 0 | 1;
}

/** What is written to a bucket: whole tokens by name, and the same in millitokens by index. */
type Cost = Pick<CellCharge, "amounts" | "costs">;

interface MemoryReceipt extends Receipt {
  parts: readonly CellCharge[];
  ended: boolean;
}

/** What buckets ask of the rest of their namespace. */
interface Dependencies {
  readonly policies: PolicySource;
  readonly entities: { get(entityId: string): Entity | undefined };
  /** Undefined when usage is not recorded. */
  readonly usage: MemoryUsage | undefined;
  readonly nowMs: () => number;
  /** The number of buckets above which full ones are forgotten. */
  readonly forgetAbove: number;
  /** Throws when the namespace does not serve any more. */
  readonly assertActive: () => void;
}

/**
 * Buckets in memory. Every member runs to its end without giving way, so a decision and its write
 * are one step.
 */
export class MemoryBuckets implements BucketStore {
  /**
   * By resource, then by entity: entity ids are the caller's own strings, so no key is ever built.
   */
  readonly #cells = new Map<string, Map<string, Cell>>();
  /**
   * Cells that were deleted, not forgotten: what a lease still owes them is not written anywhere.
   */
  readonly #deleted = new WeakSet<Cell>();
  /** The latest terms of each policy, for all buckets that are under it. */
  readonly #terms = new WeakMap<Policy, Terms>();
  readonly #dependencies: Dependencies;
  #count = 0;
  /** Buckets that are still to be looked at for those that were created. */
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
    const charges = this.#charges(request, nowMs);
    if (!fits(charges, nowMs)) return this.#refuse(charges, nowMs);
    for (const charge of charges) {
      if (charge.cell === undefined)
        charge.cell = this.#create(
          charge,
          charge.policy.source === "override" ? UNRESOLVED : this.#dependencies.policies.version,
        );
      else if (charge.bucket !== charge.cell) this.#replace(charge.cell, charge.bucket);
      charge.requests = extending === undefined ? 1 : 0;
      this.#write(charge.cell, charge, charge.requests, nowMs);
    }
    return {
      granted: true,
      receipt: receiptFor(charges, extending),
      limitNames: limitNamesOf(request, charges),
    };
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): void {
    const { parts } = end(receipt as MemoryReceipt);
    const nowMs = this.#dependencies.nowMs();
    for (const { resource, amounts } of deltas) {
      for (const { part, amounts: share } of settlementOf(parts, resource, amounts))
        this.#writeEnd(part, share, 0, nowMs);
    }
  }

  giveBack(receipt: Receipt): void {
    const { parts } = end(receipt as MemoryReceipt);
    const nowMs = this.#dependencies.nowMs();
    for (const part of parts) this.#writeEnd(part, negated(part.amounts), -part.requests, nowMs);
  }

  read(request: ConsumeRequest): readonly LimitStatus[] {
    this.#dependencies.assertActive();
    const nowMs = this.#dependencies.nowMs();
    return statusesOf(this.#charges(request, nowMs), nowMs);
  }

  ofEntity(entityId: string, resource: string | undefined): readonly StoredBucket[] {
    const resources = resource === undefined ? [...this.#cells.keys()].sort() : [resource];
    return resources.flatMap((name) =>
      this.#stored(entityId, name, this.#cells.get(name)?.get(entityId)),
    );
  }

  ofResource(resource: string): readonly StoredBucket[] {
    return [...(this.#cells.get(resource) ?? [])].flatMap(([entityId, cell]) =>
      this.#stored(entityId, resource, cell),
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

  #charges(request: ConsumeRequest, nowMs: number): readonly CellCharge[] {
    return chargesOf(request, (wanted) => this.#charge(wanted, nowMs));
  }

  #charge(wanted: WantedBucket, nowMs: number): CellCharge | undefined {
    const { entityId, resource, override } = wanted;
    const cell = this.#cells.get(resource)?.get(entityId);
    const policy = override ?? this.#policy(entityId, resource, cell);
    if (policy === undefined) return undefined;
    const amounts = amountsOf(wanted, policy);
    const bucket = underPolicy(cell, policy, nowMs);
    const entity = this.#dependencies.entities.get(entityId);
    return {
      entityId,
      resource,
      policy,
      bucket,
      amounts,
      costs: costsMilli(bucket, amounts),
      cell,
      requests: 0,
      parentId: entity?.cascade === true ? entity.parentId : undefined,
    };
  }

  #policy(entityId: string, resource: string, cell: Cell | undefined): Policy | undefined {
    const { policies } = this.#dependencies;
    if (cell !== undefined && policies.unchangedSince(cell.terms.version)) return cell.terms.policy;
    const { version } = policies;
    const policy = policies.resolve(entityId, resource);
    if (policy instanceof Promise) throw new TypeError("the memory backend answers at once");
    if (cell !== undefined && policy !== undefined)
      cell.terms = this.#termsOf(policy, version, cell.limits);
    return policy;
  }

  /**
   * Terms are shared by all buckets that are written with their policy's own limits: that is nearly
   * all of them.
   */
  #termsOf(policy: Policy, version: number, limits: readonly BucketLimit[]): Terms {
    if (limits !== policy.bucketLimits) return { policy, version, limits };
    const held = this.#terms.get(policy);
    if (held?.version === version) return held;
    const terms = { policy, version, limits };
    this.#terms.set(policy, terms);
    return terms;
  }

  #refuse(charges: readonly CellCharge[], nowMs: number): ConsumeOutcome {
    for (const { cell, policy } of charges) {
      const bucket = afterRefusal(cell, policy, nowMs);
      if (cell !== undefined && bucket !== undefined) this.#replace(cell, bucket);
    }
    return { granted: false, statuses: statusesOf(charges, nowMs) };
  }

  #write(cell: Cell, { amounts, costs }: Cost, requests: number, nowMs: number): void {
    applyInPlace(cell, costs, nowMs);
    if (cell instanceof MeteredCell)
      this.#dependencies.usage?.record(cell.meter, amounts, requests, nowMs);
    this.writes += 1;
  }

  /** The bucket was carried over to other limits. */
  #replace(cell: Cell, bucket: Bucket): void {
    const { policy, version } = cell.terms;
    cell.replace(bucket, this.#termsOf(policy, version, bucket.limits));
  }

  /**
   * Writes what a lease owes to a bucket that may have been forgotten (it was full, and comes back
   * full) or deleted since.
   */
  #writeEnd(part: CellCharge, amounts: Amounts, requests: number, nowMs: number): void {
    const { entityId, resource, policy } = part;
    if (part.cell !== undefined && this.#deleted.has(part.cell)) return;
    const cell =
      this.#cells.get(resource)?.get(entityId) ??
      this.#create({ ...part, bucket: fullBucket(policy.bucketLimits, nowMs) }, UNRESOLVED);
    this.#write(cell, { amounts, costs: costsMilli(cell, amounts) }, requests, nowMs);
  }

  #create({ entityId, resource, policy, bucket }: CellCharge, version: number): Cell {
    const cells = this.#cells.get(resource) ?? new Map<string, Cell>();
    this.#cells.set(resource, cells);
    const { usage } = this.#dependencies;
    const terms = this.#termsOf(policy, version, bucket.limits);
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
   * Drops buckets that have refilled completely: a new one would say the same. Debt is never full,
   * so it is never dropped. Runs before a call looks at its buckets, never while it has them in
   * hand: what it took from a dropped one would be lost.
   */
  #forgetSome(nowMs: number): void {
    for (; this.#unswept > 0; this.#unswept -= 1) {
      const { value, done } = this.#sweep.next();
      if (done) this.#sweep = this.#all();
      else if (this.#isLikeNew(value, nowMs)) this.#remove(value.entityId, value.resource);
    }
  }

  /**
   * Whether a bucket is full as it stands and under the limits that hold now: one that an override
   * made small must not come back large.
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
    const policy = this.#policy(entityId, resource, cell);
    if (policy === undefined) return true;
    if (policy !== before && isUnder(cell, before))
      this.#replace(cell, underPolicy(cell, policy, nowMs));
    return isFull(underPolicy(cell, policy, nowMs), nowMs);
  }

  *#all(): Generator<{
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

  #stored(entityId: string, resource: string, cell: Cell | undefined): readonly StoredBucket[] {
    return cell === undefined
      ? []
      : [{ entityId, resource, shard: 0, shardCount: 1, bucket: cell.snapshot() }];
  }
}

/** A new receipt, or the one that a lease already has with more on it. */
function receiptFor(charges: readonly CellCharge[], extending: Receipt | undefined): MemoryReceipt {
  if (extending === undefined) return { parts: charges, ended: false };
  const receipt = extending as MemoryReceipt;
  receipt.parts = [...receipt.parts, ...charges];
  return receipt;
}

/**
 * Ends a receipt. A second end finds nothing left to do, so a retry after an unknown outcome is
 * harmless.
 */
function end(receipt: MemoryReceipt): { readonly parts: readonly CellCharge[] } {
  const parts = receipt.ended ? [] : receipt.parts;
  receipt.ended = true;
  return { parts };
}
