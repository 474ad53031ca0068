import { aggregatorStatements, archiveStatement } from "../policies/aggregator-statements.ts";
import { provisionerStatements } from "../policies/provisioner-statements.ts";
import { allow, type PolicyStatement } from "../policies/policy-statements.ts";
import { DLQ } from "./aggregator.ts";
import { ARCHIVE } from "./archive.ts";
import {
  getAtt,
  NO_VALUE,
  ref,
  sub,
  when,
  type Properties,
  type Resource,
  type Resources,
  type Value,
} from "../cloudformation/template.ts";
import type { ConditionName } from "./conditions.ts";
import { logsArn, type FunctionPart } from "./functions.ts";
import { ROLE_SUFFIXES } from "./parameters.ts";
import { TABLE, TABLE_ARN } from "./table.ts";

/** The ARN of the policy that bounds roles. */
export const BOUNDARY_ARN: Value = when(
  "BoundaryIsArn",
  ref("PermissionBoundary"),
  sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/${PermissionBoundary}"),
);

/** The roles of the functions, and roles for applications, people and monitoring. */
export function roleResources(): Resources {
  return {
    AggregatorRole: functionRole("Aggregator", "CreateAggregatorRole", [
      { PolicyName: "aggregator", PolicyDocument: document(aggregatorRoleStatements()) },
      when("DeployAuditArchive", {
        PolicyName: "archive",
        PolicyDocument: document([archiveStatement(getAtt(ARCHIVE, "Arn"))]),
      }),
      when("TracingEnabled", { PolicyName: "tracing", PolicyDocument: document([TRACING]) }),
    ]),
    ProvisionerRole: functionRole("Provisioner", "DeployProvisionerLambda", [
      { PolicyName: "provisioner", PolicyDocument: document(provisionerRoleStatements()) },
    ]),
    AppRole: accountRole("App", "AcquireOnlyPolicy"),
    AdminRole: accountRole("Admin", "FullAccessPolicy"),
    ReadOnlyRole: accountRole("ReadOnly", "ReadOnlyPolicy"),
  };
}

/** The permissions of the aggregator, and of Lambda on its behalf. */
function aggregatorRoleStatements(): readonly PolicyStatement[] {
  return [
    ...aggregatorStatements({ tableArn: TABLE_ARN, streamArn: getAtt(TABLE, "StreamArn") }),
    // This action cannot be limited to a stream.
    allow({ sid: "FindStream", actions: ["dynamodb:ListStreams"], resources: "*" }),
    logStatement("Aggregator"),
    allow({ sid: "GiveUp", actions: ["sqs:SendMessage"], resources: getAtt(DLQ, "Arn") }),
  ];
}

function provisionerRoleStatements(): readonly PolicyStatement[] {
  return [...provisionerStatements(TABLE_ARN), logStatement("Provisioner")];
}

function logStatement(part: FunctionPart): PolicyStatement {
  const actions = ["logs:CreateLogStream", "logs:PutLogEvents"];
  return allow({ sid: "Log", actions, resources: logsArn(part) });
}

/** A role that Lambda assumes to run a function. */
function functionRole(
  part: FunctionPart,
  condition: ConditionName,
  policies: readonly Value[],
): Resource {
  return role(part, condition, {
    AssumeRolePolicyDocument: trust({ Service: "lambda.amazonaws.com" }),
    Policies: policies,
  });
}

/** X-Ray has no resources to which a permission could be limited. */
const TRACING = allow({
  sid: "Trace",
  actions: ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
  resources: "*",
});

/** A role that any principal of the account may assume if IAM allows it. */
function accountRole(part: "App" | "Admin" | "ReadOnly", policy: string): Resource {
  return role(part, "DeployIAMRoles", {
    AssumeRolePolicyDocument: trust({
      AWS: sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root"),
    }),
    ManagedPolicyArns: [ref(policy)],
  });
}

function role(
  part: keyof typeof ROLE_SUFFIXES,
  condition: ConditionName,
  properties: Properties,
): Resource {
  return {
    Type: "AWS::IAM::Role",
    Condition: condition,
    Properties: {
      RoleName: when(
        `Has${part}RoleName`,
        ref(`${part}RoleName`),
        sub(`\${AWS::StackName}-${ROLE_SUFFIXES[part]}`),
      ),
      PermissionsBoundary: when("HasBoundary", BOUNDARY_ARN, NO_VALUE),
      ...properties,
    },
  };
}

function trust(principal: Value): Value {
  return document([{ Effect: "Allow", Principal: principal, Action: "sts:AssumeRole" }]);
}

function document(statements: readonly Value[]): Value {
  return { Version: "2012-10-17", Statement: statements };
}
