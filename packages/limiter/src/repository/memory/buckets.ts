import { checkNames, type Amounts } from "../../core/amounts.ts";
import { apply, isFull, fullBucket, type Bucket } from "../../core/bucket.ts";
import {
  afterRefusal,
  amountsUnder,
  costsMilli,
  fits,
  isUnder,
  negated,
  statusesOf,
  underPolicy,
  type Charge,
  type LimitStatus,
} from "../../core/decision.ts";
import type { Entity } from "../../core/entity.ts";
import { ValidationError } from "../../core/errors.ts";
import type { Policy } from "../../core/policy.ts";
import type { ConsumeOutcome, ConsumeRequest, Receipt, ResourceAmounts } from "../port.ts";
import type { BucketStore, PolicySource, StoredBucket } from "../store.ts";
import type { MemoryUsage, Meter } from "./usage.ts";

/** Below this many buckets nothing is forgotten: they cost about 2 MB. */
export const FORGET_ABOVE = 10_000;

/** Buckets that each new one looks at: two, so that forgetting outpaces creation. */
const SWEPT_PER_BUCKET = 2;

/** The version of a policy that was not resolved: an override, or what a lease began with. The next call asks for the policy that holds. */
const UNRESOLVED = -1;

/** A bucket in place, with what a decision needs at hand. */
interface Cell {
  bucket: Bucket;
  policy: Policy;
  /** The version of the configuration that `policy` was resolved at. */
  version: number;
  meter: Meter | undefined;
}

/** One bucket of a call. `cell` is undefined until the bucket exists. */
interface CellCharge extends Charge {
  cell: Cell | undefined;
  /** Requests that the charge counted as: 1 for an acquire, 0 for what its lease took later. */
  requests: number;
}

interface MemoryReceipt extends Receipt {
  readonly parts: CellCharge[];
  ended: boolean;
}

/** What buckets ask of the rest of their namespace. */
interface Surroundings {
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

/** Buckets in memory. Every member runs to its end without giving way, so a decision and its write are one step. */
export class MemoryBuckets implements BucketStore {
  /** By resource, then by entity: entity ids are the caller's own strings, so no key is ever built. */
  readonly #cells = new Map<string, Map<string, Cell>>();
  /** Cells that were deleted, not forgotten: what a lease still owes them is not written anywhere. */
  readonly #deleted = new WeakSet<Cell>();
  readonly #surroundings: Surroundings;
  #count = 0;
  /** Buckets that are still to be looked at for those that were created. */
  #unswept = 0;
  #sweep: Iterator<{ readonly entityId: string; readonly resource: string; readonly cell: Cell }> = [].values();
  writes = 0;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  consume(request: ConsumeRequest, extending?: Receipt): ConsumeOutcome {
    this.#surroundings.assertActive();
    const nowMs = this.#surroundings.nowMs();
    this.#forgetSome(nowMs);
    const charges = this.#charges(request, nowMs);
    if (!fits(charges, nowMs)) return this.#refuse(charges, nowMs);
    const receipt = (extending ?? { parts: [], ended: false }) as MemoryReceipt;
    for (const charge of charges) {
      const cell =
        charge.cell ?? this.#create(charge, charge.policy.source === "override" ? UNRESOLVED : this.#surroundings.policies.version);
      charge.cell = cell;
      charge.requests = extending === undefined ? 1 : 0;
      cell.bucket = charge.bucket;
      this.#write(cell, charge.amounts, charge.requests, nowMs);
      receipt.parts.push(charge);
    }
    return {
      granted: true,
      receipt,
      limitNames: request.charges.map(({ resource }) => charges.find((charge) => charge.resource === resource)!.policy.names),
    };
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): void {
    const { parts } = end(receipt as MemoryReceipt);
    const nowMs = this.#surroundings.nowMs();
    for (const { resource, amounts } of deltas) {
      for (const part of oncePerBucket(parts, resource)) this.#writeLater(part, amountsUnder(part.policy, amounts), 0, nowMs);
    }
  }

