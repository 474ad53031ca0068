/*
 * Writes that got no answer. They may have been applied, may never arrive, or may still arrive. An
 * image of the shard, from any reply, shows which of these by the slot of the write:
 *
 *   its own id                                   ──▶ applied
 *   as required, or an older id of the writer
 *     the version or the stamp has moved on      ──▶ not applied, and never will be
 *     neither has                                ──▶ pending: it may still arrive
 *   another writer's id, which took it over
 *     from its own id                            ──▶ applied
 *     from what was required                     ──▶ not applied, and never will be
 *     from anything else                         ──▶ unknown for good
 *   nothing, though the version has moved on     ──▶ unknown: the shard may have been merged, and
 *                                                    split off again with empty slots
 *
 * A shard that was merged into another has no image any more; the other keeps its slots (ADR 012).
 *
 * Versions and stamps only grow, and a slot never holds an earlier id again. The next write of the
 * same process to the shard requires the slot exactly as the image shows it. If it is applied, the
 * pending ones were not and cannot be: the slot holds a later id. Where there is nothing to write,
 * a fence does that (fence.ts). A write that creates the bucket leaves its id in `cr` for good.
 *
 * `WriteOutcomes` owns the list of a shard's pending writes (`UnansweredWrites`); each operation
 * owns its history, which shares these writes and so learns what became of them (ADR 009).
 */
import type { Policy } from "../../../core/bucket/policy.ts";
import type { WindowEnds } from "../../../core/bucket/windows.ts";
import type { BatchStep } from "./batch-decision.ts";
import type { BucketImage, MergedIds } from "../items/bucket-item.ts";
import { findPredecessor, withoutPredecessor, type OperationMark } from "./operation-ids.ts";

/** Identifies one of the shards that ever existed at one key. */
export interface ShardIncarnation {
  readonly creation: string | undefined;
  /**
   * The shard's divisor when it was taken from: what goes back belongs to the owners of that class.
   */
  readonly divisor: number;
  /**
   * When it had last been split or merged: since another time, what is missing there may be spread
   * over other shards.
   */
  readonly splitAtMs: number | undefined;
  /** The windows that a write charged, by limit; undefined where no limit has windows. */
  readonly windowEnds?: WindowEnds | undefined;
}

/** What became of a write. */
export type WriteFate = "pending" | "applied" | "not applied" | "unknown";

/** What an update required of the shard, beside its balances and its slot. */
export interface RequiredState {
  readonly version: number;
  /** The stamp, when it had to be equal; undefined when others may have refilled since. */
  readonly refilledAtMs: number | undefined;
}

/** A take that a write carried; it is open until its caller has got an answer. */
export interface CarriedTake {
  readonly isOpen: boolean;
  readonly work: {
    readonly intent: Pick<BatchStep, "costs" | "isCascaded"> & { readonly requests: number };
    /** The policy that it was decided with. */
    readonly policy: Policy | undefined;
  };
}

/** One write that got no answer. */
export class UnansweredWrite {
  /** Undefined for a write without an id: it leaves no trace, so its fate stays unknown. */
  readonly mark: OperationMark | undefined;
  readonly incarnation: ShardIncarnation;
  /** The policy that its takes and charges were decided with; undefined when it carried none. */
  readonly policy: Policy | undefined;
  readonly #requires: RequiredState | undefined;
  readonly #takes: readonly CarriedTake[];
  #fate: WriteFate;

  constructor(options: {
    readonly mark: OperationMark | undefined;
    readonly incarnation: ShardIncarnation;
    /** Undefined for a write that creates the bucket. */
    readonly requires: RequiredState | undefined;
    readonly takes: readonly CarriedTake[];
    readonly policy?: Policy | undefined;
  }) {
    this.mark = options.mark;
    this.policy = options.policy;
    this.incarnation = options.incarnation;
    this.#requires = options.requires;
    this.#takes = options.takes;
    this.#fate = this.mark === undefined ? "unknown" : "pending";
  }

