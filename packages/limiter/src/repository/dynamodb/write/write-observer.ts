import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";

/** What the buckets of one repository have written; see `RepositoryStatistics`. */
export interface WriteCounts {
  writes: number;
  failedConditions: number;
  batches: number;
  batchedOperations: number;
}

/** What they have done in all. */
export interface BucketCounts extends WriteCounts {
  refusalsFromMemory: number;
  splits: number;
  merges: number;
}

/** Counts that begin at 0. */
export function newCounts(): BucketCounts {
  return {
    writes: 0,
    failedConditions: 0,
    batches: 0,
    batchedOperations: 0,
    refusalsFromMemory: 0,
    splits: 0,
    merges: 0,
  };
}

/** Is notified of the outcomes of writes. */
export interface WriteObserver {
  /** A write brought back the image of a shard; it was sent at `sentAtMs`. */
  noteWrite(key: BucketKey, image: BucketImage, sentAtMs: number): void;
  /**
   * DynamoDB throttled a write to a shard, and did not say that it was because of the table or the
   * account; `isOfKeys` when it said that it was because of the keys.
   */
  noteThrottled(key: BucketKey, isOfKeys: boolean): void;
}
