/* `@zae-limiter/infra`: stacks, policies and status (ADR 018, 019). */

declare module "declared/@zae-limiter/infra" {
  import type { StackOptions } from "declared/zae-limiter/dynamodb";

  export interface StackPlace {
    readonly stack?: string;
    readonly region?: string;
    readonly endpointUrl?: string;
    readonly account?: string;
    readonly signal?: AbortSignal;
  }
  export interface ResourceChange {
    readonly action: "add" | "import" | "modify" | "replace" | "replace-if" | "remove";
    readonly logicalId: string;
    readonly resourceType: string;
    readonly physicalId: string | undefined;
    readonly because: readonly string[];
  }
  export interface StackEvent {
    readonly at: Date;
    readonly logicalId: string;
    readonly resourceType: string;
    readonly status: string;
    readonly reason: string | undefined;
  }

  // Changing stacks.
  export interface DeployOptions extends StackPlace {
    readonly stackOptions?: StackOptions;
    readonly codeBucket?: string;
    readonly confirm?: (changes: readonly ResourceChange[]) => boolean | Promise<boolean>;
    readonly dryRun?: boolean;
    readonly onEvent?: (event: StackEvent) => void;
    readonly onNotice?: (text: string) => void;
    readonly wait?: boolean;
  }
  export interface DeployReport {
    readonly stack: string;
    readonly region: string;
    readonly account: string;
    readonly outcome: "created" | "updated" | "unchanged" | "started" | "declined" | "planned";
    readonly changes: readonly ResourceChange[];
    readonly outputs: Readonly<Record<string, string>>;
  }
  export interface DeleteOptions extends StackPlace {
    readonly withData?: boolean;
    readonly onEvent?: (event: StackEvent) => void;
    readonly onNotice?: (text: string) => void;
    readonly wait?: boolean;
  }
  export interface DeleteReport {
    readonly stack: string;
    readonly region: string;
    readonly outcome: "deleted" | "started" | "absent";
    readonly retained: readonly string[];
  }
  export function destructive(changes: readonly ResourceChange[]): readonly ResourceChange[];
  export function deployStack(options?: DeployOptions): Promise<DeployReport>;
  export function ensureStack(place: StackPlace, stackOptions?: StackOptions): Promise<void>;
  export function deleteStack(options?: DeleteOptions): Promise<DeleteReport>;
  export function updateLambda(place?: StackPlace): Promise<void>;

  // Looking at them. The parts of a status may get more fields.
  export interface StackSummary {
    readonly stack: string;
    readonly status: string;
    readonly createdAt?: Date;
    readonly updatedAt?: Date;
    readonly version?: string;
    readonly lambdaVersion?: string;
    readonly schemaVersion?: string;
  }
  export interface StatusOptions extends StackPlace {
    readonly nowMs?: () => number;
    readonly timeoutMs?: number;
  }
  export interface Unknown {
    readonly unknown: string;
  }
  export interface StackStatus {
    readonly stack: string;
    readonly region: string;
    readonly endpointUrl?: string;
    readonly problems: readonly string[];
    readonly warnings: readonly string[];
    readonly connectivity: {
      readonly reachable: boolean;
      readonly latencyMs?: number;
      readonly reason?: string;
    };
    readonly infrastructure: { readonly status: string } | Unknown | undefined;
    readonly table: { readonly status: string } | Unknown | undefined;
    readonly aggregator: {
      readonly state: "enabled" | "starting" | "none" | "broken" | "unknown";
      readonly reason: string;
    };
    readonly versions:
      | { readonly client: string; readonly compatible: boolean; readonly meaning: string }
      | Unknown
      | undefined;
  }
  export function listStacks(place?: Omit<StackPlace, "stack">): Promise<readonly StackSummary[]>;
  export function stackExists(place?: StackPlace): Promise<boolean>;
  export function stackStatus(options?: StatusOptions): Promise<StackStatus>;

  // What stacks are made of.
  export interface Template {
    readonly Parameters: object;
    readonly Resources: object;
    readonly Outputs: object;
  }
  export interface LambdaPackage {
    readonly name: "aggregator" | "provisioner";
    readonly content: Uint8Array;
    readonly sha256: string;
  }
  export function stackTemplate(): Template;
  export function templateYaml(): string;
  export function parametersOf(
    stack: string,
    options: StackOptions,
    current?: Readonly<Record<string, string>>,
  ): Readonly<Record<string, string>>;
  export function lambdaPackage(name: "aggregator" | "provisioner"): Promise<LambdaPackage>;

  // Policies: for an ARN, or for a function of a template.
  export type Value =
    | string
    | number
    | boolean
    | readonly Value[]
    | { readonly [name: string]: Value };
  export type PolicyKind =
    | "acquire-only"
    | "full-access"
    | "read-only"
    | "namespace-acquire"
    | "namespace-full-access"
    | "namespace-read-only";
  export type PolicyStatement = { readonly [name: string]: Value };
  export type PolicyDocument = {
    readonly Version: "2012-10-17";
    readonly Statement: readonly PolicyStatement[];
  };
  export interface AggregatorResources {
    readonly tableArn: Value;
    readonly streamArn: Value;
    readonly archiveBucketArn?: Value;
  }
  export const NAMESPACE_TAG: "zael_namespace_id";
  export const POLICY_KINDS: readonly PolicyKind[];
  export function policyDocument(kind: PolicyKind, tableArn: Value): PolicyDocument;
  export function aggregatorStatements(resources: AggregatorResources): readonly PolicyStatement[];
  export function runnerStatements(resources: AggregatorResources): readonly PolicyStatement[];
  export function provisionerStatements(tableArn: Value): readonly PolicyStatement[];
}

declare module "declared/@zae-limiter/infra/cdk" {
  import type { aws_iam } from "aws-cdk-lib";
  import type { Construct } from "constructs";
  import type { StackOptions } from "declared/zae-limiter/dynamodb";

  export interface ZaeLimiterProps extends Omit<StackOptions, "auditRetentionDays" | "tags"> {
    readonly stackName?: string;
  }
  export class ZaeLimiter {
    constructor(scope: Construct, id: string, props?: ZaeLimiterProps);
    readonly tableName: string;
    readonly tableArn: string;
    readonly provisionerArn: string | undefined;
    grantAcquire(grantee: aws_iam.IGrantable): void;
    grantFullAccess(grantee: aws_iam.IGrantable): void;
    grantReadOnly(grantee: aws_iam.IGrantable): void;
  }
}
