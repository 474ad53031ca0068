import { ValidationError } from "zae-limiter";
import { SCHEMA_VERSION, type StackOptions } from "zae-limiter/dynamodb";
import type { Parameter } from "../cloudformation/template.ts";
import {
  LOG_RETENTION_DAYS,
  PARAMETERS,
  ROLE_ARN,
  TOPIC_ARN,
  type ParameterName,
} from "../template/parameters.ts";
import { flag, checkList, checkOneOf, text, whole, word, type Check } from "./checks.ts";
import { checkTogether } from "./contradictions.ts";
import { LONGEST_WITH_PROVISIONER, namesBy, POLICY_NAMES, ROLE_NAMES } from "./names.ts";
import { checkTags } from "./tags.ts";

/** Values of parameters, by their names. */
export type Parameters = Readonly<Record<string, string>>;

/**
 * The parameters of the template that options stand for. What options leave out is not among them,
 * so that a stack that exists keeps it; `current` are the parameters of that stack, which the rest
 * is completed from and checked with. Throws `ValidationError` for an option that is invalid, or
 * that contradicts another.
 *
 * @example toParameters("limits", { enableTracing: true, lambdaTimeoutSeconds: 30 });
 */
export function toParameters(
  stack: string,
  options: StackOptions,
  current: Parameters = {},
): Parameters {
  const given = new Map(Object.entries(options).filter(([, value]) => value !== undefined));
  const named: Record<string, string> = { SchemaVersion: SCHEMA_VERSION };
  for (const [option, value] of given) {
    if (!Object.hasOwn(OPTIONS, option)) throw buildUnknownOptionError(option);
    Object.assign(named, OPTIONS[option as keyof StackOptions](value, option, stack));
  }
  const before = { ...defaultParameters(), ...current };
  if (given.has("lambdaTimeoutSeconds") || given.has("lambdaDurationThresholdPct"))
    named["LambdaDurationThreshold"] = durationThreshold(
      before,
      named["LambdaTimeout"],
      options.lambdaDurationThresholdPct,
    );
  Object.assign(named, ofProvisioner(stack, options, current));
  checkTogether(stack, options, { ...before, ...named });
  return named;
}

/**
 * What follows for the provisioner: where its name would be longer than Lambda allows, a new stack
 * has none.
 */
function ofProvisioner(
  stack: string,
  { enableProvisioner }: StackOptions,
  current: Parameters,
): Parameters {
  const isOpen = enableProvisioner === undefined && !Object.hasOwn(current, "EnableProvisioner");
  return isOpen && stack.length > LONGEST_WITH_PROVISIONER ? { EnableProvisioner: "false" } : {};
}

/** The default value of each parameter. */
export function defaultParameters(): Parameters {
  return Object.fromEntries(
    Object.entries(PARAMETERS).map(([name, { Default }]) => [name, String(Default)]),
  );
}

type Translation = (value: unknown, option: string, stack: string) => Parameters;

const BOUNDARY = "[\\w+=,.@-]{1,128}|arn:aws[a-z-]*:iam::(\\d{12}|aws):policy/[\\w+=,.@/-]+";

/** The parameters of each option; the compiler ensures that none is missing. */
const OPTIONS: Readonly<Record<keyof StackOptions, Translation>> = {
  snapshotWindows: toParameter("SnapshotWindows", checkList(["hourly", "daily", "monthly"])),
  usageRetentionDays: asWhole("SnapshotRetentionDays"),
  auditRetentionDays: checkOnly(whole(1, 3650)),
  bucketTtlMultiplier: asWhole("BucketTtlMultiplier"),
  billingMode: toParameter(
    "BillingMode",
    word({ "on-demand": "PAY_PER_REQUEST", provisioned: "PROVISIONED" }),
  ),
  readCapacity: asWhole("ReadCapacity"),
  maxReadCapacity: asWhole("MaxReadCapacity"),
  writeCapacity: asWhole("WriteCapacity"),
  maxWriteCapacity: asWhole("MaxWriteCapacity"),
  indexReadCapacity: asWhole("IndexReadCapacity"),
  indexWriteCapacity: asWhole("IndexWriteCapacity"),
  capacityUtilizationPct: asWhole("CapacityUtilization"),
  pitrRecoveryDays: toParameter("PITRRecoveryPeriodDays", whole(1, 35)),
  enableDeletionProtection: toParameter("EnableDeletionProtection", flag),
  enableAggregator: toParameter("EnableAggregator", flag),
  enableProvisioner: toParameter("EnableProvisioner", flag),
  lambdaTimeoutSeconds: asWhole("LambdaTimeout"),
  lambdaMemoryMb: asWhole("LambdaMemorySize"),
  aggregatorReservedConcurrency: toParameter("AggregatorReservedConcurrency", whole(1, 9999)),
  logRetentionDays: toParameter("LogRetentionDays", checkOneOf(LOG_RETENTION_DAYS)),
  enableTracing: toParameter("EnableTracing", flag),
  enableAuditArchival: toParameter("EnableAuditArchival", flag),
  auditArchiveGlacierDays: asWhole("AuditArchiveGlacierTransitionDays"),
  enableAlarms: toParameter("EnableAlarms", flag),
  alarmSnsTopic: toParameter(
    "AlarmSNSTopicArn",
    text(TOPIC_ARN, "the ARN of a topic, such as arn:aws:sns:eu-west-1:111122223333:alarms"),
  ),
  // Becomes milliseconds together with the time-out.
  lambdaDurationThresholdPct: checkOnly(whole(1, 100)),
  createIam: toParameter("EnableIAM", flag),
  createIamRoles: toParameter("EnableIAMRoles", flag),
  aggregatorRoleArn: toParameter(
    "AggregatorRoleArn",
    text(ROLE_ARN, "the ARN of a role, such as arn:aws:iam::111122223333:role/aggregator"),
  ),
  permissionBoundary: toParameter(
    "PermissionBoundary",
    text(BOUNDARY, "the name of a policy of this account, or the ARN of a policy"),
  ),
  roleNameFormat: (value, option, stack) => ({
    ...namesBy(value, option, { stack, kind: ROLE_NAMES }),
    RoleNameFormat: value as string,
  }),
  policyNameFormat: (value, option, stack) => namesBy(value, option, { stack, kind: POLICY_NAMES }),
  tags: (value) => {
    checkTags(value);
    return {};
  },
};

/** An option that is one parameter. */
function toParameter(parameter: ParameterName, check: Check): Translation {
  return (value, option) => ({ [parameter]: check(value, option) });
}

/** An option that is one parameter, with the range that the template declares. */
function asWhole(parameter: ParameterName): Translation {
  const { MinValue, MaxValue }: Parameter = PARAMETERS[parameter];
  return toParameter(parameter, whole(MinValue!, MaxValue!));
}

/** An option that is not a parameter. */
function checkOnly(check: Check): Translation {
  return (value, option) => {
    check(value, option);
    return {};
  };
}

/**
 * The threshold in milliseconds. A percentage that is not given is the one that the stack has, so
 * that a longer time-out does not leave the threshold behind.
 */
function durationThreshold(
  before: Parameters,
  timeout = before["LambdaTimeout"]!,
  percentage = Number(before["LambdaDurationThreshold"]) / Number(before["LambdaTimeout"]) / 10,
): string {
  return String(Math.max(1, Math.round(Number(timeout) * percentage * 10)));
}

function buildUnknownOptionError(option: string): ValidationError {
  const known = Object.keys(OPTIONS).join(", ");
  return new ValidationError(option, option, `is not an option of a stack; known are ${known}`);
}
