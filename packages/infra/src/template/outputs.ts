import { AGGREGATOR, DLQ } from "./aggregator.ts";
import { ARCHIVE } from "./archive.ts";
import { getAtt, ref, sub, type Output, type Value } from "./cloudformation.ts";
import type { ConditionName } from "./conditions.ts";
import { POLICY_SUFFIXES } from "./parameters.ts";
import { BOUNDARY_ARN } from "./roles.ts";
import { TABLE, TABLE_ARN, TABLE_NAME } from "./table.ts";

/** What a stack tells others: exports are named `{stack}-{name}`. */
export function outputs(): Readonly<Record<string, Output>> {
  return {
    TableName: output("The name of the table.", TABLE_NAME, "TableName"),
    TableArn: output("The ARN of the table.", TABLE_ARN, "TableArn"),
    StreamArn: output("The ARN of the table's stream.", getAtt(TABLE, "StreamArn"), "StreamArn"),
    ...aggregatorOutputs(),
    ...alarmOutputs(),
    ...policyOutputs(),
    ...roleOutputs("App", "applications"),
    ...roleOutputs("Admin", "administrators"),
    ...roleOutputs("ReadOnly", "monitoring"),
    PermissionBoundaryArn: output(
      "The ARN of the policy that bounds roles.",
      BOUNDARY_ARN,
      "PermissionBoundaryArn",
      "HasPermissionBoundary",
    ),
    RoleNameFormat: output(
      "The format that the names of roles were made with.",
      ref("RoleNameFormat"),
      "RoleNameFormat",
      "HasRoleNameFormat",
    ),
    SchemaVersion: { Description: "The version of the items.", Value: ref("SchemaVersion") },
  };
}

function aggregatorOutputs(): Readonly<Record<string, Output>> {
  const lambda = "DeployAggregatorLambda";
  const archive = "DeployAuditArchive";
  return {
    AggregatorFunctionArn: output(
      "The ARN of the aggregator.",
      getAtt(AGGREGATOR, "Arn"),
      "AggregatorArn",
      lambda,
    ),
    AggregatorFunctionName: output(
      "The name of the aggregator.",
      ref(AGGREGATOR),
      "AggregatorName",
      lambda,
    ),
    AggregatorDLQUrl: output(
      "The queue for what the aggregator could not do.",
      ref(DLQ),
      "DLQUrl",
      lambda,
    ),
    AggregatorDLQArn: output("The ARN of that queue.", getAtt(DLQ, "Arn"), "DLQArn", lambda),
    CodeBucketName: output(
      "The bucket that holds the code of the functions.",
      ref("CodeBucket"),
      "CodeBucketName",
      lambda,
    ),
    AuditArchiveBucketName: output(
      "The bucket of the audit archive.",
      ref(ARCHIVE),
      "AuditArchiveBucketName",
      archive,
    ),
    AuditArchiveBucketArn: output(
      "The ARN of that bucket.",
      getAtt(ARCHIVE, "Arn"),
      "AuditArchiveBucketArn",
      archive,
    ),
  };
}

/** Alarms by their outputs, whose exports have the names of the Python zae-limiter. */
function alarmOutputs(): Readonly<Record<string, Output>> {
  const aggregator = {
    AggregatorDLQ: "DLQ",
    LambdaErrorRate: "LambdaErrorRate",
    LambdaDuration: "LambdaDuration",
    StreamIteratorAge: "StreamIteratorAge",
    AggregatorFailures: "AggregatorFailures",
    AggregatorLag: "AggregatorLag",
    SplitGrowth: "SplitGrowth",
  };
  const table = { DynamoDBReadThrottle: "ReadThrottle", DynamoDBWriteThrottle: "WriteThrottle" };
  return {
    ...namesOfAlarms(aggregator, "DeployAggregatorAlarms"),
    ...namesOfAlarms(table, "DeployAlarms"),
  };
}

function namesOfAlarms(
  exports: Readonly<Record<string, string>>,
  condition: ConditionName,
): Readonly<Record<string, Output>> {
  return Object.fromEntries(
    Object.entries(exports).map(([id, name]) => [
      `${id}AlarmName`,
      output("The name of an alarm.", ref(`${id}Alarm`), `${name}AlarmName`, condition),
    ]),
  );
}

function policyOutputs(): Readonly<Record<string, Output>> {
  return Object.fromEntries(
    Object.keys(POLICY_SUFFIXES).map((part) => [
      `${part}PolicyArn`,
      output("The ARN of a policy.", ref(`${part}Policy`), `${part}PolicyArn`, "DeployIAM"),
    ]),
  );
}

function roleOutputs(part: string, who: string): Readonly<Record<string, Output>> {
  const condition = "DeployIAMRolesWithIAM";
  return {
    [`${part}RoleArn`]: output(
      `The ARN of the role for ${who}.`,
      getAtt(`${part}Role`, "Arn"),
      `${part}RoleArn`,
      condition,
    ),
    [`${part}RoleName`]: output("Its name.", ref(`${part}Role`), `${part}RoleName`, condition),
  };
}

function output(
  description: string,
  value: Value,
  exported: string,
  condition?: ConditionName,
): Output {
  return {
    ...(condition !== undefined && { Condition: condition }),
    Description: description,
    Value: value,
    Export: { Name: sub(`\${AWS::StackName}-${exported}`) },
  };
}
