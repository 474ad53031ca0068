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
} from "./cloudformation.ts";
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
        { PolicyName: "aggregator", PolicyDocument: document(aggregatorStatements()) },
        when("DeployAuditArchive", {
          PolicyName: "archive",
          PolicyDocument: document([allow("s3:PutObject", objectsOf(ARCHIVE))]),
        }),
        when("TracingEnabled", {
          PolicyName: "tracing",
          PolicyDocument: document([
            // X-Ray has no resources that a right could be bound to.
            allow(["xray:PutTraceSegments", "xray:PutTelemetryRecords"], "*"),
          ]),
        }),
      ],
    }),
    AppRole: accountRole("App", "AcquireOnlyPolicy"),
    AdminRole: accountRole("Admin", "FullAccessPolicy"),
    ReadOnlyRole: accountRole("ReadOnly", "ReadOnlyPolicy"),
  };
}

/** What `zae-limiter/aggregator` does, and what Lambda does on its behalf. */
function aggregatorStatements(): readonly Value[] {
  return [
    allow(
      ["GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"].map(
        (action) => `dynamodb:${action}`,
      ),
      [TABLE_ARN, { "Fn::Join": ["/", [TABLE_ARN, "index/*"]] }],
    ),
    allow(
      ["DescribeStream", "GetRecords", "GetShardIterator"].map((action) => `dynamodb:${action}`),
      getAtt(TABLE, "StreamArn"),
    ),
    // This one cannot be bound to a stream.
    allow("dynamodb:ListStreams", "*"),
    allow(["logs:CreateLogStream", "logs:PutLogEvents"], getAtt(LOG_GROUP, "Arn")),
    allow("sqs:SendMessage", getAtt(DLQ, "Arn")),
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

function allow(action: Value, resource: Value): Value {
  return { Effect: "Allow", Action: action, Resource: resource };
}

function objectsOf(bucket: string): Value {
  return { "Fn::Join": ["/", [getAtt(bucket, "Arn"), "*"]] };
}
