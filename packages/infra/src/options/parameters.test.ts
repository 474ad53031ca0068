import { expect, it } from "vitest";
import { SCHEMA_VERSION, type StackOptions } from "zae-limiter/dynamodb";
import { PARAMETERS } from "../template/parameters.ts";
import { defaultParameters, toParameters } from "./parameters.ts";

const TOPIC = "arn:aws-us-gov:sns:us-gov-west-1:111122223333:alarms";
const ROLE = "arn:aws-cn:iam::111122223333:role/team/aggregator";

/** Every option with a value that is not its default, and what it stands for. */
const MEANINGS: {
  readonly [Name in keyof Required<StackOptions>]: readonly [
    Required<StackOptions>[Name],
    Readonly<Record<string, string>>,
    StackOptions?,
  ];
} = {
  snapshotWindows: [["monthly", "hourly"], { SnapshotWindows: "hourly,monthly" }],
  usageRetentionDays: [30, { SnapshotRetentionDays: "30" }],
  auditRetentionDays: [30, {}],
  bucketTtlMultiplier: [0, { BucketTtlMultiplier: "0" }],
  billingMode: ["provisioned", { BillingMode: "PROVISIONED" }],
  readCapacity: [50, { ReadCapacity: "50" }, { billingMode: "provisioned" }],
  maxReadCapacity: [50, { MaxReadCapacity: "50" }, { billingMode: "provisioned" }],
  writeCapacity: [50, { WriteCapacity: "50" }, { billingMode: "provisioned" }],
  maxWriteCapacity: [50, { MaxWriteCapacity: "50" }, { billingMode: "provisioned" }],
  indexReadCapacity: [50, { IndexReadCapacity: "50" }, { billingMode: "provisioned" }],
  indexWriteCapacity: [50, { IndexWriteCapacity: "50" }, { billingMode: "provisioned" }],
  capacityUtilizationPct: [50, { CapacityUtilization: "50" }, { billingMode: "provisioned" }],
  pitrRecoveryDays: [7, { PITRRecoveryPeriodDays: "7" }],
  enableDeletionProtection: [true, { EnableDeletionProtection: "true" }],
  enableAggregator: [false, { EnableAggregator: "false" }],
  enableProvisioner: [false, { EnableProvisioner: "false" }],
  lambdaTimeoutSeconds: [100, { LambdaTimeout: "100", LambdaDurationThreshold: "80000" }],
  lambdaMemoryMb: [512, { LambdaMemorySize: "512" }],
  aggregatorReservedConcurrency: [2, { AggregatorReservedConcurrency: "2" }],
  logRetentionDays: [365, { LogRetentionDays: "365" }],
  enableTracing: [true, { EnableTracing: "true" }],
  enableAuditArchival: [false, { EnableAuditArchival: "false" }],
  auditArchiveGlacierDays: [30, { AuditArchiveGlacierTransitionDays: "30" }],
  enableAlarms: [false, { EnableAlarms: "false" }],
  alarmSnsTopic: [TOPIC, { AlarmSNSTopicArn: TOPIC }],
  lambdaDurationThresholdPct: [50, { LambdaDurationThreshold: "30000" }],
  createIam: [false, { EnableIAM: "false" }],
  createIamRoles: [true, { EnableIAMRoles: "true" }],
  aggregatorRoleArn: [ROLE, { AggregatorRoleArn: ROLE }],
  permissionBoundary: ["team-boundary", { PermissionBoundary: "team-boundary" }],
  roleNameFormat: [
    "team-{}",
    {
      RoleNameFormat: "team-{}",
      AggregatorRoleName: "team-limits-aggr",
      AppRoleName: "team-limits-app",
      AdminRoleName: "team-limits-admin",
      ReadOnlyRoleName: "team-limits-read",
      ProvisionerRoleName: "team-limits-prov",
    },
  ],
  policyNameFormat: [
    "{}.v1",
    {
      AcquireOnlyPolicyName: "limits-acq.v1",
      FullAccessPolicyName: "limits-full.v1",
      ReadOnlyPolicyName: "limits-read.v1",
      NamespaceAcquirePolicyName: "limits-ns-acq.v1",
      NamespaceFullAccessPolicyName: "limits-ns-full.v1",
      NamespaceReadOnlyPolicyName: "limits-ns-read.v1",
    },
  ],
  tags: [{ team: "search" }, {}],
};

