import { fileURLToPath } from "node:url";
import type { CfnDeletionPolicy, CfnResource, aws_iam as Iam } from "aws-cdk-lib";
import type * as ConstructsModule from "constructs";
import { ValidationError } from "zae-limiter";
import type { StackOptions } from "zae-limiter/dynamodb";
import { codeParameter, listFunctions } from "../options/functions.ts";
import { toParameters, type Parameters } from "../options/parameters.ts";
import { resolveTemplate } from "../options/resolve-template.ts";
import { policyDocument, type PolicyKind } from "../policies/policy-document.ts";
import type { Resource, Value } from "../cloudformation/template.ts";
import { loadPeer } from "./load-cdk.ts";

const cdk = loadPeer("aws-cdk-lib");
const { Construct } = loadPeer("constructs");

/** Options that a construct does not take, and what to do instead. */
const ELSEWHERE = {
  auditRetentionDays: "is stored in the table: call setSystemDefaults",
  tags: "are the app's: call Tags.of(stack).add",
} as const;

/** How the construct is made: the options of a stack, except those that an app sets elsewhere. */
export interface ZaeLimiterProps extends Omit<StackOptions, keyof typeof ELSEWHERE> {
  /**
   * The name of the table, which is what `DynamoRepository.open` calls `stack`, and the beginning
   * of all other names. @default the name of the CDK stack
   */
  readonly stackName?: string;
}

/**
 * The resources of a zae-limiter stack, as a construct of a CDK app.
 *
 * @example
 * const limiter = new ZaeLimiter(this, "Limiter", { stackName: "limits" });
 * limiter.grantAcquire(service.taskRole);
 */
export class ZaeLimiter extends Construct {
  /** The name of the table: what `DynamoRepository.open` calls `stack`. */
  readonly tableName: string;
  /** The ARN of the table. */
  readonly tableArn: string;
  /**
   * The ARN of the function that applies limits, which is the `serviceToken` of a
   * `Custom::ZaeLimiterLimits`; undefined if there is none.
   */
  readonly provisionerArn: string | undefined;

  constructor(scope: ConstructsModule.Construct, id: string, props: ZaeLimiterProps = {}) {
    super(scope, id);
    const { stackName = cdk.Stack.of(this).stackName, ...options } = props;
    for (const [name, reason] of Object.entries(ELSEWHERE))
      if (name in options) throw new ValidationError(name, name, reason);
    const tokens = new Tokens(options);
    const parameters = toParameters(checkName(stackName), tokens.options);
    const { Resources, Outputs } = resolveTemplate({
      ...parameters,
      ...this.#code(parameters),
      "AWS::StackName": stackName,
    });
    const resources = this.#resources(tokens.restoreTokens(Resources) as typeof Resources);
    for (const [name, { Value: value, Export }] of Object.entries(Outputs)) {
      const output = new cdk.CfnOutput(this, `${name}Output`, {
        value: tokens.restoreTokens(linkResources(value, resources)) as string,
      });
      output.exportName = Export?.Name as string;
    }
    const table = resources.get("RateLimitsTable")!;
    this.tableName = table.ref;
    this.tableArn = table.getAtt("Arn").toString();
    this.provisionerArn = resources.get("ProvisionerFunction")?.getAtt("Arn").toString();
  }

  /**
   * Lets a role acquire, in every namespace.
   * @example limiter.grantAcquire(service.taskRole);
   */
  grantAcquire(grantee: Iam.IGrantable): void {
    this.#grant("acquire-only", grantee);
  }

  /**
   * Lets a role manage limits, entities and namespaces, too.
   * @example limiter.grantFullAccess(adminRole);
   */
  grantFullAccess(grantee: Iam.IGrantable): void {
    this.#grant("full-access", grantee);
  }

  /**
   * Lets a role read limits, usage and audit events.
   * @example limiter.grantReadOnly(dashboardRole);
   */
  grantReadOnly(grantee: Iam.IGrantable): void {
    this.#grant("read-only", grantee);
  }

