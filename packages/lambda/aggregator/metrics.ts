import type { BatchReport } from "zae-limiter/aggregator";

/** The namespace of the metrics in CloudWatch. */
const NAMESPACE = "ZaeLimiter/Aggregator";

/** The metrics of one invocation. */
const UNITS = {
  Records: "Count",
  Failures: "Count",
  Skipped: "Count",
  Lag: "Milliseconds",
  SnapshotWrites: "Count",
  Splits: "Count",
  Merges: "Count",
  Shards: "Count",
  Archived: "Count",
  Dropped: "Count",
} as const;

/**
 * One line in CloudWatch's embedded metric format, from which it makes metrics without any call.
 * Their dimension is the table.
 */
export function metricsLine(report: BatchReport, tableName: string, nowMs: number): string {
  const values: Readonly<Record<keyof typeof UNITS, number>> = {
    Records: report.records,
    Failures: report.failures.length,
    Skipped: report.skipped,
    Lag: report.lagMs,
    SnapshotWrites: report.snapshotWrites,
    Splits: report.splits,
    Merges: report.merges,
    Shards: report.shards,
    Archived: report.archived,
    Dropped: report.dropped,
  };
  return JSON.stringify({
    _aws: {
      Timestamp: nowMs,
      CloudWatchMetrics: [
        {
          Namespace: NAMESPACE,
          Dimensions: [["TableName"]],
          Metrics: Object.entries(UNITS).map(([Name, Unit]) => ({ Name, Unit })),
        },
      ],
    },
    TableName: tableName,
    ...values,
  });
}
