import type { BatchReport } from "zae-limiter/aggregator";

/** The report of a batch in which nothing happened. */
export const QUIET: BatchReport = {
  records: 0,
  counted: 0,
  skipped: 0,
  snapshotWrites: 0,
  archived: 0,
  dropped: 0,
  splits: 0,
  merges: 0,
  shards: 0,
  lagMs: 0,
  failures: [],
};
