/*
 * Writes that got no answer. They may have been applied, may never arrive, or may still arrive.
 * Their slot shows which, and the next write of the same process to the shard makes sure: it
 * requires the slot exactly as the image shows it, so
 *
 *   it is applied       ──▶ the earlier one was not and cannot be: the slot holds a later id
 *   its condition fails ──▶ the reply shows the slot:
 *                             the earlier id      ──▶ the earlier one was applied
 *                             as before           ──▶ still pending
 *                             another writer's id ──▶ unknown for good
 *
 * The lane of a shard owns its list of pending writes (`UnansweredWrites`); each operation owns its
 * history, which shares these writes and so learns what became of them.
 */
import type { BucketImage } from "../items/bucket-item.ts";
import type { OperationMark } from "./operation-ids.ts";

/** Identifies one of the shards that ever existed at one key. */
export interface ShardIncarnation {
  readonly creation: string | undefined;
  /**
   * The shard's divisor when it was taken from: what goes back belongs to the owners of that class.
   */
  readonly divisor: number;
}

/** What became of a write. */
export type WriteFate = "pending" | "applied" | "not applied" | "unknown";

/** One write that got no answer. */
export class UnansweredWrite {
  /** Undefined for a write without an id: it leaves no trace, so its fate stays unknown. */
  readonly mark: OperationMark | undefined;
  readonly incarnation: ShardIncarnation;
  #fate: WriteFate;

  constructor(mark: OperationMark | undefined, incarnation: ShardIncarnation) {
    this.mark = mark;
    this.incarnation = incarnation;
    this.#fate = mark === undefined ? "unknown" : "pending";
  }

  get fate(): WriteFate {
    return this.#fate;
  }

  /** Notes what became of it. */
  conclude(fate: WriteFate): void {
    this.#fate = fate;
  }
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

  /** The shard that a write was applied to. */
  get appliedTo(): ShardIncarnation | undefined {
    return this.#writes.find(({ fate }) => fate === "applied")?.incarnation;
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
 * Pending writes of one lane. A caller that ends a lease retries at once, with the next batch or
 * the one after it, so nothing waits for older ones.
 */
const MAX_PENDING = 32;

/** The writes of one lane whose fate is open. */
export class UnansweredWrites {
  #pending: readonly UnansweredWrite[] = [];

  /** The oldest of them: the next write must take its slot. */
  get oldestMark(): OperationMark | undefined {
    return this.#pending[0]?.mark;
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

  /** Concludes what an image shows. */
  learnFrom(image: BucketImage | undefined): void {
    for (const write of this.#pending) {
      const fate = fateBy(image, write.mark!);
      if (fate !== "pending") write.conclude(fate);
    }
    this.#pending = this.#pending.filter(({ fate }) => fate === "pending");
  }

  /**
   * A later write of the same process was applied, so the pending ones were not and no longer can
   * be.
   */
  concludeOvertaken(): void {
    for (const write of this.#pending) write.conclude("not applied");
    this.#pending = [];
  }
}

/** What the slot of a write shows about it. */
function fateBy(
  image: BucketImage | undefined,
  { writer, slot, id, seenId }: OperationMark,
): WriteFate {
  const held = image?.slots[slot];
  if (held === undefined) return "pending";
  if (held === id) return "applied";
  // The write could still be applied to the id that it was sent with, or an older one of its
  // writer.
  const canFollow = held === seenId || (held.startsWith(`${writer}.`) && held < id);
  return canFollow ? "pending" : "unknown";
}
