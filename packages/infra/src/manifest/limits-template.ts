import { ValidationError } from "zae-limiter";
import { manifestOf, type Manifest } from "zae-limiter/manifest";

/** A CloudFormation template with one resource, which declares limits. */
export interface LimitsTemplate {
  readonly AWSTemplateFormatVersion: "2010-09-09";
  readonly Description: string;
  readonly Resources: {
    readonly Limits: {
      readonly Type: "Custom::ZaeLimiterLimits";
      readonly Properties: Readonly<Record<string, unknown>>;
    };
  };
}

/**
 * A CloudFormation template that declares the limits of a manifest: whoever deploys it applies
 * them, and whoever deletes its stack deletes them. `stack` is the one with the table, in the same
 * account and region.
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
  const manifest = manifestOf(namespace, declared);
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
          ...(isMisread(manifest)
            ? { Manifest: manifestText(manifest) }
            : (properties(manifest, false) as object)),
        },
      },
    },
  };
}

/** Lambda allows 64 characters, and the function is called `{stack}-limits-provisioner`. */
const LONGEST_STACK_NAME = 45;

/**
 * How long CloudFormation waits. The function answers within 15 minutes; should it die before it
 * can, Lambda runs it again after a minute, and the second run goes on where the first one ended.
 */
const SERVICE_TIMEOUT_SECONDS = 1920;

/** The keys below which people choose the names. */
const NAMED: ReadonlySet<string> = new Set(["resources", "entities", "limits", "metadata"]);

/** A part of a manifest as properties: known keys in PascalCase, chosen names as they are. */
function properties(value: unknown, isNamed: boolean): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) =>
      isNamed
        ? [key, properties(inner, false)]
        : [pascalCase(key), properties(inner, NAMED.has(key))],
    ),
  );
}

function pascalCase(key: string): string {
  return key.replaceAll(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** How a text begins that CloudFormation replaces by a parameter or a secret. */
const REFERENCE = "{{resolve:";

/** Whether CloudFormation would take a name for a function, or a text for a reference. */
function isMisread(value: unknown): boolean {
  if (typeof value === "string") return value.includes(REFERENCE);
  return (
    isObject(value) &&
    Object.entries(value).some(
      ([key, inner]) =>
        key === "Ref" || key.startsWith("Fn::") || isMisread(key) || isMisread(inner),
    )
  );
}

/** The text of a manifest, in which CloudFormation sees neither functions nor references. */
function manifestText(manifest: object): string {
  return JSON.stringify(manifest).replaceAll(REFERENCE, REFERENCE.replace("{{", "{\\u007b"));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
