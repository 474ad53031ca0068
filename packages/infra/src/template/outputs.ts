import { AGGREGATOR, DLQ } from "./aggregator.ts";
import { ARCHIVE } from "./archive.ts";
import { getAtt, ref, sub, type Output, type Value } from "../cloudformation/template.ts";
import type { ConditionName } from "./conditions.ts";
import { functionId } from "./functions.ts";
import { POLICY_SUFFIXES } from "./parameters.ts";
import { BOUNDARY_ARN } from "./roles.ts";
import { TABLE, TABLE_ARN, TABLE_NAME } from "./table.ts";

/** The outputs of a stack: exports are named `{stack}-{name}`. */
export function outputs(): Readonly<Record<string, Output>> {
  return {
    TableName: output(TABLE_NAME, "TableName"),
    TableArn: output(TABLE_ARN, "TableArn"),
    StreamArn: output(getAtt(TABLE, "StreamArn"), "StreamArn"),
    ...aggregatorOutputs("DeployAggregatorLambda"),
    CodeBucketName: output(ref("CodeBucket"), "CodeBucketName", "HasCodeBucket"),
    ...provisionerOutputs("DeployProvisionerLambda"),
    ...archiveOutputs("DeployAuditArchive"),
    ...alarmOutputs(),
    ...policyOutputs("DeployIAM"),
    ...roleOutputs("DeployIAMRoles"),
    PermissionBoundaryArn: output(BOUNDARY_ARN, "PermissionBoundaryArn", "HasBoundary"),
    RoleNameFormat: output(ref("RoleNameFormat"), "RoleNameFormat", "HasRoleNameFormat"),
    SchemaVersion: { Value: ref("SchemaVersion") },
  };
}

function aggregatorOutputs(condition: ConditionName): Readonly<Record<string, Output>> {
  return {
    AggregatorFunctionArn: output(getAtt(AGGREGATOR, "Arn"), "AggregatorArn", condition),
    AggregatorFunctionName: output(ref(AGGREGATOR), "AggregatorName", condition),
    AggregatorDLQUrl: output(ref(DLQ), "DLQUrl", condition),
    AggregatorDLQArn: output(getAtt(DLQ, "Arn"), "DLQArn", condition),
  };
}

function provisionerOutputs(condition: ConditionName): Readonly<Record<string, Output>> {
  const id = functionId("Provisioner");
  return {
    ProvisionerFunctionArn: output(getAtt(id, "Arn"), "ProvisionerArn", condition),
    ProvisionerFunctionName: output(ref(id), "ProvisionerName", condition),
  };
}

function archiveOutputs(condition: ConditionName): Readonly<Record<string, Output>> {
  return {
    AuditArchiveBucketName: output(ref(ARCHIVE), "AuditArchiveBucketName", condition),
    AuditArchiveBucketArn: output(getAtt(ARCHIVE, "Arn"), "AuditArchiveBucketArn", condition),
  };
}

/** The alarms that the Python zae-limiter exports too; its exports have other names than alarms. */
function alarmOutputs(): Readonly<Record<string, Output>> {
  const aggregator = {
    AggregatorDLQ: "DLQ",
    LambdaErrorRate: "LambdaErrorRate",
    LambdaDuration: "LambdaDuration",
    StreamIteratorAge: "StreamIteratorAge",
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
      output(ref(`${id}Alarm`), `${name}AlarmName`, condition),
    ]),
  );
}

function policyOutputs(condition: ConditionName): Readonly<Record<string, Output>> {
  return Object.fromEntries(
    Object.keys(POLICY_SUFFIXES).map((part) => [
      `${part}PolicyArn`,
      output(ref(`${part}Policy`), `${part}PolicyArn`, condition),
    ]),
  );
}

function roleOutputs(condition: ConditionName): Readonly<Record<string, Output>> {
  return Object.fromEntries(
    ["App", "Admin", "ReadOnly"].flatMap((part) => [
      [`${part}RoleArn`, output(getAtt(`${part}Role`, "Arn"), `${part}RoleArn`, condition)],
      [`${part}RoleName`, output(ref(`${part}Role`), `${part}RoleName`, condition)],
    ]),
  );
}

function output(value: Value, exported: string, condition?: ConditionName): Output {
  return {
    ...(condition !== undefined && { Condition: condition }),
    Value: value,
    Export: { Name: sub(`\${AWS::StackName}-${exported}`) },
  };
}