  get fate(): WriteFate {
    return this.#fate;
  }

  /** Whether it was to create the bucket. */
  get creates(): boolean {
    return this.#requires === undefined;
  }

  /**
   * The takes that it carried and that were rejected since. Those that are still open when it is
   * found to be applied are granted.
   */
  get rejectedTakes(): readonly CarriedTake[] {
    return this.#takes.filter(({ isOpen }) => !isOpen);
  }

  /** Notes what became of it. */
  conclude(fate: WriteFate): void {
    this.#fate = fate;
  }

  /** Notes what an image shows about it. */
  learnFrom(image: BucketImage): void {
    if (this.mark === undefined) return;
    const { creation, version, bucket, slots } = image;
    if (this.#requires === undefined) {
      if (creation === this.mark.id) this.#fate = "applied";
      return;
    }
    const { version: required, refilledAtMs = Infinity } = this.#requires;
    const isSame = creation === this.incarnation.creation;
    // An answer from before the write was planned: answers overtake each other.
    if (isSame && version < required) return;
    const isRefilled = bucket.refilledAtMs > refilledAtMs;
    const moved = version > required ? "version moved" : isRefilled ? "stamp moved" : "unmoved";
    this.#fate = fateIn(slots, this.mark, isSame ? moved : "unrelated");
  }

  /**
   * Notes what the ids show about it that were kept when its shard was merged into another. They
   * are the last ones of the life that it was sent to, if the version is the one that it required.
   */
  learnFromMerged(kept: MergedIds | undefined): void {
    const isSameVersion = kept?.version === this.#requires?.version;
    const since = isSameVersion ? "stamp moved" : "version moved";
    const fate = fateIn(kept?.slots ?? [], this.mark!, since);
    this.#fate = fate === "pending" ? "unknown" : fate;
  }
}

/**
 * How a shard compares with what a write required: whether its version or its stamp has grown
 * beyond that. Little follows from a bucket that was created in its place.
 */
export type Since = "unmoved" | "stamp moved" | "version moved" | "unrelated";

/**
 * What slots show about a write: those of its shard, or those that another shard keeps of it, whose
 * version has moved then.
 */
export function fateIn(
  slots: readonly (string | undefined)[],
  mark: OperationMark,
  since: Since,
): WriteFate {
  const { slot, id, seenId } = mark;
  const held = slots[slot];
  const canArrive = since === "unmoved" || since === "unrelated";
  if (held === id) return "applied";
  if (held === undefined) {
    if (since === "version moved") return "unknown";
    return canArrive || seenId !== undefined ? "pending" : "not applied";
  }
  if (held === seenId || isEarlier(held, mark)) return canArrive ? "pending" : "not applied";
  const taken = findPredecessor(held);
  if (taken === withoutPredecessor(id)) return "applied";
  if (taken === undefined || since === "unrelated") return "unknown";
  const wasRequired =
    taken === ""
      ? seenId === undefined && since !== "version moved"
      : taken === withoutPredecessor(seenId ?? "") || isEarlier(taken, mark);
  return wasRequired ? "not applied" : "unknown";
}

/** Whether an id is an earlier one of the same writer. */
function isEarlier(held: string, { writer, id }: OperationMark): boolean {
  return held.startsWith(`${writer}.`) && held < id;
}

/**
 * What has become of one operation so far, over all its attempts and those of its caller. Made when
 * the first of its writes gets no answer.
 */
export class OperationHistory {
  #writes: readonly UnansweredWrite[] = [];
  #onlyCharges = false;

  /** Whether it is to be concluded by what became of its writes. */
  get isUnanswered(): boolean {
    return this.#writes.length > 0;
  }

  /**
   * Whether what it gives back may have been given back, so that only what it charges may be
   * written again.
   */
  get onlyCharges(): boolean {
    return this.#onlyCharges;
  }

