import { STREAM_FILTERS } from "zae-limiter/aggregator";
import { ARCHIVE } from "./archive.ts";
import { getAtt, ref, sub, when, type Resources } from "../cloudformation/template.ts";
import { functionId, functionResources } from "./functions.ts";
import { TABLE, TABLE_NAME } from "./table.ts";

/** The logical id of the aggregator's function. */
export const AGGREGATOR = functionId("Aggregator");

/** The logical id of the queue for records that the aggregator could not process. */
export const DLQ = "AggregatorDLQ";

/** The function that reads the table's stream, what invokes it, and what it leaves behind. */
export function aggregatorResources(): Resources {
  return { ...ownResources(), ...streamResources(), ...pulseResources() };
}

function ownResources(): Resources {
  return {
    [DLQ]: {
      Type: "AWS::SQS::Queue",
      Condition: "DeployAggregatorLambda",
      Properties: {
        QueueName: sub("${AWS::StackName}-aggregator-dlq"),
        MessageRetentionPeriod: 1_209_600,
        VisibilityTimeout: 300,
        SqsManagedSseEnabled: true,
      },
    },
    ...functionResources("Aggregator", {
      Description: "Sums up the usage of zae-limiter from the stream of its table.",
      Role: when(
        "UseExternalAggregatorRole",
        ref("AggregatorRoleArn"),
        getAtt("AggregatorRole", "Arn"),
      ),
      MemorySize: ref("LambdaMemorySize"),
      Timeout: ref("LambdaTimeout"),
      ReservedConcurrentExecutions: when(
        "HasReservedConcurrency",
        ref("AggregatorReservedConcurrency"),
      ),
      TracingConfig: { Mode: when("TracingEnabled", "Active", "PassThrough") },
      // For pulses, which are invocations without an answer.
      DeadLetterConfig: { TargetArn: getAtt(DLQ, "Arn") },
      Environment: {
        Variables: {
          TABLE_NAME,
          SNAPSHOT_WINDOWS: ref("SnapshotWindows"),
          SNAPSHOT_TTL_DAYS: sub("${SnapshotRetentionDays}"),
          BUCKET_TTL_MULTIPLIER: sub("${BucketTtlMultiplier}"),
          ENABLE_ARCHIVAL: ref("EnableAuditArchival"),
          ARCHIVE_BUCKET_NAME: when("DeployAuditArchive", ref(ARCHIVE)),
        },
      },
    }),
  };
}

/** The reasons of these settings are in the README of packages/lambda, and in ADR 018. */
function streamResources(): Resources {
  return {
    AggregatorEventSourceMapping: {
      Type: "AWS::Lambda::EventSourceMapping",
      Condition: "DeployAggregatorLambda",
      Properties: {
        EventSourceArn: getAtt(TABLE, "StreamArn"),
        FunctionName: ref(AGGREGATOR),
        StartingPosition: "TRIM_HORIZON",
        FunctionResponseTypes: ["ReportBatchItemFailures"],
        BatchSize: 1000,
        BisectBatchOnFunctionError: true,
        MaximumRetryAttempts: -1,
        MaximumRecordAgeInSeconds: -1,
        FilterCriteria: {
          Filters: STREAM_FILTERS.map((pattern) => ({ Pattern: pattern })),
        },
        DestinationConfig: { OnFailure: { Destination: getAtt(DLQ, "Arn") } },
      },
    },
  };
}

function pulseResources(): Resources {
  return {
    AggregatorPulse: {
      Type: "AWS::Events::Rule",
      Condition: "DeployAggregatorLambda",
      Properties: {
        Name: sub("${AWS::StackName}-aggregator-pulse"),
        Description: "Shows readers each minute that usage is up to date, also without calls.",
        ScheduleExpression: "rate(1 minute)",
        Targets: [{ Id: "aggregator", Arn: getAtt(AGGREGATOR, "Arn") }],
      },
    },
    AggregatorPulsePermission: {
      Type: "AWS::Lambda::Permission",
      Condition: "DeployAggregatorLambda",
      Properties: {
        FunctionName: ref(AGGREGATOR),
        Action: "lambda:InvokeFunction",
        Principal: "events.amazonaws.com",
        SourceArn: getAtt("AggregatorPulse", "Arn"),
      },
    },
  };
}
