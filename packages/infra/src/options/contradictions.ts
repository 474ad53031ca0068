import { ValidationError } from "zae-limiter";
import type { StackOptions } from "zae-limiter/dynamodb";
import { LONGEST_WITH_PROVISIONER } from "./names.ts";

/**
 * Throws for options that contradict each other or the parameters of the stack. `parameters` are
 * those that the stack would have.
 */
export function checkTogether(
  stack: string,
  options: StackOptions,
  parameters: Readonly<Record<string, string>>,
): void {
  checkRoles(options, parameters);
  checkProvisioner(stack, options, parameters);
  checkCapacity(options, parameters);
}

function checkRoles(
  { createIamRoles, enableAggregator, aggregatorRoleArn }: StackOptions,
  parameters: Readonly<Record<string, string>>,
): void {
  const hasIam = parameters["EnableIAM"] === "true";
  if (parameters["EnableIAMRoles"] === "true" && !hasIam)
    throw new ValidationError(
      "createIamRoles",
      createIamRoles ?? true,
      "creates roles, which createIam: false forbids; set one of them to the opposite",
    );
  // Without IAM the aggregator is left out silently, unless an option asks for it.
  if (enableAggregator === true && !hasIam && parameters["AggregatorRoleArn"] === "")
    throw new ValidationError(
      "aggregatorRoleArn",
      aggregatorRoleArn,
      "must name a role for the aggregator, because createIam: false creates none; " +
        "or set enableAggregator to false",
    );
  if (enableAggregator === false && aggregatorRoleArn)
    throw new ValidationError(
      "aggregatorRoleArn",
      aggregatorRoleArn,
      "names a role for an aggregator that enableAggregator: false leaves out",
    );
}

function checkProvisioner(
  stack: string,
  { enableProvisioner }: StackOptions,
  parameters: Readonly<Record<string, string>>,
): void {
  if (enableProvisioner !== true) return;
  // Like the aggregator, it is left out silently without IAM, unless an option asks for it.
  if (parameters["EnableIAM"] !== "true")
    throw new ValidationError(
      "enableProvisioner",
      enableProvisioner,
      "needs a role, which createIam: false forbids; set one of them to the opposite",
    );
  if (stack.length > LONGEST_WITH_PROVISIONER)
    throw new ValidationError(
      "enableProvisioner",
      enableProvisioner,
      `needs a stack whose name has at most ${LONGEST_WITH_PROVISIONER} characters, because ` +
        "Lambda allows 64 for that of the function",
    );
}

/** Pairs of the least and the most capacity: options and their parameters. */
const RANGES = [
  ["readCapacity", "ReadCapacity", "maxReadCapacity", "MaxReadCapacity"],
  ["writeCapacity", "WriteCapacity", "maxWriteCapacity", "MaxWriteCapacity"],
  ["indexReadCapacity", "IndexReadCapacity", "maxReadCapacity", "MaxReadCapacity"],
  ["indexWriteCapacity", "IndexWriteCapacity", "maxWriteCapacity", "MaxWriteCapacity"],
] as const;

function checkCapacity(options: StackOptions, parameters: Readonly<Record<string, string>>): void {
  const isProvisioned = parameters["BillingMode"] === "PROVISIONED";
  const given = [
    ...RANGES.flatMap(([least, , most]) => [least, most] as const),
    "capacityUtilizationPct" as const,
  ].find((option) => options[option] !== undefined);
  if (given !== undefined && !isProvisioned)
    throw new ValidationError(
      given,
      options[given],
      'has no effect on demand; set billingMode to "provisioned", or leave it out',
    );
  if (!isProvisioned) return;
  for (const [least, leastParameter, most, mostParameter] of RANGES)
    if (Number(parameters[leastParameter]) > Number(parameters[mostParameter]))
      throw new ValidationError(
        least,
        Number(parameters[leastParameter]),
        `must not be above ${most}, which is ${parameters[mostParameter]}; raise both`,
      );
}
