import { SCHEMA_VERSION } from "zae-limiter/dynamodb";
import type { Parameter } from "../cloudformation/template.ts";

/** How long CloudWatch can keep logs, in days; it accepts no other number. */
export const LOG_RETENTION_DAYS: readonly number[] = [
  1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288,
  3653,
];

/** The ARN of a role, in any partition: that of China, for instance, is aws-cn. */
export const ROLE_ARN = "arn:aws[a-z-]*:iam::\\d{12}:role/[\\w+=,.@/-]+";

/** The ARN of a topic. */
export const TOPIC_ARN = "arn:aws[a-z-]*:sns:[a-z0-9-]+:\\d{12}:[\\w.-]+";

/** The roles, and the last part of the name that each has by default. */
export const ROLE_SUFFIXES = {
  Aggregator: "aggr",
  App: "app",
  Admin: "admin",
  ReadOnly: "read",
  Provisioner: "prov",
} as const;

/** The managed policies, and the last part of the name that each has by default. */
export const POLICY_SUFFIXES = {
  AcquireOnly: "acq",
  FullAccess: "full",
  ReadOnly: "read",
  NamespaceAcquire: "ns-acq",
  NamespaceFullAccess: "ns-full",
  NamespaceReadOnly: "ns-read",
} as const;

/** The parameters of the template, in the order in which it shows them. */
export const PARAMETERS = {
  CodeBucket: text("The bucket that holds the code of the functions."),
  AggregatorCodeKey: text(
    "The key of the aggregator's zip file in CodeBucket. Without one there is no aggregator.",
  ),
  EnableProvisioner: flag("Whether a function applies limits that templates declare.", true),
  ProvisionerCodeKey: text("The key of its zip file. Without one there is no such function."),
  SnapshotWindows: {
    ...text("The windows that usage is summed into, separated by commas.", "hourly,daily,monthly"),
    AllowedPattern: "(hourly|daily|monthly)(,(hourly|daily|monthly)){0,2}",
  },
  SnapshotRetentionDays: whole("Days that usage is kept where no other number is stored.", {
    value: 90,
    least: 1,
    most: 3650,
  }),
  BucketTtlMultiplier: whole(
    "How many fill times the aggregator keeps an idle bucket that it merged; 0: forever. Open " +
      "repositories with the same bucketTtlMultiplier.",
    { value: 7, least: 0, most: 10_000 },
  ),
  BillingMode: {
    ...text("How the table is paid for.", "PAY_PER_REQUEST"),
    AllowedValues: ["PAY_PER_REQUEST", "PROVISIONED"],
  },
  ReadCapacity: capacity("PROVISIONED: the least read units of the table.", 5),
  MaxReadCapacity: capacity("PROVISIONED: the most read units of the table and each index.", 100),
  WriteCapacity: capacity("PROVISIONED: the least write units of the table.", 5),
  MaxWriteCapacity: capacity("PROVISIONED: the most write units of the table and each index.", 100),
  IndexReadCapacity: capacity("PROVISIONED: the least read units of each index.", 1),
  IndexWriteCapacity: capacity(
    "PROVISIONED: the least write units of each index. New buckets write them; calls do not.",
    5,
  ),
  CapacityUtilization: whole("PROVISIONED: the percentage of capacity to use.", {
    value: 70,
    least: 20,
    most: 90,
  }),
  PITRRecoveryPeriodDays: {
    ...text("Days back that the table can be restored to, from 1 to 35. Empty: AWS's default."),
    AllowedPattern: "([1-9]|[12][0-9]|3[0-5])?",
  },
  EnableDeletionProtection: flag("Whether the table is protected against deletion.", false),
  EnableAggregator: flag("Whether a function sums up usage from the table's stream.", true),
  LambdaMemorySize: whole("Megabytes of memory of the aggregator.", {
    value: 256,
    least: 128,
    most: 3008,
  }),
  LambdaTimeout: whole("The most seconds that an invocation of the aggregator may take.", {
    value: 60,
    least: 1,
    most: 900,
  }),
  AggregatorReservedConcurrency: {
    ...text("The invocations that are reserved for the aggregator, and its most. Empty: none."),
    AllowedPattern: "([1-9][0-9]{0,3})?",
  },
  LogRetentionDays: {
    Type: "Number",
    Default: 30,
    Description: "Days that logs are kept.",
    AllowedValues: LOG_RETENTION_DAYS,
  },
  EnableTracing: flag("Whether X-Ray traces the aggregator.", false),
  EnableAuditArchival: flag("Whether audit events are archived to S3 when they expire.", true),
  AuditArchiveGlacierTransitionDays: whole(
    "Days after which archived events move to Glacier Instant Retrieval.",
    { value: 90, least: 1, most: 3650 },
  ),
  EnableAlarms: flag("Whether there are alarms.", true),
  AlarmSNSTopicArn: {
    ...text("The ARN of the topic that alarms notify. Empty: none."),
    AllowedPattern: `(${TOPIC_ARN})?`,
  },
  LambdaDurationThreshold: whole("Milliseconds above which the aggregator takes too long.", {
    value: 48_000,
    least: 1,
    most: 900_000,
  }),
  EnableIAM: flag(
    "Whether roles and policies are created. If not, an aggregator needs AggregatorRoleArn, and " +
      "no function applies limits.",
    true,
  ),
  EnableIAMRoles: flag("Whether there are roles for applications, people and monitoring.", false),
  AggregatorRoleArn: {
    ...text("The ARN of an existing role for the aggregator. Empty: one is created."),
    AllowedPattern: `(${ROLE_ARN})?`,
  },
  PermissionBoundary: text("The name or ARN of the policy that bounds created roles."),
  RoleNameFormat: text("The format that the names of roles were made with; only exported."),
  ...buildNameParameters("Role", ROLE_SUFFIXES),
  ...buildNameParameters("Policy", POLICY_SUFFIXES),
  SchemaVersion: text("The version of the items in the table.", SCHEMA_VERSION),
} as const satisfies { readonly [name: string]: Parameter };

/** The name of a parameter. */
export type ParameterName = keyof typeof PARAMETERS;

function text(description: string, value = ""): Parameter {
  return { Type: "String", Default: value, Description: description };
}

function flag(description: string, value: boolean): Parameter {
  return { ...text(description, String(value)), AllowedValues: ["true", "false"] };
}

function whole(
  description: string,
  { value, least, most }: { readonly value: number; readonly least: number; readonly most: number },
): Parameter {
  return {
    Type: "Number",
    Default: value,
    Description: description,
    MinValue: least,
    MaxValue: most,
  };
}

/** The most units are what an account may have for one table, unless AWS raised it. */
function capacity(description: string, value: number): Parameter {
  return whole(description, { value, least: 1, most: 40_000 });
}

/** The parameters that name the roles, or the policies. */
function buildNameParameters<Kind extends "Role" | "Policy", Part extends string>(
  kind: Kind,
  suffixes: Readonly<Record<Part, string>>,
): Readonly<Record<`${Part}${Kind}Name`, Parameter>> {
  const entries = Object.entries<string>(suffixes).map(
    ([part, suffix]) => [`${part}${kind}Name`, text(`Empty: {stack}-${suffix}.`)] as const,
  );
  return Object.fromEntries(entries) as Record<`${Part}${Kind}Name`, Parameter>;
}
