/*
 * What became of this process's writes to one shard, for its writer:
 *
 *   mark      the id that the next write leaves on the shard. Enough while every write is answered
 *   learn     before each decision: concludes what images show of writes without an answer, and
 *             returns the members that are left to decide
 *   fence     what to write when none of them fits, and a write of one may still arrive
 *   conclude  after each write: it was applied, or got no answer
 *
 * How that works is in operation-ids.ts, unanswered-writes.ts, member-outcomes.ts and fence.ts.
 * Takes that were rejected and are found to have been applied are owed: what they took goes back
 * with the next write.
 */
import { isOpen } from "../../group-commit.ts";
import type { MaybePromise } from "../../port.ts";
import type { KnownBuckets } from "../cache/known-buckets.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import { buildFence, type FenceRequest } from "./fence.ts";
import {
  concludeIfKnown,
  buildGiveBacks,
  hasPendingTake,
  buildUnansweredWrite,
  type BatchMember,
} from "./member-outcomes.ts";
import type { OperationIds, OperationMark } from "./operation-ids.ts";
import { UnansweredWrites } from "./unanswered-writes.ts";
import type { PlannedWrite, WriteMarker } from "./write-plan.ts";

/** The most give-backs that wait for the next write of one shard; the rest stays charged. */
const MAX_OWED = 32;

/** What this process knows of the outcomes of its writes to one shard. */
export class WriteOutcomes implements WriteMarker {
  readonly #ids: OperationIds;
  readonly #known: KnownBuckets;
  readonly #key: BucketKey;
  /** Undefined while every write was answered. */
  #unanswered: UnansweredWrites | undefined;
  #owed: readonly BatchMember[] = [];

  constructor(
    key: BucketKey,
    options: { readonly ids: OperationIds; readonly known: KnownBuckets },
  ) {
    this.#key = key;
    this.#ids = options.ids;
    this.#known = options.known;
  }

  /** An id for the next write, and the slot for it; undefined when no slot is available. */
  mark(slots: BucketImage["slots"], nowMs: number): OperationMark | undefined {
    return this.#ids.next(slots, { nowMs, pending: this.#unanswered?.oldestMark });
  }

  /**
   * The members that are left to decide, when those are concluded whose fate is known: what is owed
   * first, and none when only that is left, which alone is not worth a write. It learns from the
   * image that is written with and from the one that is remembered, because a read that was
   * overtaken may have replaced the former.
   */
  learn(
    members: readonly BatchMember[],
    image: BucketImage | undefined,
  ): MaybePromise<readonly BatchMember[]> {
    this.#resume(members);
    if (this.#unanswered === undefined) return this.#selectOpen(members);
    return this.#learnFrom(this.#unanswered, image).then(() => this.#selectOpen(members));
  }

  /**
   * A write that rules out those of takes which may still arrive, so that these can be refused.
   * Undefined when there are none, or nothing to write to.
   */
  fence(
    members: readonly BatchMember[],
    image: BucketImage | undefined,
    request: Pick<FenceRequest, "nowMs" | "writeUnits">,
  ): PlannedWrite | undefined {
    if (image === undefined || !hasPendingTake(members)) return undefined;
    return buildFence(image, { ...request, key: this.#key, outcomes: this });
  }

  /** Notes a write that was applied: those before it that got no answer were not. */
  concludeApplied({ mark }: PlannedWrite): void {
    if (this.#unanswered === undefined) return;
    this.#unanswered.concludeOvertaken(mark);
    if (this.#unanswered.isEmpty) this.#unanswered = undefined;
  }

  /** Notes a write that got no answer, for the members that it carried and for later writes. */
  concludeUnanswered(write: PlannedWrite, members: readonly BatchMember[]): void {
    const left = buildUnansweredWrite(write, members);
    if (write.mark !== undefined) (this.#unanswered ??= new UnansweredWrites()).add(left);
  }

  /** Resumes the writes that members still wait for: this object may be newer than they are. */
  #resume(members: readonly BatchMember[]): void {
    for (const { work } of members) {
      const pending = work.operation.history?.pending;
      if (pending?.length) (this.#unanswered ??= new UnansweredWrites()).resume(pending);
    }
  }

  /** The ids of a shard that was merged are on the one that it was merged into. */
  async #learnFrom(unanswered: UnansweredWrites, image: BucketImage | undefined): Promise<void> {
    const key = this.#key;
    const seen = this.#known.getImage(key);
    const applied = [image, seen].flatMap((each) => unanswered.learnFrom(each));
    if (seen === undefined && key.shard > 0 && !unanswered.isEmpty) {
      const { shards } = await this.#known.readAll(buildSiblingKey(key, 0));
      const images = shards.map((shard) => shard.image);
      applied.push(...unanswered.concludeMerged(key.shard, images));
    }
    this.#owed = [...this.#owed, ...buildGiveBacks(applied)].slice(-MAX_OWED);
  }

  #selectOpen(members: readonly BatchMember[]): readonly BatchMember[] {
    const all = this.#owed.length === 0 ? members : [...this.#owed, ...members];
    for (const member of all)
      if (member.isOpen && member.work.operation.history !== undefined)
        concludeIfKnown(this.#key, member, this.#known.getImage(this.#key));
    if (all.every(isOpen)) return all;
    this.#owed = this.#owed.filter(isOpen);
    const left = all.filter(isOpen);
    return left.length === this.#owed.length ? [] : left;
  }
}
