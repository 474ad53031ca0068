import { ValidationError } from "../../../core/errors.ts";
import { namespaceName } from "../../../core/identifiers.ts";
import { checkOptions, nearest, optionNames } from "../../../core/options.ts";
import { REPOSITORY_OPTIONS } from "../../repository-options.ts";
import type { RepositoryOptions } from "../../repository.ts";
import { DEFAULT_NAMESPACE } from "../../../core/namespace.ts";
import { LOCAL_REGION, type Environment } from "../transport/local-engine.ts";
import { checkRegion } from "../transport/region.ts";
import type { DynamoClient } from "../transport/sdk-transport.ts";
import type { DynamoTransport } from "../transport/transport.ts";

/** How a DynamoDB repository is opened. */
export interface DynamoOptions extends RepositoryOptions {
  /** The name of the stack, which is that of its table. @default `ZAEL_STACK`, or "zae-limiter" */
  readonly stack?: string;
  /** The region of the table. @default `AWS_REGION`, or what the SDK finds */
  readonly region?: string;
  /** An address other than AWS's, such as that of a local engine. */
  readonly endpointUrl?: string;
  /** An SDK client of your own; give it `maxAttempts: 1`. */
  readonly client?: DynamoClient;
  /**
   * Something else that sends signed calls, such as `leanTransport()`; its creator closes it.
   * @default the SDK's client
   */
  readonly transport?: DynamoTransport;
  /**
   * What is created when there is no table: a CloudFormation stack with the table ("stack", which
   * needs the package `@zae-limiter/infra`), the table alone ("table"), or nothing ("never", which
   * also registers no namespace). A table that exists is opened by all of them. With a `client` or
   * `transport` of your own, "stack" creates nothing: its credentials may be of another account.
   * @default "table" with an endpointUrl, else "stack"
   */
  readonly provisioning?: "stack" | "table" | "never";
  /** "table" only: whether a created table has a stream. @default true */
  readonly stream?: boolean;
  /**
   * Whether opening updates the Lambda of a stack if it is older than this library. Needs
   * `@zae-limiter/infra` and its permissions. @default false
   */
  readonly updateLambda?: boolean;
  /**
   * What opening does if the deployed Lambda is older than this library: it emits a warning, once
   * for each table and process (`WARN_LIMITER_LAMBDA_OLDER`), it throws `VersionMismatchError`, or
   * neither. A newer Lambda and none at all are accepted by each of them. @default "warn"
   */
  readonly lambda?: "warn" | "must-match" | "ignore";
  /**
   * How long an unused bucket is kept, as a multiple of the time that it needs to fill; 0 keeps it
   * forever, as buckets of entities with limits of their own for the resource are. @default 7
   */
  readonly bucketTtlMultiplier?: number;
  /**
   * For how many milliseconds a process may refuse calls by what it has last seen of a bucket,
   * without a read. Within that time, a call may be refused although another process has just given
   * back what it needs; 0 reads before every refusal. @default 1000
   */
  readonly refusalMemoryMs?: number;
  /** How long one request may take. @default 2000 */
  readonly requestTimeoutMs?: number;
  /** The most attempts at one request. @default 3 */
  readonly maxAttempts?: number;
  /**
   * How many shards a hot bucket may be split into, at most 64; with 1, buckets are never split.
   * @default 32
   */
  readonly maxShards?: number;
  /**
   * Whether writes of different buckets may share a request, which needs the permission
   * `dynamodb:PartiQLUpdate`. Where that is missing, each write is a request of its own, and the
   * process emits a warning, once (`WARN_LIMITER_REQUESTS_NOT_SHARED`).
   * @default true
   */
  readonly shareRequests?: boolean;
}

const OPTION_NAMES = optionNames<DynamoOptions>({
  ...REPOSITORY_OPTIONS,
  stack: true,
  region: true,
  endpointUrl: true,
  client: true,
  transport: true,
  provisioning: true,
  stream: true,
  updateLambda: true,
  lambda: true,
  bucketTtlMultiplier: true,
  refusalMemoryMs: true,
  requestTimeoutMs: true,
  maxAttempts: true,
  maxShards: true,
  shareRequests: true,
});

/** Options with every default filled in that needs no network. */
export interface ResolvedOptions {
  readonly stackName: string;
  readonly namespace: string;
  readonly region: string | undefined;
  readonly endpointUrl: string | undefined;
  readonly provisioning: "stack" | "table" | "never";
  readonly stream: boolean;
  readonly updateLambda: boolean;
  readonly lambda: (typeof LAMBDA_CHECKS)[number];
  readonly bucketTtlMultiplier: number;
  readonly refusalMemoryMs: number;
  readonly requestTimeoutMs: number;
  readonly maxAttempts: number;
  readonly maxShards: number;
  readonly shareRequests: boolean;
}

const LAMBDA_CHECKS = ["warn", "must-match", "ignore"] as const;

