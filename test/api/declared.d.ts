// The public surface as it was agreed on, under module names of its own, so that it can be compared with what is built. surface.test-d.ts
// does that. Change it together with the surface, and only with an ADR. Kept in its own layout: it is easier to read side by side.

declare module "declared/zae-limiter" {
  // ---- limits --------------------------------------------------------------------------------------------------------------
  export interface Limit {
    readonly name: string; readonly capacity: number; readonly refillAmount: number; readonly refillPeriodSeconds: number;
    readonly kind?: "rate";                          // absent means "rate"; other kinds come later
  }
  type LimitOf = (name: string, rate: number, options?: { readonly burst?: number }) => Limit;   // capacity = burst ?? rate
  export const Limit: {
    readonly perSecond: LimitOf; readonly perMinute: LimitOf; readonly perHour: LimitOf; readonly perDay: LimitOf;
    custom(limit: Limit): Limit;                     // validates; plain objects are fine everywhere
    parse(text: string): Limit;                      // "tpm:10000/min:15000", as in the CLI
    format(limit: Limit): string;                    // parse(format(l)) equals l, for every valid l
  };
  export type Amounts = Readonly<Record<string, number>>;
  export type OnUnavailable = "allow" | "block";
  export type ConfigSource = "entity" | "entity_default" | "resource" | "system" | "override";
  export type UsageWindow = "hourly" | "daily" | "monthly";
  export const VERSION: string;