it.each(Object.entries(MEANINGS))("%s is a parameter of the template", (option, meaning) => {
  const [value, parameters, beside = {}] = meaning;
  const expected = { ...toParameters("limits", beside), ...parameters };
  expect(toParameters("limits", { ...beside, [option]: value })).toEqual(expected);
  for (const name of Object.keys(parameters)) expect(PARAMETERS).toHaveProperty(name);
});

it("names nothing that the options leave out, so that a stack keeps it [W-66]", () => {
  expect(toParameters("limits", {})).toEqual({ SchemaVersion: SCHEMA_VERSION });
  const absent = { enableAlarms: undefined } as unknown as StackOptions;
  expect(toParameters("limits", absent)).toEqual({ SchemaVersion: SCHEMA_VERSION });
});

it("keeps the threshold of a stack in proportion to its time-out", () => {
  const current = { LambdaTimeout: "100", LambdaDurationThreshold: "50000" };
  const getThreshold = (options: StackOptions): string | undefined =>
    toParameters("limits", options, current)["LambdaDurationThreshold"];
  expect(getThreshold({ lambdaTimeoutSeconds: 200 })).toBe("100000");
  expect(getThreshold({ lambdaDurationThresholdPct: 90 })).toBe("90000");
  expect(getThreshold({ lambdaTimeoutSeconds: 1, lambdaDurationThresholdPct: 1 })).toBe("10");
  expect(getThreshold({ enableAlarms: true })).toBeUndefined();
});

it("takes a text back with an empty one", () => {
  expect(
    toParameters("limits", { alarmSnsTopic: "", permissionBoundary: "", roleNameFormat: "" }),
  ).toMatchObject({
    AlarmSNSTopicArn: "",
    PermissionBoundary: "",
    RoleNameFormat: "",
    AppRoleName: "",
  });
});

it("lets the template leave the aggregator out where there is no role for it", () => {
  expect(toParameters("limits", { createIam: false })).not.toHaveProperty("EnableAggregator");
  const named = { createIam: false, enableAggregator: true, aggregatorRoleArn: ROLE };
  expect(toParameters("limits", named)).toMatchObject({ AggregatorRoleArn: ROLE });
});

it("names no provisioner where its function could not have its name", () => {
  const longest = "x".repeat(45);
  expect(toParameters(longest, {})).not.toHaveProperty("EnableProvisioner");
  const long = `${longest}x`;
  expect(toParameters(long, {})).toMatchObject({ EnableProvisioner: "false" });
  // What a stack has, it keeps.
  const current = { EnableProvisioner: "false" };
  expect(toParameters(long, {}, current)).not.toHaveProperty("EnableProvisioner");
  expect(() => toParameters(long, { enableProvisioner: true })).toThrow(
    "enableProvisioner: needs a stack whose name has at most 45 characters",
  );
});

const LONG = "x".repeat(60);

