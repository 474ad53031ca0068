import {
  and,
  conditionRef,
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
  HasAggregatorCode: and(conditionRef("HasCodeBucket"), isGiven("AggregatorCodeKey")),
  UseExternalAggregatorRole: isGiven("AggregatorRoleArn"),
  DeployAggregatorLambda: and(
    conditionRef("DeployAggregator"),
    conditionRef("HasAggregatorCode"),
    or(conditionRef("DeployIAM"), conditionRef("UseExternalAggregatorRole")),
  ),
  CreateAggregatorRole: and(
    conditionRef("DeployAggregatorLambda"),
    not(conditionRef("UseExternalAggregatorRole")),
  ),
  HasProvisionerCode: and(conditionRef("HasCodeBucket"), isGiven("ProvisionerCodeKey")),
  DeployProvisionerLambda: and(
    isOn("EnableProvisioner"),
    conditionRef("HasProvisionerCode"),
    conditionRef("DeployIAM"),
  ),
  DeployAggregatorAlarms: and(conditionRef("DeployAggregatorLambda"), conditionRef("DeployAlarms")),
  DeployAuditArchive: and(conditionRef("DeployAggregatorLambda"), isOn("EnableAuditArchival")),
  DeployIAMRoles: and(conditionRef("DeployIAM"), isOn("EnableIAMRoles")),
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

/** Rules that CloudFormation checks before it creates anything. */
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