  // ---- models --------------------------------------------------------------------------------------------------------------
  export interface Page<T> { readonly items: readonly T[]; readonly cursor: string | undefined }   // cursor: undefined on the last page
  export interface Entity {
    readonly id: string; readonly name: string; readonly parentId: string | undefined; readonly cascade: boolean;
    readonly metadata: Readonly<Record<string, string>>; readonly createdAt: Date;
  }
  /** One limit of one bucket of a decision: entity first, then its parent, then further resources; every limit, charged or not. */
  export interface LimitStatus {
    readonly entityId: string; readonly resource: string; readonly limitName: string; readonly limit: Limit;
    readonly source: ConfigSource;                   // the level that the limit came from
    readonly available: number;                      // whole tokens, rounded down; negative in debt
    readonly requested: number; readonly exceeded: boolean; readonly deficit: number;
    readonly retryAfterSeconds: number;              // 0 when it fits, Infinity when it never can
  }
  /** One limit of one stored bucket (one shard), as stored; `available` is the balance now, refill included. */
  export interface BucketState {
    readonly entityId: string; readonly resource: string; readonly limitName: string;
    readonly shard: number; readonly shardCount: number;
    readonly tokensMilli: number; readonly lastRefillMs: number; readonly capacityMilli: number;      // of this shard
    readonly refillAmountMilli: number; readonly refillPeriodMs: number; readonly totalConsumedMilli: number;
    readonly available: number;
  }
  export interface UsageSnapshot {
    readonly entityId: string; readonly resource: string; readonly window: UsageWindow;
    readonly windowStart: Date; readonly windowEnd: Date;    // half open: windowEnd is the start of the next window
    readonly counters: Amounts;                              // tokens per limit, exact to the thousandth, net of what was given back: of its own calls, or all that was charged if the query names the entity
    readonly requests: number;                               // granted acquires, counted like counters
    readonly cascaded: Amounts; readonly cascadedRequests: number;   // what came by cascade: beside counters, or part of them if the query names the entity (ADR 006)
    readonly complete: boolean;                              // false while the window may still grow: until it has ended, and on DynamoDB all of it is counted
  }
  export interface UsageSummary {
    readonly snapshotCount: number; readonly total: Amounts; readonly average: Amounts; readonly requests: number;   // average: per window
    readonly cascaded: Amounts; readonly cascadedRequests: number;   // beside total, or part of it if the query names an entity (ADR 006)
    readonly minWindowStart: Date | undefined; readonly maxWindowStart: Date | undefined;
    readonly completeSince?: Date;                           // memory only, when it had to drop usage (ADR 004): windows that begin earlier lack some
    readonly countedUntil?: Date;                            // DynamoDB only (ADR 006): windows that end later are not complete
  }
  export interface UsagePage extends Page<UsageSnapshot> { readonly completeSince?: Date; readonly countedUntil?: Date }
  export interface EntityCapacity { readonly entityId: string; readonly capacity: number; readonly available: number; readonly utilizationPct: number }
  export interface ResourceCapacity {
    readonly resource: string; readonly limitName: string; readonly totalCapacity: number; readonly totalAvailable: number;
    readonly utilizationPct: number; readonly cascadedCapacity: number; readonly cascadedAvailable: number;   // how much of the totals belongs to entities that others cascade into
    readonly entities: readonly EntityCapacity[];
  }
  export type AuditAction = "entity_created" | "entity_updated" | "entity_deleted" | "limits_set" | "limits_deleted"
    | "namespace_registered" | "namespace_deleted" | "namespace_recovered" | "namespace_purged";
  export interface AuditEvent {
    readonly eventId: string;                        // ULID
    readonly timestamp: Date; readonly entityId: string;     // "$SYSTEM" and "$RESOURCE:{resource}" for the other levels
    readonly action: AuditAction | (string & {});
    readonly principal: string | undefined; readonly resource: string | undefined; readonly details: Readonly<Record<string, unknown>>;
  }
  export type NamespaceStatus = "active" | "deleted" | "purging";
  export interface NamespaceInfo {
    readonly name: string; readonly namespaceId: string; readonly status: NamespaceStatus; readonly createdAt: Date; readonly deletedAt: Date | undefined;
  }
  export interface StoredLevel { readonly source: Exclude<ConfigSource, "override">; readonly limits: readonly Limit[]; readonly inherit: boolean }
  export interface ResolvedLimits {
    readonly limits: readonly Limit[]; readonly onUnavailable: OnUnavailable | undefined;
    readonly source: ConfigSource;                   // of the strongest level
    readonly sources: Readonly<Record<string, ConfigSource>>;    // the level of each limit, by name
    readonly levels: readonly StoredLevel[];         // every stored level of this entity and resource, strongest first, also the hidden ones
  }
  export interface SystemDefaults {
    readonly limits: readonly Limit[]; readonly onUnavailable: OnUnavailable | undefined;
    readonly auditRetentionDays: number; readonly usageRetentionDays: number;    // 90 and 90 when nothing is stored
  }
  export interface CacheStats { readonly hits: number; readonly misses: number; readonly size: number; readonly ttlMs: number }
  export interface ProvisionerState {
    readonly managedSystem: boolean; readonly managedResources: readonly string[];
    readonly managedEntities: Readonly<Record<string, readonly string[]>>;   // entity → resources
    readonly lastApplied: Date | undefined; readonly appliedHash: string | undefined;
    readonly revision: number;                       // 0 when nothing is stored
  }
  export interface VersionRecord {
    readonly schemaVersion: string; readonly lambdaVersion: string | undefined; readonly clientMinVersion: string;
    readonly updatedAt: Date; readonly updatedBy: string | undefined;
  }
  export interface BackendCapabilities {
    readonly auditLogging: boolean; readonly usageSnapshots: boolean; readonly infrastructureManagement: boolean;
    readonly changeStreams: boolean; readonly batchOperations: boolean;
  }
  /** Counters since the repository was opened; 0 where a backend has no such thing. */
  export interface RepositoryStatistics {
    readonly requests: number; readonly writes: number; readonly failedConditions: number; readonly retries: number;
    readonly batches: number; readonly batchedOperations: number; readonly refusalsFromMemory: number; readonly splits: number;
    readonly merges: number;
  }

