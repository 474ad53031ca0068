/** What the buckets of one repository have done; see `RepositoryStatistics`. */
export interface BucketCounts {
  writes: number;
  failedConditions: number;
  batches: number;
  batchedOperations: number;
  refusalsFromMemory: number;
  splits: number;
}

/** Counts that begin. */
export function newCounts(): BucketCounts {
  return {
    writes: 0,
    failedConditions: 0,
    batches: 0,
    batchedOperations: 0,
    refusalsFromMemory: 0,
    splits: 0,
  };
}
