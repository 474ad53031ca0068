import {
  and,
  conditionOf,
  equals,
  not,
  or,
  ref,
  type Rule,
  type Template,
  type Value,
} from "../cloudformation/template.ts";
import { POLICY_SUFFIXES, ROLE_SUFFIXES, type ParameterName } from "./parameters.ts";

/** The conditions that decide which resources there are, and what they look like. */
export const CONDITIONS = {
  DeployAggregator: isOn("EnableAggregator"),
  DeployAlarms: isOn("EnableAlarms"),
  DeployIAM: isOn("EnableIAM"),
  HasCodeBucket: isGiven("CodeBucket"),
  HasAggregatorCode: and(conditionOf("HasCodeBucket"), isGiven("AggregatorCodeKey")),
  UseExternalAggregatorRole: isGiven("AggregatorRoleArn"),
  DeployAggregatorLambda: and(
    conditionOf("DeployAggregator"),
    conditionOf("HasAggregatorCode"),
    or(conditionOf("DeployIAM"), conditionOf("UseExternalAggregatorRole")),
  ),
  CreateAggregatorRole: and(
    conditionOf("DeployAggregatorLambda"),
    not(conditionOf("UseExternalAggregatorRole")),
  ),
  HasProvisionerCode: and(conditionOf("HasCodeBucket"), isGiven("ProvisionerCodeKey")),
  DeployProvisionerLambda: and(
    isOn("EnableProvisioner"),
    conditionOf("HasProvisionerCode"),
    conditionOf("DeployIAM"),
  ),
  DeployAggregatorAlarms: and(conditionOf("DeployAggregatorLambda"), conditionOf("DeployAlarms")),
  DeployAuditArchive: and(conditionOf("DeployAggregatorLambda"), isOn("EnableAuditArchival")),
  DeployIAMRoles: and(conditionOf("DeployIAM"), isOn("EnableIAMRoles")),
  TracingEnabled: isOn("EnableTracing"),
  HasReservedConcurrency: isGiven("AggregatorReservedConcurrency"),
  HasSNSTopic: isGiven("AlarmSNSTopicArn"),
  HasRoleNameFormat: isGiven("RoleNameFormat"),
  HasBoundary: isGiven("PermissionBoundary"),
  BoundaryIsArn: equals(
    { "Fn::Select": [0, { "Fn::Split": [":", ref("PermissionBoundary")] }] },
    "arn",
  ),
  EnableTableDeletionProtection: isOn("EnableDeletionProtection"),
  UsePITRRecoveryPeriod: isGiven("PITRRecoveryPeriodDays"),
  Provisioned: equals(ref("BillingMode"), "PROVISIONED"),
  ...customNames(),
} as const satisfies Template["Conditions"];

/** The name of a condition. */
export type ConditionName = keyof typeof CONDITIONS;

/** What the parameters must not contradict; CloudFormation says it before it creates anything. */
export const RULES: Readonly<Record<string, Rule>> = {
  RolesNeedIAM: {
    Assertions: [
      {
        Assert: or(isOff("EnableIAMRoles"), isOn("EnableIAM")),
        AssertDescription: "EnableIAMRoles creates roles, so EnableIAM must be true too.",
      },
    ],
  },
  CodeNeedsBucket: {
    Assertions: [
      {
        Assert: or(
          and(isMissing("AggregatorCodeKey"), isMissing("ProvisionerCodeKey")),
          isGiven("CodeBucket"),
        ),
        AssertDescription: "The keys of code need CodeBucket, the bucket that they are in.",
      },
    ],
  },
};

function isOn(parameter: ParameterName): Value {
  return equals(ref(parameter), "true");
}

function isOff(parameter: ParameterName): Value {
  return equals(ref(parameter), "false");
}

function isMissing(parameter: ParameterName): Value {
  return equals(ref(parameter), "");
}

function isGiven(parameter: ParameterName): Value {
  return not(isMissing(parameter));
}

type CustomName =
  | `Has${keyof typeof ROLE_SUFFIXES}RoleName`
  | `Has${keyof typeof POLICY_SUFFIXES}PolicyName`;

function customNames(): Readonly<Record<CustomName, Value>> {
  const names = [
    ...Object.keys(ROLE_SUFFIXES).map((part) => `${part}RoleName`),
    ...Object.keys(POLICY_SUFFIXES).map((part) => `${part}PolicyName`),
  ] as readonly ParameterName[];
  return Object.fromEntries(names.map((name) => [`Has${name}`, isGiven(name)])) as Record<
    CustomName,
    Value
  >;
}
