import { aggregatorStatements, archiveStatement } from "../policies/aggregator-statements.ts";
import { allow, type PolicyStatement } from "../policies/policy-statements.ts";
import { DLQ, LOG_GROUP } from "./aggregator.ts";
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
import { ROLE_SUFFIXES } from "./parameters.ts";
import { TABLE, TABLE_ARN } from "./table.ts";

/** The ARN of the policy that bounds roles. */
export const BOUNDARY_ARN: Value = when(
  "PermissionBoundaryIsArn",
  ref("PermissionBoundary"),
  sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:policy/${PermissionBoundary}"),
);

/** The aggregator's role, and roles for applications, people and monitoring. */
export function roleResources(): Resources {
  return {
    AggregatorRole: role("Aggregator", "CreateAggregatorRole", {
      AssumeRolePolicyDocument: trust({ Service: "lambda.amazonaws.com" }),
      Policies: [
        { PolicyName: "aggregator", PolicyDocument: document(functionStatements()) },
        when("DeployAuditArchive", {
          PolicyName: "archive",
          PolicyDocument: document([archiveStatement(getAtt(ARCHIVE, "Arn"))]),
        }),
        when("TracingEnabled", {
          PolicyName: "tracing",
          PolicyDocument: document([
            // X-Ray has no resources that a right could be bound to.
            allow({
              sid: "Trace",
              actions: ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
              resources: "*",
            }),
          ]),
        }),
      ],
    }),
    AppRole: accountRole("App", "AcquireOnlyPolicy"),
    AdminRole: accountRole("Admin", "FullAccessPolicy"),
    ReadOnlyRole: accountRole("ReadOnly", "ReadOnlyPolicy"),
  };
}

/** What the aggregator does, and what Lambda does on its behalf. */
function functionStatements(): readonly PolicyStatement[] {
  return [
    ...aggregatorStatements({ tableArn: TABLE_ARN, streamArn: getAtt(TABLE, "StreamArn") }),
    // This one cannot be bound to a stream.
    allow({ sid: "FindStream", actions: ["dynamodb:ListStreams"], resources: "*" }),
    allow({
      sid: "Log",
      actions: ["logs:CreateLogStream", "logs:PutLogEvents"],
      resources: getAtt(LOG_GROUP, "Arn"),
    }),
    allow({ sid: "GiveUp", actions: ["sqs:SendMessage"], resources: getAtt(DLQ, "Arn") }),
  ];
}

/** A role that everybody in the account may assume whom IAM allows to. */
function accountRole(part: "App" | "Admin" | "ReadOnly", policy: string): Resource {
  return role(part, "DeployIAMRolesWithIAM", {
    AssumeRolePolicyDocument: trust({
      AWS: sub("arn:${AWS::Partition}:iam::${AWS::AccountId}:root"),
    }),
    ManagedPolicyArns: [ref(policy)],
  });
}

function role(
  part: Exclude<keyof typeof ROLE_SUFFIXES, "Provisioner">,
  condition: string,
  properties: Properties,
): Resource {
  return {
    Type: "AWS::IAM::Role",
    Condition: condition,
    Properties: {
      RoleName: when(
        `HasCustom${part}RoleName`,
        ref(`${part}RoleName`),
        sub(`\${AWS::StackName}-${ROLE_SUFFIXES[part]}`),
      ),
      PermissionsBoundary: when("HasPermissionBoundary", BOUNDARY_ARN, NO_VALUE),
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
