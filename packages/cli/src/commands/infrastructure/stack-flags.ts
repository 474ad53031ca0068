import { InvalidArgumentError, Option, type Command } from "commander";
import { ValidationError } from "zae-limiter";
import type { StackOptions } from "zae-limiter/dynamodb";
import { UsageError } from "../../exit.ts";
import { metadataArgument } from "../support/arguments.ts";

type OptionName = keyof StackOptions;

/** Options that are switched on or off: the option, both flags, and what it is about. */
const SWITCHES: readonly (readonly [OptionName, on: string, off: string, about: string])[] = [
  [
    "enableAggregator",
    "--enable-aggregator",
    "--no-aggregator",
    "the Lambda that sums up usage from the table's stream",
  ],
  [
    "enableProvisioner",
    "--enable-provisioner",
    "--no-provisioner",
    "the Lambda that applies limits which templates declare",
  ],
  ["enableAlarms", "--enable-alarms", "--no-alarms", "CloudWatch alarms"],
  [
    "enableAuditArchival",
    "--enable-audit-archival",
    "--no-audit-archival",
    "an archive on S3 for audit events that expire",
  ],
  ["enableTracing", "--enable-tracing", "--no-tracing", "X-Ray traces of the aggregator"],
  [
    "createIamRoles",
    "--create-iam-roles",
    "--no-create-iam-roles",
    "roles for applications, administrators and readers",
  ],
  ["createIam", "--iam", "--no-iam", "roles and policies of any kind"],
  [
    "enableDeletionProtection",
    "--enable-deletion-protection",
    "--no-deletion-protection",
    "the table's protection against deletion",
  ],
];

/** Options with a value: the option, its flag, its type, and its help. */
const VALUES: readonly (readonly [
  OptionName,
  flag: string,
  read: "number" | "text" | "windows",
  help: string,
])[] = [
  [
    "snapshotWindows",
    "--snapshot-windows <windows>",
    "windows",
    "The windows that usage is summed over, such as hourly,daily.",
  ],
  ["usageRetentionDays", "--usage-retention-days <days>", "number", "How long usage is kept."],
  [
    "auditRetentionDays",
    "--audit-retention-days <days>",
    "number",
    "How long audit events are kept.",
  ],
  [
    "pitrRecoveryDays",
    "--pitr-recovery-days <days>",
    "number",
    "How far back the table can be restored, from 1 to 35 days.",
  ],
  [
    "logRetentionDays",
    "--log-retention-days <days>",
    "number",
    "How long the logs of the Lambdas are kept.",
  ],
  [
    "lambdaTimeoutSeconds",
    "--lambda-timeout <seconds>",
    "number",
    "The most seconds that the aggregator may run.",
  ],
  ["lambdaMemoryMb", "--lambda-memory <megabytes>", "number", "The memory of the aggregator."],
  [
    "lambdaDurationThresholdPct",
    "--lambda-duration-threshold-pct <percentage>",
    "number",
    "The percentage of its time-out at which the aggregator's alarm goes off.",
  ],
  [
    "aggregatorReservedConcurrency",
    "--aggregator-reserved-concurrency <number>",
    "number",
    "How many invocations are reserved for the aggregator, which is also the most it gets.",
  ],
  ["alarmSnsTopic", "--alarm-sns-topic <arn>", "text", "The topic that alarms notify."],
  [
    "auditArchiveGlacierDays",
    "--audit-archive-glacier-days <days>",
    "number",
    "When archived events move to Glacier.",
  ],
  [
    "permissionBoundary",
    "--permission-boundary <policy>",
    "text",
    "The policy that bounds created roles: a name or an ARN.",
  ],
  [
    "roleNameFormat",
    "--role-name-format <format>",
    "text",
    "The names of roles, with {} for the usual name.",
  ],
  [
    "policyNameFormat",
    "--policy-name-format <format>",
    "text",
    "The names of policies, with {} for the usual name.",
  ],
  [
    "aggregatorRoleArn",
    "--aggregator-role-arn <arn>",
    "text",
    "An existing role for the aggregator, instead of a new one.",
  ],
  [
    "bucketTtlMultiplier",
    "--bucket-ttl-multiplier <number>",
    "number",
    "How many fill times an idle bucket is kept; 0 keeps it forever.",
  ],
  [
    "billingMode",
    "--billing-mode <mode>",
    "text",
    "How the table is paid for: on-demand or provisioned.",
  ],
  ["readCapacity", "--read-capacity <units>", "number", "The table's least read units."],
  ["maxReadCapacity", "--max-read-capacity <units>", "number", "The most read units."],
  ["writeCapacity", "--write-capacity <units>", "number", "The table's least write units."],
  ["maxWriteCapacity", "--max-write-capacity <units>", "number", "The most write units."],
  [
    "indexReadCapacity",
    "--index-read-capacity <units>",
    "number",
    "The least read units of each index.",
  ],
  [
    "indexWriteCapacity",
    "--index-write-capacity <units>",
    "number",
    "The least write units of each index.",
  ],
  [
    "capacityUtilizationPct",
    "--capacity-utilization-pct <percentage>",
    "number",
    "The percentage of its capacity that the table is scaled to use.",
  ],
];