  // ---- limiter -------------------------------------------------------------------------------------------------------------
  export interface AcquireRequest {
    readonly entityId: string; readonly resource: string;
    readonly consume: Amounts;                       // whole, not negative; a limit that is not named is not charged, but is on the lease
    readonly also?: Readonly<Record<string, Amounts>>;       // further resources of the entity, all or none (at most 16 resources in all)
    readonly limits?: readonly Limit[];              // overrides the stored configuration for this call; not with `also`
    readonly onUnavailable?: OnUnavailable;
    readonly waitUpToMs?: number;                    // 0 by default: refuse at once
    readonly signal?: AbortSignal;                   // ends the waiting; rejects with signal.reason; no effect after the grant
  }
  export interface RateLimiterOptions {
    readonly repository: Repository; readonly onUnavailable?: OnUnavailable;
    readonly onSettlementFailed?: (error: RateLimiterUnavailable, lease: Lease) => void;   // default: a process warning
  }
  export type AcquireResult = { readonly granted: true; readonly lease: Lease } | { readonly granted: false; readonly refusal: RateLimitExceeded };
  export class RateLimiter implements AsyncDisposable {
    constructor(options: RateLimiterOptions);
    acquire<T>(request: AcquireRequest, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;   // commits on return, rolls back on throw
    acquire(request: AcquireRequest): Promise<Lease>;        // for `await using`; rolls back unless committed
    tryAcquire(request: AcquireRequest): Promise<AcquireResult>;
    check(request: AcquireRequest): Promise<Availability>;   // the verdict of an acquire, nothing written
    available(entityId: string, resource: string, options?: { readonly limits?: readonly Limit[] }): Promise<Record<string, number>>;
    timeUntilAvailable(entityId: string, resource: string, needed: Amounts, options?: { readonly limits?: readonly Limit[] }): Promise<number>;
    isReachable(options?: { readonly timeoutMs?: number }): Promise<boolean>;
    close(): Promise<void>;                          // ends waiting calls with RateLimiterUnavailable; leaves the repository open
    [Symbol.asyncDispose](): Promise<void>;
  }
  /** The part of a lease that belongs to one resource. */
  export interface LeaseOfResource {
    readonly resource: string;
    readonly consumed: Amounts;                      // of the entity, every limit of the bucket; pending differences included
    readonly unlimited: readonly string[];           // named, known to another level, and limited by none that holds: counted, not charged
    consume(amounts: Amounts): Promise<void>;        // takes more now, strictly; throws RateLimitExceeded
    adjust(deltas: Amounts): void;                   // signed; may cause debt; written at commit
    release(amounts: Amounts): void;                 // adjust by the negative; more than was consumed is a ValidationError
    settle(totals: Readonly<Record<string, number | undefined>>): void;   // the real totals of the named limits; the last call counts; undefined keeps the estimate
  }
  export class Lease implements LeaseOfResource, AsyncDisposable {
    private constructor();
    readonly entityId: string; readonly resource: string; readonly consumed: Amounts; readonly unlimited: readonly string[];
    readonly degraded: boolean;                      // granted without the store
    readonly resources: readonly string[];
    resourceLease(resource: string): LeaseOfResource;
    consume(amounts: Amounts): Promise<void>; adjust(deltas: Amounts): void; release(amounts: Amounts): void; settle(totals: Readonly<Record<string, number | undefined>>): void;
    statuses(): Promise<readonly LimitStatus[]>;     // after the take, from what the process knows: no request; empty when degraded
    commit(): Promise<void>; rollback(): Promise<void>;      // afterwards every member throws LeaseExpiredError
    [Symbol.asyncDispose](): Promise<void>;          // rolls back unless committed; does nothing after commit or rollback
  }
  export interface Availability {
    readonly allowed: boolean; readonly available: Amounts; readonly retryAfterSeconds: number; readonly statuses: readonly LimitStatus[];
  }