  #grant(kind: PolicyKind, { grantPrincipal }: Iam.IGrantable): void {
    for (const statement of policyDocument(kind, this.tableArn).Statement)
      grantPrincipal.addToPrincipalPolicy(cdk.aws_iam.PolicyStatement.fromJson(statement));
  }

  /** The code of the functions as assets, which CDK puts into its own bucket. */
  #code(parameters: Parameters): Parameters {
    const code: Record<string, string> = {};
    for (const name of listFunctions(parameters)) {
      const id = `${name[0]!.toUpperCase()}${name.slice(1)}Code`;
      // Two folders up, both from the sources and from the build.
      const path = fileURLToPath(new URL(`../../dist/lambda/${name}.zip`, import.meta.url));
      const asset = new cdk.aws_s3_assets.Asset(this, id, { path });
      code["CodeBucket"] = asset.s3BucketName;
      code[codeParameter(name)] = asset.s3ObjectKey;
    }
    return code;
  }

  #resources(declared: Readonly<Record<string, Resource>>): ReadonlyMap<string, CfnResource> {
    const resources = new Map(
      Object.entries(declared).map(([name, { Type }]) => [
        name,
        new cdk.CfnResource(this, name, { type: Type }),
      ]),
    );
    for (const [name, resource] of resources) {
      const { Properties, DeletionPolicy, UpdateReplacePolicy } = declared[name]!;
      for (const [property, value] of Object.entries(Properties))
        resource.addPropertyOverride(property, linkResources(value, resources));
      resource.cfnOptions.deletionPolicy = DeletionPolicy as CfnDeletionPolicy;
      resource.cfnOptions.updateReplacePolicy = UpdateReplacePolicy as CfnDeletionPolicy;
    }
    return resources;
  }
}

/** Replaces references to resources of the template by those of the app, whose names differ. */
function linkResources(value: Value, resources: ReadonlyMap<string, CfnResource>): unknown {
  if (typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((each: Value) => linkResources(each, resources));
  const { Ref, "Fn::GetAtt": attribute, "Fn::Sub": text } = value as Record<string, Value>;
  if (typeof Ref === "string" && resources.has(Ref)) return resources.get(Ref)!.ref;
  if (Array.isArray(attribute))
    return resources.get(attribute[0] as string)!.getAtt(attribute[1] as string);
  if (typeof text === "string")
    return cdk.Fn.sub(
      text,
      Object.fromEntries(
        [...resources]
          .filter(([name]) => text.includes(`\${${name}}`))
          .map(([name, resource]) => [name, resource.ref]),
      ),
    );
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, linkResources(each, resources)]),
  );
}

/**
 * Texts that are known only when the app is deployed, such as the ARN of a topic that the app
 * creates. Options are checked with examples in their place, which are exchanged afterwards.
 */
class Tokens {
  readonly options: StackOptions;
  readonly #byExample = new Map<string, string>();

  constructor(options: StackOptions) {
    this.options = Object.fromEntries(
      Object.entries(options).map(([name, value]) => [name, this.#checkable(name, value)]),
    );
  }

  /** A value with tokens where examples were. */
  restoreTokens(value: unknown): unknown {
    if (typeof value === "string") return this.#byExample.get(value) ?? value;
    if (Array.isArray(value)) return value.map((each) => this.restoreTokens(each));
    if (!isPlain(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, this.restoreTokens(each)]),
    );
  }

  #checkable(name: string, value: unknown): unknown {
    const example = EXAMPLES[name];
    if (example === undefined || !cdk.Token.isUnresolved(value)) return value;
    this.#byExample.set(example, value as string);
    return example;
  }
}

/** The options that may be tokens, and what stands for them. */
const EXAMPLES: Readonly<Record<string, string>> = {
  alarmSnsTopic: "arn:aws:sns:eu-west-1:000000000000:token",
  aggregatorRoleArn: "arn:aws:iam::000000000000:role/token",
  permissionBoundary: "arn:aws:iam::000000000000:policy/token",
};

function isPlain(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
  );
}

/** CloudFormation, DynamoDB and the library must all accept the name. */
function checkName(name: string): string {
  if (/^[A-Za-z][A-Za-z0-9-]{0,54}$/.test(name)) return name;
  throw new ValidationError(
    "stackName",
    name,
    "must begin with a letter, contain only letters, digits and -, and have at most 55 characters",
  );
}