  /**
   * Whether any of its writes was applied, may be, or may have been. At most one of them was: each
   * but the first required that no earlier one was.
   */
  get fate(): WriteFate {
    const fates = new Set(this.#writes.map(({ fate }) => fate));
    return FATES_BY_WEIGHT.find((fate) => fates.has(fate)) ?? "not applied";
  }

  /** The write that was applied. */
  get applied(): UnansweredWrite | undefined {
    return this.#writes.find(({ fate }) => fate === "applied");
  }

  /** Its writes whose fate is still open. */
  get pending(): readonly UnansweredWrite[] {
    return this.#writes.filter(({ fate }) => fate === "pending");
  }

  /** Adds a write that got no answer. */
  add(write: UnansweredWrite): void {
    this.#writes = [...this.#writes, write];
  }

  /** Gives up on what it gives back; what it charges is written afresh. */
  keepOnlyCharges(): void {
    this.#onlyCharges = true;
    this.#writes = [];
  }
}

const FATES_BY_WEIGHT = ["applied", "unknown", "pending"] as const;

/**
 * Pending writes of one shard. A caller that ends a lease retries at once, with the next batch or
 * the one after it, so nothing waits for older ones.
 */
const MAX_PENDING = 32;

/** The writes to one shard whose fate is open. */
export class UnansweredWrites {
  #pending: readonly UnansweredWrite[] = [];

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  /**
   * The oldest of them: the next write must take its slot. One that creates the bucket needs none.
   */
  get oldestMark(): OperationMark | undefined {
    return this.#pending.find(({ creates }) => !creates)?.mark;
  }

  /** Adds a write; when there are too many, the fate of the oldest is given up as unknown. */
  add(write: UnansweredWrite): void {
    const all = [...this.#pending, write];
    for (const forgotten of all.slice(0, -MAX_PENDING)) forgotten.conclude("unknown");
    this.#pending = all.slice(-MAX_PENDING);
  }

  /** Resumes pending writes of operations that are in a new batch. */
  resume(writes: readonly UnansweredWrite[]): void {
    this.#pending = [...new Set([...this.#pending, ...writes])];
  }

  /** Concludes what an image shows; returns the writes that were applied. */
  learnFrom(image: BucketImage | undefined): readonly UnansweredWrite[] {
    if (image === undefined) return [];
    for (const write of this.#pending) write.learnFrom(image);
    const applied = this.#pending.filter(({ fate }) => fate === "applied");
    for (const write of applied)
      concludeOvertaken(this.#pending.slice(0, this.#pending.indexOf(write)), write.mark);
    this.#keepPending();
    return applied;
  }

  /**
   * Concludes all of them: their shard is gone. If it was merged into one of the others, that one
   * has kept its ids. Returns the writes that were applied.
   */
  concludeMerged(gone: number, others: readonly BucketImage[]): readonly UnansweredWrite[] {
    const concluded = this.#pending;
    for (const write of concluded) {
      const { creation } = write.incarnation;
      const kept = others
        .filter((image) => image.creation === creation)
        .flatMap(({ mergedIds }) => mergedIds)
        .findLast(({ shard }) => shard === gone);
      write.learnFromMerged(kept);
    }
    this.#keepPending();
    return concluded.filter(({ fate }) => fate === "applied");
  }

  /**
   * A later write of the same process was applied, so the pending ones of its slot were not and no
   * longer can be.
   */
  concludeOvertaken(later: OperationMark | undefined): void {
    concludeOvertaken(this.#pending, later);
    this.#keepPending();
  }

  #keepPending(): void {
    this.#pending = this.#pending.filter(({ fate }) => fate === "pending");
  }
}

/**
 * Concludes writes that were pending when a later one was planned, which was applied: it required
 * their slot as the image showed it, and a bucket that none of them had created.
 */
function concludeOvertaken(
  writes: readonly UnansweredWrite[],
  later: OperationMark | undefined,
): void {
  for (const write of writes)
    if (write.fate !== "applied" && (write.creates || write.mark?.slot === later?.slot))
      write.conclude("not applied");
}