/** Adds the options of a stack to a verb. Those that are left out keep what the stack has. */
export function addStackFlags(command: Command): Command {
  for (const [, on, off, about] of SWITCHES) {
    command.addOption(new Option(on, `With ${about}.`));
    command.addOption(new Option(off, `Without ${about}.`));
  }
  for (const [, flag, read, help] of VALUES)
    command.addOption(new Option(flag, help).argParser(READERS[read]));
  return command.addOption(
    new Option(
      "-t, --tag <key=value>",
      "A tag of everything in the stack. Repeat it for more; they replace earlier tags.",
    ).argParser(tagArgument),
  );
}

const READERS: Readonly<Record<"number" | "text" | "windows", (text: string) => unknown>> = {
  number: wholeNumber,
  text: (text: string): string => text,
  windows: (text: string): readonly string[] => text.split(",").map((window) => window.trim()),
};

/** The option itself checks the range. */
function wholeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number.");
}

function tagArgument(
  text: string,
  before?: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  if (!/^[^=]+=/.test(text))
    throw new InvalidArgumentError("A tag is written key=value, for example team=search.");
  return metadataArgument(text, before);
}

/** The options of a stack that a command line names. */
export function readStackOptions(command: Command): StackOptions {
  const readGiven = (flag: string): unknown => {
    const name = toAttributeName(flag);
    return command.getOptionValueSource(name) === "cli" ? command.getOptionValue(name) : undefined;
  };
  const options: [string, unknown][] = VALUES.map(([option, flag]) => [option, readGiven(flag)]);
  for (const [option, on, off] of SWITCHES) options.push([option, readSwitch(readGiven, on, off)]);
  options.push(["tags", readGiven("--tag")]);
  return Object.fromEntries(options.filter(([, value]) => value !== undefined));
}

/** `--iam` and `--no-iam` are one option to the parser; `--enable-x` and `--no-x` are two. */
function readSwitch(
  readGiven: (flag: string) => unknown,
  on: string,
  off: string,
): boolean | undefined {
  const isOn = readGiven(on) === true;
  const isOff = readGiven(off) === false;
  if (isOn && isOff) throw new UsageError(`${on} and ${off} contradict each other. Pass one.`);
  if (isOff) return false;
  return isOn ? true : undefined;
}

/** The parser's name for the value of a flag: `--no-iam` is `iam`. */
function toAttributeName(flag: string): string {
  return new Option(flag).attributeName();
}

/** The error for an invalid value, with the name of the flag instead of the option. */
export function inFlags(error: unknown): unknown {
  if (!(error instanceof ValidationError)) return error;
  const option = error.field.split(".")[0]!;
  const flag =
    VALUES.find(([name]) => name === option)?.[1].split(" ")[0] ??
    SWITCHES.find(([name]) => name === option)?.[1] ??
    { tags: "--tag", codeBucket: "--code-bucket", account: "--account" }[option];
  if (flag === undefined) return error;
  const got = error.value === "undefined" ? "" : ` (got '${error.value}')`;
  return new UsageError(`${flag} ${replaceOptionNames(error.reason)}${got}.`);
}

/**
 * Replaces the options in a reason by flags, because users of the command line do not know the
 * options.
 */
function replaceOptionNames(reason: string): string {
  return reason.replaceAll(
    /\b([a-z]+[A-Z]\w*)(: (true|false))?/g,
    (text, name: string, _, value) => {
      const switchable = SWITCHES.find(([option]) => option === name);
      if (switchable !== undefined) return value === "false" ? switchable[2] : switchable[1];
      return VALUES.find(([option]) => option === name)?.[1].split(" ")[0] ?? text;
    },
  );
}