  // ---- errors --------------------------------------------------------------------------------------------------------------
  export class ZaeLimiterError extends Error { readonly code: string }                     // ERR_LIMITER_…
  export class RateLimitError extends ZaeLimiterError {}
  export class RateLimitExceeded extends RateLimitError {
    readonly statuses: readonly LimitStatus[]; readonly violations: readonly LimitStatus[]; readonly passed: readonly LimitStatus[];
    readonly primaryViolation: LimitStatus;          // the one with the longest wait
    readonly retryAfterSeconds: number;              // Infinity when it can never fit
    readonly retryAfterHeader: string | undefined;   // whole seconds, rounded up; undefined when never
    toJSON(): RateLimitExceededJson;
  }
  export interface RateLimitExceededJson {           // the original's as_dict; null where the answer is never
    readonly error: "rate_limit_exceeded"; readonly message: string; readonly retry_after_seconds: number | null; readonly retry_after_ms: number | null;
    readonly limits: readonly {
      readonly entity_id: string; readonly resource: string; readonly limit_name: string; readonly capacity: number; readonly refill_amount: number;
      readonly refill_period_seconds: number; readonly available: number; readonly requested: number; readonly exceeded: boolean; readonly retry_after_seconds: number | null;
    }[];
  }
  export class LeaseExpiredError extends RateLimitError {}
  export class InfrastructureError extends ZaeLimiterError {}
  export class RateLimiterUnavailable extends InfrastructureError { readonly entityId: string | undefined; readonly resource: string | undefined; readonly stackName: string | undefined }
  export class PermissionDenied extends InfrastructureError {}
  export class StackOperationError extends InfrastructureError { readonly stackName: string; readonly reason: string; readonly events: readonly string[] }
  export class StackAlreadyExistsError extends InfrastructureError { readonly stackName: string }
  export class InfrastructureNotFoundError extends InfrastructureError {}
  export class NamespaceNotFoundError extends InfrastructureError { readonly namespaceName: string }
  export class NamespaceStateError extends InfrastructureError { readonly namespaceName: string; readonly state: NamespaceStatus }
  export class EntityError extends ZaeLimiterError { readonly entityId: string }
  export class EntityNotFoundError extends EntityError {}
  export class EntityExistsError extends EntityError {}
  export class VersionError extends ZaeLimiterError { readonly clientVersion: string; readonly schemaVersion: string; readonly lambdaVersion: string | undefined }
  export class VersionMismatchError extends VersionError { readonly canAutoUpdate: boolean }
  export class IncompatibleSchemaError extends VersionError { readonly migrationGuideUrl: string | undefined }
  export class ValidationError extends ZaeLimiterError { readonly field: string; readonly value: string; readonly reason: string }   // value cut to 50 characters
  export class InvalidIdentifierError extends ValidationError {}
  export class InvalidNameError extends ValidationError {}

