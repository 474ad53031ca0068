import { ValidationError } from "zae-limiter";
import { buildManifest, type Manifest } from "zae-limiter/manifest";
import { manifestYaml } from "./manifest-yaml.ts";

/** A CloudFormation template with one resource, which declares limits. */
export interface LimitsTemplate {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
  readonly Resources: {
    readonly Limits: {
      readonly Type: "Custom::ZaeLimiterLimits";
      readonly Properties: Readonly<Record<string, unknown>> & { readonly Manifest: string };
    };
  };
}

/**
 * A CloudFormation template that declares the limits of a manifest. Deploying it applies them, and
 * deleting its stack deletes them. `stack` is the one with the table, in the same account and
 * region.
 * @example
 * const template = limitsTemplate(manifest, { stack: "limits" });
 * await writeFile("template.yaml", manifestYaml(template));
 */
export function limitsTemplate(
  { namespace, declared }: Manifest,
  { stack }: { readonly stack: string },
): LimitsTemplate {
  if (!/^[A-Za-z][A-Za-z0-9-]*$/.test(stack))
    throw new ValidationError(
      "stack",
      stack,
      "must begin with a letter and contain only letters, digits and -",
    );
  if (stack.length > LONGEST_STACK_NAME)
    throw new ValidationError(
      "stack",
      stack,
      `must have at most ${LONGEST_STACK_NAME} characters: a stack with a longer name has no provisioner`,
    );
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: `zae-limiter: the limits of namespace ${namespace} in the stack ${stack}.`,
    Resources: {
      // The resource owns its limits by this name: another one would delete and create them.
      Limits: {
        Type: "Custom::ZaeLimiterLimits",
        Properties: {
          ServiceToken: { "Fn::ImportValue": `${stack}-ProvisionerArn` },
          ServiceTimeout: SERVICE_TIMEOUT_SECONDS,
          Manifest: manifestYaml(buildManifest(namespace, declared)),
        },
      },
    },
  };
}

/** Lambda allows 64 characters, and the function is called `{stack}-limits-provisioner`. */
const LONGEST_STACK_NAME = 45;

/**
 * How long CloudFormation waits. The function answers within 15 minutes; should it die before it
 * can, Lambda runs it again after a minute, and the second run continues where the first one
 * stopped.
 */
const SERVICE_TIMEOUT_SECONDS = 1920;