  giveBack(receipt: Receipt): void {
    const { parts } = end(receipt as MemoryReceipt);
    const nowMs = this.#surroundings.nowMs();
    for (const part of parts) this.#writeLater(part, negated(part.amounts), -part.requests, nowMs);
  }

  read(request: ConsumeRequest): readonly LimitStatus[] {
    this.#surroundings.assertActive();
    const nowMs = this.#surroundings.nowMs();
    return statusesOf(this.#charges(request, nowMs), nowMs);
  }

  ofEntity(entityId: string, resource: string | undefined): readonly StoredBucket[] {
    const resources = resource === undefined ? [...this.#cells.keys()].sort() : [resource];
    return resources.flatMap((name) => this.#stored(entityId, name, this.#cells.get(name)?.get(entityId)));
  }

  ofResource(resource: string): readonly StoredBucket[] {
    return [...(this.#cells.get(resource) ?? [])].flatMap(([entityId, cell]) => this.#stored(entityId, resource, cell));
  }

  deleteEntity(entityId: string): number {
    const resources = [...this.#cells.keys()].filter((resource) => this.#cells.get(resource)?.has(entityId));
    for (const resource of resources) {
      this.#deleted.add(this.#cells.get(resource)!.get(entityId)!);
      this.#remove(entityId, resource);
    }
    return resources.length;
  }

  clear(): number {
    const count = this.#count;
    for (const cells of this.#cells.values()) for (const cell of cells.values()) this.#deleted.add(cell);
    this.#cells.clear();
    this.#count = 0;
    return count;
  }

  /** Every bucket that a call takes from: for each resource the entity's, then its parent's. */
  #charges({ entityId, charges, override }: ConsumeRequest, nowMs: number): CellCharge[] {
    const entity = this.#surroundings.entities.get(entityId);
    const all: CellCharge[] = [];
    for (const { resource, amounts } of charges) {
      const own = this.#charge(entityId, resource, amounts, override, nowMs);
      if (own === undefined)
        throw new ValidationError(
          "limits",
          entityId,
          `no limits are configured for ${entityId} on ${resource}; set some at any level, or pass limits`,
        );
      checkNames(amounts, own.policy.names, "consume");
      all.push(own);
      if (entity?.cascade !== true || entity.parentId === undefined) continue;
      const parents = this.#charge(entity.parentId, resource, amounts, undefined, nowMs);
      if (parents !== undefined) all.push({ ...parents, amounts: amountsUnder(parents.policy, amounts) });
    }
    return all;
  }

  #charge(entityId: string, resource: string, amounts: Amounts, override: Policy | undefined, nowMs: number): CellCharge | undefined {
    const cell = this.#cells.get(resource)?.get(entityId);
    const policy = override ?? this.#policy(entityId, resource, cell);
    if (policy === undefined) return undefined;
    return { entityId, resource, policy, amounts, cell, requests: 0, bucket: underPolicy(cell?.bucket, policy, nowMs) };
  }

  #policy(entityId: string, resource: string, cell: Cell | undefined): Policy | undefined {
    const { policies } = this.#surroundings;
    if (cell !== undefined && policies.unchangedSince(cell.version)) return cell.policy;
    const { version } = policies;
    const policy = policies.resolve(entityId, resource);
    if (policy instanceof Promise) throw new TypeError("the memory backend answers at once");
    if (cell !== undefined && policy !== undefined) Object.assign(cell, { policy, version });
    return policy;
  }

  #refuse(charges: readonly CellCharge[], nowMs: number): ConsumeOutcome {
    for (const { cell, policy } of charges) {
      const bucket = afterRefusal(cell?.bucket, policy, nowMs);
      if (cell !== undefined && bucket !== undefined) cell.bucket = bucket;
    }
    return { granted: false, statuses: statusesOf(charges, nowMs) };
  }

  #write(cell: Cell, amounts: Amounts, requests: number, nowMs: number): void {
    cell.bucket = apply(cell.bucket, costsMilli(cell.bucket, amounts), nowMs);
    if (cell.meter !== undefined) this.#surroundings.usage?.record(cell.meter, amounts, requests, nowMs);
    this.writes += 1;
  }

  /** Writes what a lease owes to a bucket that may have been forgotten (it was full, and comes back full) or deleted since. */
  #writeLater(part: CellCharge, amounts: Amounts, requests: number, nowMs: number): void {
    const { entityId, resource, policy } = part;
    if (part.cell !== undefined && this.#deleted.has(part.cell)) return;
    const cell =
      this.#cells.get(resource)?.get(entityId) ?? this.#create({ ...part, bucket: fullBucket(policy.bucketLimits, nowMs) }, UNRESOLVED);
    this.#write(cell, amounts, requests, nowMs);
  }

  #create({ entityId, resource, policy, bucket }: CellCharge, version: number): Cell {
    const cells = this.#cells.get(resource) ?? new Map<string, Cell>();
    this.#cells.set(resource, cells);
    const cell: Cell = { bucket, policy, version, meter: this.#surroundings.usage?.meter(entityId, resource) };
    cells.set(entityId, cell);
    this.#count += 1;
    if (this.#count > this.#surroundings.forgetAbove) this.#unswept += SWEPT_PER_BUCKET;
    return cell;
  }

  /**
   * Drops buckets that have refilled completely: a new one would say the same. Debt is never full, so it is never dropped. Runs before a
   * call looks at its buckets, never while it has them in hand: what it took from a dropped one would be lost.
   */
  #forgetSome(nowMs: number): void {
    for (; this.#unswept > 0; this.#unswept -= 1) {
      const { value, done } = this.#sweep.next();
      if (done) this.#sweep = this.#all();
      else if (this.#saysNothing(value, nowMs)) this.#remove(value.entityId, value.resource);
    }
  }

  /** Whether a bucket is full as it stands and under the limits that hold now: one that an override made small must not come back large. */
  #saysNothing(
    { entityId, resource, cell }: { readonly entityId: string; readonly resource: string; readonly cell: Cell },
    nowMs: number,
  ): boolean {
    if (!isFull(cell.bucket, nowMs)) return false;
    const { policy: before } = cell;
    const policy = this.#policy(entityId, resource, cell);
    if (policy === undefined) return true;
    if (policy !== before && isUnder(cell.bucket, before)) cell.bucket = underPolicy(cell.bucket, policy, nowMs);
    return isFull(underPolicy(cell.bucket, policy, nowMs), nowMs);
  }

  *#all(): Generator<{ readonly entityId: string; readonly resource: string; readonly cell: Cell }> {
    for (const [resource, cells] of this.#cells) for (const [entityId, cell] of cells) yield { entityId, resource, cell };
  }

  #remove(entityId: string, resource: string): void {
    const cells = this.#cells.get(resource);
    if (cells?.delete(entityId)) this.#count -= 1;
    if (cells?.size === 0) this.#cells.delete(resource);
  }

  #stored(entityId: string, resource: string, cell: Cell | undefined): readonly StoredBucket[] {
    return cell === undefined ? [] : [{ entityId, resource, shard: 0, shardCount: 1, bucket: cell.bucket }];
  }
}

/** Ends a receipt. A second end finds nothing left to do, so a retry after an unknown outcome is harmless. */
function end(receipt: MemoryReceipt): { readonly parts: readonly CellCharge[] } {
  const parts = receipt.ended ? [] : receipt.parts;
  receipt.ended = true;
  return { parts };
}

/** The buckets of one resource that a lease took from, each once, however often it took. */
function oncePerBucket(parts: readonly CellCharge[], resource: string): readonly CellCharge[] {
  return parts.filter(
    (part, index) =>
      part.resource === resource && parts.findIndex((other) => other.entityId === part.entityId && other.resource === resource) === index,
  );
}