  // ---- repository ----------------------------------------------------------------------------------------------------------
  export interface Clock { now(): number; sleep(ms: number, signal?: AbortSignal): Promise<void> }   // sleep rejects with signal.reason
  export type Random = () => number;                 // 0 ≤ x < 1
  export interface RepositoryOptions {
    readonly namespace?: string; readonly configCacheTtlMs?: number; readonly clock?: Clock; readonly random?: Random;
    readonly principal?: string;                     // recorded in audit events when a call names none
    readonly recordUsage?: boolean;                  // true by default; memory and SQLite only
    readonly create?: boolean;                       // true by default; false opens only what exists
  }
  interface By { readonly principal?: string }
  interface Paging { readonly limit?: number; readonly cursor?: string }
  export interface UsageQuery {                      // entityId or resource is required
    readonly entityId?: string; readonly resource?: string; readonly window?: UsageWindow;   // "hourly" when omitted
    readonly start?: Date; readonly end?: Date;      // windows with start ≤ windowStart < end
  }
  /** What the limiter calls. Its members are open; it speaks of requests and outcomes, not of items and expressions. */
  export interface RepositoryPort {}
  export interface Repository extends RepositoryPort, AsyncDisposable {
    createEntity(entityId: string, options?: { readonly name?: string; readonly parentId?: string; readonly cascade?: boolean; readonly metadata?: Readonly<Record<string, string>> } & By): Promise<Entity>;
    ensureEntity(entityId: string, options?: { readonly name?: string; readonly parentId?: string; readonly cascade?: boolean; readonly metadata?: Readonly<Record<string, string>> } & By): Promise<Entity>;   // what exists is returned unchanged (ADR 005)
    updateEntity(entityId: string, options: { readonly name?: string; readonly metadata?: Readonly<Record<string, string>>; readonly cascade?: boolean } & By): Promise<Entity>;   // at least one field; metadata is replaced whole (ADR 005)
    getEntity(entityId: string): Promise<Entity | undefined>;
    getChildren(parentId: string): Promise<readonly Entity[]>;
    listEntities(options?: Paging): Promise<Page<Entity>>;
    deleteEntity(entityId: string, options?: Pick<By, "principal">): Promise<void>;
    setLimits(entityId: string, limits: readonly Limit[], options?: { readonly resource?: string; readonly inherit?: boolean } & By): Promise<void>;     // "_default_" when omitted
    getLimits(entityId: string, options?: { readonly resource?: string }): Promise<readonly Limit[]>;                       // empty when none
    deleteLimits(entityId: string, options?: { readonly resource?: string } & By): Promise<void>;
    setResourceDefaults(resource: string, limits: readonly Limit[], options?: { readonly inherit?: boolean } & By): Promise<void>;
    getResourceDefaults(resource: string): Promise<readonly Limit[]>;
    deleteResourceDefaults(resource: string, options?: By): Promise<void>;
    setSystemDefaults(limits: readonly Limit[] | undefined, options?: { readonly onUnavailable?: OnUnavailable; readonly auditRetentionDays?: number; readonly usageRetentionDays?: number } & By): Promise<void>;   // an omitted option keeps its stored value
    getSystemDefaults(): Promise<SystemDefaults>;
    deleteSystemDefaults(options?: { readonly keepSettings?: boolean } & By): Promise<void>;
    listResourcesWithDefaults(): Promise<readonly string[]>;
    listEntitiesWithCustomLimits(resource: string, options?: Paging): Promise<Page<string>>;
    listResourcesWithEntityConfigs(): Promise<readonly string[]>;
    resolveLimits(entityId: string, resource: string): Promise<ResolvedLimits | undefined>;
    invalidateConfigCache(): Promise<void>;
    getCacheStats(): CacheStats;
    getStatistics(): RepositoryStatistics;
    getBuckets(entityId: string, options?: { readonly resource?: string }): Promise<readonly BucketState[]>;               // all resources, limits and shards; never wcu
    splitBucket?(entityId: string, resource: string, options: { readonly shards: number }): Promise<number>;                // backends with shards (ADR 012)
    mergeBucket?(entityId: string, resource: string, options: { readonly shards: number }): Promise<number>;                // backends with shards (ADR 012)
    getResourceCapacity(resource: string, limitName: string, options?: { readonly parentsOnly?: boolean }): Promise<ResourceCapacity>;
    getUsageSnapshots(query: UsageQuery & Paging): Promise<UsagePage>;
    getUsageSummary(query: UsageQuery): Promise<UsageSummary>;
    getAuditEvents(entityId: string, options?: Paging): Promise<Page<AuditEvent>>;                                         // newest first
    readonly namespaceName: string; readonly namespaceId: string;
    namespace(name: string, options?: { readonly onUnavailable?: OnUnavailable; readonly auditRetentionDays?: number; readonly usageRetentionDays?: number; readonly bucketTtlMultiplier?: number }): Promise<Repository>;   // close() of a scoped one does nothing
    registerNamespace(name: string): Promise<string>;                                                                      // the id; idempotent
    registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
    getNamespace(name: string): Promise<NamespaceInfo | undefined>;
    listNamespaces(): Promise<readonly NamespaceInfo[]>;
    deleteNamespace(name: string): Promise<void>;
    recoverNamespace(namespaceId: string): Promise<string>;                                                                // the name
    listOrphanNamespaces(): Promise<readonly NamespaceInfo[]>;                                                             // deleted and purging
    purgeNamespace(namespaceId: string, options?: { readonly onProgress?: (deletedItems: number) => void; readonly signal?: AbortSignal }): Promise<void>;
    getProvisionerState(): Promise<ProvisionerState>;
    putProvisionerState(state: ProvisionerState): Promise<void>;   // refused when the stored revision is not state.revision; stores revision + 1
    getVersionRecord(): Promise<VersionRecord | undefined>;
    setVersionRecord(record: { readonly schemaVersion: string; readonly lambdaVersion?: string; readonly clientMinVersion?: string; readonly updatedBy?: string }): Promise<void>;
    ping(): Promise<boolean>;
    readonly capabilities: BackendCapabilities;
    close(): Promise<void>;                          // ends waiting calls and all later ones with RateLimiterUnavailable (ADR 004)
    [Symbol.asyncDispose](): Promise<void>;
  }
}

declare module "declared/zae-limiter/open" {
  import type { Repository, RepositoryOptions } from "declared/zae-limiter";
  export function openRepository(url: string, options?: RepositoryOptions): Promise<Repository>;                            // ADR 025
  //   "memory:" · "sqlite:./limits.db" · "redis://host:6379" · "dynamodb://eu-west-1/my-stack" (?endpoint=http://127.0.0.1:8000&provisioning=never)
  export function tableOptions(url: string): { readonly stack?: string; readonly region?: string; readonly endpointUrl?: string };  // ADR 018
}

declare module "declared/zae-limiter/memory" {
  import type { Repository, RepositoryOptions } from "declared/zae-limiter";
  export interface MemoryRepository extends Repository {}
  export class MemoryRepository { constructor(options?: RepositoryOptions) }
}

declare module "declared/zae-limiter/sqlite" {
  import type { Repository, RepositoryOptions } from "declared/zae-limiter";
  /** The part of node:sqlite's DatabaseSync and of better-sqlite3 that is used. */
  export interface SqliteDatabase { exec(sql: string): unknown; prepare(sql: string): SqliteStatement; close(): unknown }
  export interface SqliteStatement { run(...values: never[]): unknown; get(...values: never[]): unknown; all(...values: never[]): unknown[] }
  export interface SqliteOptions extends RepositoryOptions { readonly database?: SqliteDatabase; readonly lockTimeoutMs?: number; readonly durability?: "process" | "power" }
  export interface SqliteRepository extends Repository {}
  export class SqliteRepository {
    private constructor(); static open(path: string, options?: SqliteOptions): Promise<SqliteRepository>;
    readonly driver: string; readonly schemaVersion: number;   // for `zae-limiter status` (ADR 025)
  }
}

declare module "declared/zae-limiter/dynamodb" {
  import type { OnUnavailable, Repository, RepositoryOptions, UsageWindow } from "declared/zae-limiter";
  /** The part of the SDK's DynamoDBClient that is used. */
  export interface DynamoClient { send(command: never, options?: { abortSignal?: AbortSignal }): Promise<unknown>; destroy?(): void }
  /** One signed call; what the lean transport offers and the SDK's client is wrapped into. */
  export interface DynamoTransport { call(operation: string, input: object, options: { readonly signal: AbortSignal }): Promise<object>; close(): void }
  export interface ObservedTransport extends DynamoTransport {
    readonly region: string; readonly endpointUrl: string | undefined;
    watchServerDate(listener: (date: string | undefined) => void): () => void;                                            // returns what stops it
  }
  export interface AwsCredentials { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string | undefined; readonly expiration?: Date | undefined }
  export type CredentialProvider = (options?: { readonly forceRefresh?: boolean }) => Promise<AwsCredentials>;
  export interface HttpAgent { readonly maxSockets: number; readonly maxFreeSockets: number; destroy(): void }               // node:http's Agent has it (ADR 025)
  export interface LeanTransportOptions {
    readonly region?: string; readonly endpointUrl?: string; readonly credentials?: AwsCredentials | CredentialProvider; readonly agent?: HttpAgent;
  }
  export function leanTransport(options?: LeanTransportOptions): Promise<ObservedTransport>;                                 // ADR 014
  export interface DynamoOptions extends RepositoryOptions {
    readonly stack?: string; readonly region?: string; readonly endpointUrl?: string;
    readonly client?: DynamoClient; readonly transport?: DynamoTransport;
    readonly provisioning?: "stack" | "table" | "never";   // default: "table" with an endpointUrl, else "stack"; "never" also registers no namespace
    readonly stream?: boolean;                             // "table" only: whether the created table has a stream; true by default
    readonly updateLambda?: boolean;                       // false by default: a running application never redeploys Lambda
    readonly bucketTtlMultiplier?: number;                 // 7 by default; 0: buckets never expire
    readonly refusalMemoryMs?: number; readonly requestTimeoutMs?: number; readonly maxAttempts?: number; readonly maxShards?: number; readonly shareRequests?: boolean;
  }
  export interface DynamoRepository extends Repository {}
  export class DynamoRepository {
    private constructor();
    static open(namespace?: string, options?: DynamoOptions): Promise<DynamoRepository>;
    static builder(): RepositoryBuilder;
    readonly stackName: string; readonly tableName: string; readonly region: string; readonly endpointUrl: string | undefined;
    createTable(): Promise<void>; deleteTable(): Promise<void>; deleteStack(): Promise<void>;
    getCountedUntil(): Promise<Date | undefined>;   // until when an aggregator has counted usage; undefined: never
  }
  /** Every field of the original's StackOptions (reference §7.2) with its default, billing, concurrency and the TTL of buckets. */
  export interface StackOptions {
    readonly snapshotWindows?: readonly UsageWindow[]; readonly usageRetentionDays?: number; readonly auditRetentionDays?: number; readonly bucketTtlMultiplier?: number;
    readonly billingMode?: "on-demand" | "provisioned"; readonly readCapacity?: number; readonly maxReadCapacity?: number; readonly writeCapacity?: number;
    readonly maxWriteCapacity?: number; readonly indexReadCapacity?: number; readonly indexWriteCapacity?: number; readonly capacityUtilizationPct?: number;
    readonly enableAggregator?: boolean; readonly enableProvisioner?: boolean; readonly pitrRecoveryDays?: number; readonly logRetentionDays?: number;
    readonly lambdaTimeoutSeconds?: number; readonly lambdaMemoryMb?: number; readonly aggregatorReservedConcurrency?: number; readonly enableAlarms?: boolean; readonly alarmSnsTopic?: string;
    readonly lambdaDurationThresholdPct?: number; readonly permissionBoundary?: string; readonly roleNameFormat?: string; readonly policyNameFormat?: string;
    readonly enableAuditArchival?: boolean; readonly auditArchiveGlacierDays?: number; readonly enableTracing?: boolean; readonly createIamRoles?: boolean;
    readonly createIam?: boolean; readonly aggregatorRoleArn?: string; readonly enableDeletionProtection?: boolean; readonly tags?: Readonly<Record<string, string>>;
  }
  export interface RepositoryBuilder {
    namespace(name: string): this; options(options: DynamoOptions): this; stackOptions(options: StackOptions): this;
    onUnavailable(action: OnUnavailable): this;            // stored through setSystemDefaults
    build(): Promise<DynamoRepository>;                    // unknown namespace: NamespaceNotFoundError
  }
}

declare module "declared/zae-limiter/aggregator" {
  import type { UsageWindow } from "declared/zae-limiter";
  import type { DynamoOptions } from "declared/zae-limiter/dynamodb";
  /** A record of the table's stream, of `GetRecords` or of Lambda. */
  export interface RawStreamRecord {
    readonly eventName?: string | undefined; readonly eventSourceARN?: string | undefined; readonly userIdentity?: object | undefined;
    readonly dynamodb?: {
      readonly ApproximateCreationDateTime?: number | Date | undefined; readonly SequenceNumber?: string | undefined;
      readonly OldImage?: object | undefined; readonly NewImage?: object | undefined;
    } | undefined;
  }
  export interface StreamRecord {
    readonly kind: "insert" | "modify" | "remove"; readonly atMs: number; readonly sequenceNumber: string; readonly position: string;
    readonly before: object | undefined; readonly after: object | undefined; readonly isExpiry: boolean;
  }
  export function streamRecordOf(raw: RawStreamRecord, streamArn?: string): StreamRecord | undefined;
  // ---- archive (ADR 015) -------------------------------------------------------------------------------------------------
  export interface AuditArchive { store(name: string, content: Uint8Array): Promise<void> }
  export function folderArchive(path: string): AuditArchive;
  export interface S3ArchiveClient { send(command: never, options?: { abortSignal?: AbortSignal }): Promise<unknown> }    // the SDK's S3Client has it
  export interface S3ArchiveOptions { readonly region?: string; readonly endpointUrl?: string; readonly client?: S3ArchiveClient }
  export function s3Archive(url: string, options?: S3ArchiveOptions): Promise<AuditArchive>;                                // "s3://bucket/prefix"
  // ---- batches -----------------------------------------------------------------------------------------------------------
  export interface AggregatorOptions extends Pick<DynamoOptions,
    "stack" | "region" | "endpointUrl" | "client" | "transport" | "clock" | "random" | "requestTimeoutMs" | "maxAttempts" | "bucketTtlMultiplier"> {
    readonly windows?: readonly UsageWindow[]; readonly archive?: AuditArchive; readonly usageRetentionDays?: number;
  }
  /** The records that an aggregator needs, as patterns of a Lambda event source mapping's filter (ADR 018). */
  export const STREAM_FILTERS: readonly string[];
  export interface RecordFailure { readonly sequenceNumber: string; readonly error: unknown }
  export interface BatchReport {
    readonly records: number; readonly counted: number; readonly skipped: number; readonly snapshotWrites: number;
    readonly archived: number; readonly dropped: number; readonly splits: number; readonly merges: number; readonly shards: number;
    readonly lagMs: number; readonly failures: readonly RecordFailure[];
  }
  export interface ProcessOptions { readonly withinMs?: number }
  export interface Aggregator { process(records: readonly StreamRecord[], options?: ProcessOptions): Promise<BatchReport>; pulse(): Promise<void>; close(): void }
  export function openAggregator(options?: AggregatorOptions): Promise<Aggregator>;
}

declare module "declared/zae-limiter/testing" {
  import type { Clock, Random, Repository } from "declared/zae-limiter";
  export class ManualClock implements Clock {
    constructor(startMs?: number); now(): number; sleep(ms: number, signal?: AbortSignal): Promise<void>;
    advance(ms: number): Promise<void>;              // wakes sleepers in order of time and lets what they started run
    set(ms: number): void;                           // also backwards
  }
  export function seededRandom(seed: number): Random;
  export type Fault = "error-before" | "error-after" | { readonly delayMs: number };
  export function faultyRepository(repository: Repository, next: (operation: string) => Fault | undefined): Repository;
}
