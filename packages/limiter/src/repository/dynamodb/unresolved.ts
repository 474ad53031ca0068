/*
 * Writes that got no answer. They may have been applied, may never arrive, or may still arrive.
 * What they left in their slot tells, and the next write of the same process to the bucket makes
 * sure: it requires the slot exactly as the image shows it, so
 *
 *   it is applied       ──▶ the earlier one was not, and cannot be any more: the slot holds a later id
 *   its condition fails ──▶ the reply shows the slot:  the earlier id      ──▶ the earlier one was applied
 *                                                      as before           ──▶ still pending
 *                                                      another writer's id ──▶ nobody can tell any more
 */
import type { BucketImage } from "./bucket-item.ts";
import type { ShardLife } from "./bucket-plan.ts";
import type { OperationMark } from "./expressions.ts";

/** A write whose outcome is, or was, not known. */
export interface Unresolved {
  readonly mark: OperationMark;
  readonly life: ShardLife;
  outcome: "pending" | "applied" | "not applied" | "unknown";
}

/** What has become of one operation so far, over all its attempts and those of its caller. */
export interface OperationHistory {
  /**
   * Its writes that got no answer. At most one of them was applied: each but the first required
   * that no earlier one was.
   */
  unanswered: readonly Unresolved[];
  /**
   * Whether what it gives back may have been given back, so that only what it charges may be
   * written again.
   */
  onlyCharges: boolean;
}

/** The history of an operation that was never tried. */
export function newHistory(): OperationHistory {
  return { unanswered: [], onlyCharges: false };
}

/**
 * Whoever ends a lease tries again at once, with the next batch or the one after it: what is older
 * than this, nobody asks for.
 */
const MAX_UNRESOLVED = 32;

/**
 * Remembers one more, however long the table is away: of the oldest nobody can tell any more what
 * became of it.
 */
export function withUnresolved(
  unresolved: readonly Unresolved[],
  write: Unresolved,
): readonly Unresolved[] {
  const all = [...unresolved, write];
  for (const forgotten of all.slice(0, -MAX_UNRESOLVED)) forgotten.outcome = "unknown";
  return all.slice(-MAX_UNRESOLVED);
}

/** Concludes what an image tells about pending writes; answers those that are still pending. */
export function stillPending(
  unresolved: readonly Unresolved[],
  image: BucketImage | undefined,
): readonly Unresolved[] {
  for (const write of unresolved) {
    const held = image?.slots[write.mark.slot];
    if (held === undefined) continue;
    if (held === write.mark.id) write.outcome = "applied";
    else if (!canFollow(write.mark, held)) write.outcome = "unknown";
  }
  return unresolved.filter(({ outcome }) => outcome === "pending");
}

/** Whether any write of an operation was applied, may be, or may have been. */
export function outcomeOf({ unanswered }: OperationHistory): Unresolved["outcome"] {
  const outcomes = new Set(unanswered.map(({ outcome }) => outcome));
  return (
    (["applied", "unknown", "pending"] as const).find((outcome) => outcomes.has(outcome)) ??
    "not applied"
  );
}

/**
 * A later write of the same process was applied: the pending ones can neither have been, nor ever
 * be.
 */
export function overtaken(unresolved: readonly Unresolved[]): void {
  for (const write of unresolved) write.outcome = "not applied";
}

/**
 * Whether a write could still be applied to a slot that holds this id: what it was sent with, or an
 * older one of its writer.
 */
function canFollow({ writer, id, seenId }: OperationMark, held: string): boolean {
  return held === seenId || (held.startsWith(`${writer}.`) && held < id);
}
