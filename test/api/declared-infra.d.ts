// Made by `npm run declare`.

declare module "declared/@zae-limiter/infra" {
  import { StackOptions } from "declared/zae-limiter/dynamodb";
  export interface StackPlace {
    readonly stack?: string;
    readonly region?: string;
    readonly endpointUrl?: string;
    readonly account?: string;
    readonly signal?: AbortSignal;
  }
  export function lambdaPackage(name: LambdaPackage["name"]): Promise<LambdaPackage>;
  export interface LambdaPackage {
    readonly name: "aggregator" | "provisioner";
    readonly content: Uint8Array;
    readonly sha256: string;
  }
  export function listStacks(place?: Omit<StackPlace, "stack">): Promise<readonly StackSummary[]>;
  export interface StackSummary extends TaggedVersions {
    readonly stack: string;
    readonly status: string;
    readonly createdAt?: Date;
    readonly updatedAt?: Date;
  }
  export function stackStatus(options?: StatusOptions): Promise<StackStatus>;
  export interface StatusOptions extends StackPlace {
    readonly nowMs?: () => number;
    readonly timeoutMs?: number;
  }
  export type AggregatorCondition = "enabled" | "starting" | "none" | "broken" | "unknown";
  export interface AggregatorStatus {
    readonly state: AggregatorCondition;
    readonly reason: string;
    readonly heartbeat: Seen<HeartbeatState>;
  }
  export interface Connectivity {
    readonly reachable: boolean;
    readonly latencyMs?: number;
    readonly reason?: string;
  }
  export interface HeartbeatState {
    readonly countedUntil: Date;
    readonly lagMs: number;
  }
  export interface NamedResource {
    readonly logicalId: string;
    readonly physicalId: string;
  }
  export type Seen<T> = T | Unknown | undefined;
  export interface StackState {
    readonly status: string;
    readonly reason?: string;
    readonly isOurs: boolean;
    readonly createdAt?: Date;
    readonly updatedAt?: Date;
    readonly version?: string;
    readonly lambdaVersion?: string;
    readonly schemaVersion?: string;
    readonly drift: readonly string[];
  }
  export interface StackStatus {
    readonly stack: string;
    readonly region: string;
    readonly endpointUrl?: string;
    readonly problems: readonly string[];
    readonly warnings: readonly string[];
    readonly connectivity: Connectivity;
    readonly infrastructure: Seen<StackState>;
    readonly table: Seen<TableState>;
    readonly aggregator: AggregatorStatus;
    readonly versions: Seen<VersionsState>;
    readonly functions: Seen<readonly NamedResource[]>;
    readonly roles: Seen<readonly NamedResource[]>;
    readonly policies: Seen<readonly NamedResource[]>;
  }
  export interface TableState {
    readonly status: string;
    readonly itemCount?: number;
    readonly sizeBytes?: number;
    readonly billing: "on demand" | "provisioned";
    readonly streamArn?: string;
    readonly ttlAttribute: Seen<{
      readonly name: string;
    }>;
    readonly pointInTimeRecovery: Seen<{
      readonly days?: number;
    }>;
    readonly deletionProtection: boolean;
    readonly indexes: Readonly<Record<string, string>>;
  }
  export interface Unknown {
    readonly unknown: string;
  }
  export interface VersionsState {
    readonly client: string;
    readonly schema?: string;
    readonly lambda?: string;
    readonly minimumClient?: string;
    readonly compatible: boolean;
    readonly meaning: string;
  }
  export function toParameters(
    stack: string,
    options: StackOptions,
    current?: Parameters,
  ): Parameters;
  export function aggregatorStatements({
    tableArn,
    streamArn,
    archiveBucketArn,
  }: AggregatorResources): readonly PolicyStatement[];
  export function runnerStatements(resources: AggregatorResources): readonly PolicyStatement[];
  export interface AggregatorResources {
    readonly tableArn: Value;
    readonly streamArn: Value;
    readonly archiveBucketArn?: Value;
  }
  export const NAMESPACE_TAG = "zael_namespace_id";
  export function policyDocument(kind: PolicyKind, tableArn: Value): PolicyDocument;
  export const POLICY_KINDS: readonly PolicyKind[];
  export type PolicyDocument = {
    readonly Version: "2012-10-17";
    readonly Statement: readonly PolicyStatement[];
  };
  export type PolicyKind =
    | "acquire-only"
    | "full-access"
    | "read-only"
    | "namespace-acquire"
    | "namespace-full-access"
    | "namespace-read-only";
  export function provisionerStatements(tableArn: Value): readonly PolicyStatement[];
  export type PolicyStatement = {
    readonly [name: string]: Value;
  };
  export function deleteStack(options?: DeleteOptions): Promise<DeleteReport>;
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
  export function ensureStack(place: StackPlace, stackOptions?: StackOptions): Promise<void>;
  export function stackExists(place?: StackPlace): Promise<boolean>;
  export function updateLambda(place?: StackPlace): Promise<void>;
  export function stackTemplate(): Template;
  export function templateYaml(template?: Template): string;
  export interface Template {
    readonly AWSTemplateFormatVersion: "2010-09-09";
    readonly Description: string;
    readonly Parameters: {
      readonly [name: string]: Parameter;
    };
    readonly Rules: {
      readonly [name: string]: Rule;
    };
    readonly Conditions: {
      readonly [name: string]: Value;
    };
    readonly Resources: Resources;
    readonly Outputs: {
      readonly [name: string]: Output;
    };
  }
  interface TaggedVersions {
    readonly version?: string;
    readonly lambdaVersion?: string;
    readonly schemaVersion?: string;
  }
  type Parameters = Readonly<Record<string, string>>;
  type Value =
    | string
    | number
    | boolean
    | readonly Value[]
    | {
        readonly [name: string]: Value;
      };
  interface Parameter {
    readonly Type: "String" | "Number";
    readonly Default: string | number;
    readonly Description: string;
    readonly AllowedValues?: readonly (string | number)[];
    readonly AllowedPattern?: string;
    readonly MinValue?: number;
    readonly MaxValue?: number;
  }
  interface Rule {
    readonly Assertions: readonly {
      readonly Assert: Value;
      readonly AssertDescription: string;
    }[];
  }
  type Resources = {
    readonly [logicalId: string]: Resource;
  };
  interface Output {
    readonly Condition?: string;
    readonly Value: Value;
    readonly Export?: {
      readonly Name: Value;
    };
  }
  interface Resource {
    readonly Type: string;
    readonly Condition?: string;
    readonly DeletionPolicy?: "Retain" | "RetainExceptOnCreate" | "Delete";
    readonly UpdateReplacePolicy?: "Retain" | "Delete";
    readonly Properties: Properties;
  }
  type Properties = {
    readonly [name: string]: Value;
  };
}