it.each<readonly [object, string]>([
  [{ lambdaTimeout: 60 }, "Invalid lambdaTimeout: is not an option of a stack; known are snapshot"],
  [
    { lambdaTimeoutSeconds: 0 },
    "Invalid lambdaTimeoutSeconds: must be a whole number from 1 to 900",
  ],
  [
    { lambdaTimeoutSeconds: 1.5 },
    "Invalid lambdaTimeoutSeconds: must be a whole number from 1 to 900",
  ],
  [{ auditRetentionDays: -1 }, "Invalid auditRetentionDays: must be a whole number from 1 to 3650"],
  [{ pitrRecoveryDays: 36 }, "Invalid pitrRecoveryDays: must be a whole number from 1 to 35"],
  [{ logRetentionDays: 31 }, "Invalid logRetentionDays: must be one of 1, 3, 5, 7"],
  [{ snapshotWindows: [] }, "Invalid snapshotWindows: must be a list of at least one of hourly"],
  [{ enableAlarms: "no" }, "Invalid enableAlarms: must be true or false"],
  [{ billingMode: "cheap" }, "Invalid billingMode: must be on-demand or provisioned"],
  [
    { createIam: false, enableProvisioner: true },
    "Invalid enableProvisioner: needs a role, which createIam: false forbids",
  ],
  [{ alarmSnsTopic: "alarms" }, "Invalid alarmSnsTopic: must be the ARN of a topic, such as"],
  [{ aggregatorRoleArn: TOPIC }, "Invalid aggregatorRoleArn: must be the ARN of a role, such as"],
  [{ aggregatorRoleArn: `${ROLE}\n` }, "Invalid aggregatorRoleArn: must be the ARN of a role"],
  [{ permissionBoundary: "a b" }, "Invalid permissionBoundary: must be the name of a policy of"],
  [{ roleNameFormat: "team" }, "Invalid roleNameFormat: must contain {} once, such as 'team-{}'"],
  [
    { roleNameFormat: `${LONG}{}` },
    "makes a role name of 71 characters, but IAM allows 64; shorten",
  ],
  [{ roleNameFormat: "team {}" }, "makes a role name that IAM refuses; use letters, digits and"],
  [
    { policyNameFormat: `${LONG}${LONG}{}` },
    "makes a policy name of 130 characters, but IAM allows",
  ],
  [
    { createIam: false, createIamRoles: true },
    "createIamRoles: creates roles, which createIam: false",
  ],
  [{ createIam: false, enableAggregator: true }, "aggregatorRoleArn: must name a role for the"],
  [
    { enableAggregator: false, aggregatorRoleArn: ROLE },
    "for an aggregator that enableAggregator: f",
  ],
  [
    { writeCapacity: 10 },
    'writeCapacity: has no effect on demand; set billingMode to "provisioned"',
  ],
  [
    { billingMode: "provisioned", writeCapacity: 101 },
    "must not be above maxWriteCapacity, which is",
  ],
  [
    { billingMode: "provisioned", maxReadCapacity: 2 },
    "must not be above maxReadCapacity, which is 2",
  ],
  [{ tags: ["team"] }, 'Invalid tags: must be an object, such as { team: "search" }'],
  [
    { tags: { "aws:team": "x" } },
    "Invalid tags.aws:team: must not begin with aws:, which AWS reserves",
  ],
  [{ tags: { ["k".repeat(129)]: "x" } }, "Invalid tags: must have keys of 1 to 128 characters"],
  [
    { tags: { team: "x".repeat(257) } },
    "Invalid tags.team: must be a text of at most 256 characters",
  ],
  [{ tags: listTags(45) }, "Invalid tags: must be at most 44: AWS allows 50, and 6 are"],
])("refuses %j", (options, message) => {
  expect(() => toParameters("limits", options)).toThrow(message);
});

it("accepts as many tags as CloudFormation has room for", () => {
  expect(() => toParameters("limits", { tags: listTags(44) })).not.toThrow();
});

it("checks options against what the stack has", () => {
  const current = { ...defaultParameters(), EnableIAMRoles: "true", BillingMode: "PROVISIONED" };
  expect(() => toParameters("limits", { createIam: false }, current)).toThrow("createIamRoles");
  expect(toParameters("limits", { writeCapacity: 10 }, current)).toMatchObject({
    WriteCapacity: "10",
  });
});

function listTags(count: number): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`tag-${index}`, "x"]));
}
