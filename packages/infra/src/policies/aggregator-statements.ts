import type { Value } from "../cloudformation/template.ts";
import { policyDocument } from "./policy-document.ts";
import { allow, below, type PolicyStatement } from "./policy-statements.ts";

/** What an aggregator works on. */
export interface AggregatorResources {
  readonly tableArn: Value;
  readonly streamArn: Value;
  /** The bucket that audit events are archived to, if there is one. */
  readonly archiveBucketArn?: Value;
}

/**
 * The rights of the Lambda that aggregates. It merges buckets as clients do, counts usage, and
 * writes its heartbeat; it can change no limits and no entity.
 * @example const statements = aggregatorStatements({ tableArn, streamArn });
 */
export function aggregatorStatements({
  tableArn,
  streamArn,
  archiveBucketArn,
}: AggregatorResources): readonly PolicyStatement[] {
  return [
    ...policyDocument("acquire-only", tableArn).Statement,
    allow({
      sid: "WriteUsageAndHeartbeat",
      actions: ["dynamodb:UpdateItem"],
      resources: tableArn,
      keys: ["*/ENTITY#*", TABLE_PARTITION],
    }),
    allow({
      sid: "ReadStream",
      actions: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"],
      resources: streamArn,
    }),
    ...(archiveBucketArn === undefined ? [] : [archiveStatement(archiveBucketArn)]),
  ];
}

/** Adding to the archive of audit events. */
export function archiveStatement(archiveBucketArn: Value): PolicyStatement {
  return allow({
    sid: "Archive",
    actions: ["s3:PutObject"],
    resources: below(archiveBucketArn, "*"),
  });
}

/**
 * The rights of `zae-limiter aggregate`, a process that reads the stream itself. It finds the
 * stream by itself.
 * @example const statements = runnerStatements({ tableArn, streamArn, archiveBucketArn });
 */
export function runnerStatements(resources: AggregatorResources): readonly PolicyStatement[] {
  return [
    ...aggregatorStatements(resources),
    allow({
      sid: "FindStream",
      actions: ["dynamodb:DescribeTable"],
      resources: resources.tableArn,
    }),
  ];
}

/** The partition of what belongs to the table: heartbeat, pulse, lease of the stream. */
const TABLE_PARTITION = "_/SYSTEM#";