/** A transaction that gathers has a write for each shard, and DynamoDB allows 100 writes. */
const MOST_SHARDS = 64;
const DEFAULT_STACK = "zae-limiter";
const MAX_STACK_LENGTH = 55;

/**
 * Fills in what the options leave open, from the environment or by default. Throws for an invalid
 * option.
 */
export function resolveOptions(
  namespace: string | undefined,
  options: DynamoOptions,
  environment: Environment,
): ResolvedOptions {
  checkOptions(options, OPTION_NAMES, "DynamoRepository.open");
  const endpointUrl = options.endpointUrl === undefined ? undefined : checkUrl(options.endpointUrl);
  const region =
    options.region ??
    (environment["AWS_REGION"] ||
      environment["AWS_DEFAULT_REGION"] ||
      (endpointUrl === undefined ? undefined : LOCAL_REGION));
  const provisioning = chooseProvisioning(options, endpointUrl);
  return {
    stackName: stackName(options.stack ?? (environment["ZAEL_STACK"] || DEFAULT_STACK)),
    namespace: namespaceName(
      namespace ?? options.namespace ?? (environment["ZAEL_NAMESPACE"] || DEFAULT_NAMESPACE),
    ),
    region: region === undefined ? undefined : checkRegion(region),
    endpointUrl,
    provisioning,
    stream: options.stream ?? true,
    updateLambda: updatesLambda(options, provisioning),
    lambda: chooseLambdaCheck(options.lambda ?? "warn"),
    bucketTtlMultiplier: ttlMultiplier(options.bucketTtlMultiplier ?? 7),
    refusalMemoryMs: whole(options.refusalMemoryMs ?? 1000, "refusalMemoryMs", {
      least: 0,
      most: 60_000,
    }),
    requestTimeoutMs: whole(options.requestTimeoutMs ?? 2000, "requestTimeoutMs", {
      least: 1,
      most: 600_000,
    }),
    maxAttempts: whole(options.maxAttempts ?? 3, "maxAttempts", { least: 1, most: 100 }),
    maxShards: whole(options.maxShards ?? 32, "maxShards", { least: 1, most: MOST_SHARDS }),
    shareRequests: sharesRequests(options),
  };
}

/** Throws for what is not a boolean: the text "false" would count as true. */
function sharesRequests({ shareRequests = true }: DynamoOptions): boolean {
  if (typeof shareRequests === "boolean") return shareRequests;
  throw new ValidationError("shareRequests", shareRequests, "must be true or false");
}

/** Returns the name of a stack, or throws: CloudFormation and DynamoDB must both accept it. */
function stackName(value: unknown): string {
  if (typeof value !== "string" || !/^[A-Za-z][A-Za-z0-9-]*$/.test(value))
    throw new ValidationError(
      "stack",
      value,
      "must begin with a letter and contain only letters, digits and -",
    );
  if (value.length > MAX_STACK_LENGTH)
    throw new ValidationError(
      "stack",
      value,
      `must not be longer than ${MAX_STACK_LENGTH} characters`,
    );
  return value;
}

/** Returns a checked `bucketTtlMultiplier`, or throws. */
export function ttlMultiplier(value: unknown): number {
  return whole(value, "bucketTtlMultiplier", { least: 0, most: 10_000 });
}

function checkUrl(value: unknown): string {
  if (typeof value === "string" && /^https?:\/\//.test(value) && URL.canParse(value)) return value;
  throw new ValidationError(
    "endpointUrl",
    value,
    "must be an address such as http://127.0.0.1:8000",
  );
}

/** `create: false`, which every backend has, overrides what this one may create. */
function chooseProvisioning(
  { create, provisioning }: DynamoOptions,
  endpointUrl: string | undefined,
): "stack" | "table" | "never" {
  const wanted = checkProvisioning(provisioning ?? (endpointUrl === undefined ? "stack" : "table"));
  return create === false ? "never" : wanted;
}

function updatesLambda(
  { updateLambda = false }: DynamoOptions,
  provisioning: ResolvedOptions["provisioning"],
): boolean {
  if (updateLambda && provisioning === "never")
    throw new ValidationError(
      "updateLambda",
      updateLambda,
      'changes what is deployed, which provisioning "never" and create: false rule out',
    );
  return updateLambda;
}

function chooseLambdaCheck(value: unknown): ResolvedOptions["lambda"] {
  const found = LAMBDA_CHECKS.find((known) => known === value);
  if (found !== undefined) return found;
  const meant = typeof value === "string" ? nearest(value, LAMBDA_CHECKS) : undefined;
  const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
  throw new ValidationError("lambda", value, `must be one of ${LAMBDA_CHECKS.join(", ")}${hint}`);
}

function checkProvisioning(value: unknown): "stack" | "table" | "never" {
  if (value === "stack" || value === "table" || value === "never") return value;
  throw new ValidationError("provisioning", value, 'must be "stack", "table" or "never"');
}

function whole(
  value: unknown,
  field: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most)
    return value;
  throw new ValidationError(field, value, `must be a whole number from ${least} to ${most}`);
}
