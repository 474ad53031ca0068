// Made by `npm run declare`.

declare module "declared/zae-limiter" {
  import {
    ConsumeRequest,
    Receipt,
    MaybePromise,
    ConsumeOutcome,
    ResourceAmounts,
    PurgeOptions,
    EntityChange,
  } from "declared/zae-limiter/backend";
  export type Limit = AnyLimit;
  export const Limit: {
    readonly perSecond: LimitOf;
    readonly perMinute: LimitOf;
    readonly perHour: LimitOf;
    readonly perDay: LimitOf;
    quota(
      name: string,
      capacity: number,
      resets: Calendar,
      options?: Pick<QuotaLimit, "carry" | "alerts"> & LimitOptions,
    ): QuotaLimit;
    session(
      name: string,
      capacity: number,
      window: Pick<SessionLimit, "windowSeconds">,
      options?: Pick<SessionLimit, "alerts"> & LimitOptions,
    ): SessionLimit;
    inFlight(
      name: string,
      capacity: number,
      options?: Partial<Pick<InFlightLimit, "holdSeconds">> & LimitOptions,
    ): InFlightLimit;
    custom<L extends Limit>(limit: L): L;
    parse(text: string): Limit;
    format(limit: Limit): string;
  };
  export type Amounts = Readonly<Record<string, number>>;
  export type AuditAction =
    | "entity_created"
    | "entity_updated"
    | "entity_deleted"
    | "entity_erased"
    | "limits_set"
    | "limits_deleted"
    | "namespace_registered"
    | "namespace_deleted"
    | "namespace_recovered"
    | "namespace_purged";
  export interface AuditEvent {
    readonly eventId: string;
    readonly timestamp: Date;
    readonly entityId: string;
    readonly action: AuditAction | (string & {});
    readonly principal: string | undefined;
    readonly resource: string | undefined;
    readonly details: Readonly<Record<string, unknown>>;
  }
  export interface DeclaredEntity {
    readonly parentId?: string;
    readonly cascade?: boolean;
    readonly name?: string;
    readonly metadata?: Readonly<Record<string, string>>;
    readonly resources: Readonly<Record<string, DeclaredLevel>>;
  }
  export interface DeclaredLevel {
    readonly limits: readonly Limit[];
    readonly inherit: boolean;
  }
  export interface DeclaredLimits {
    readonly system?: DeclaredSystem;
    readonly resources: Readonly<Record<string, DeclaredLevel>>;
    readonly entities: Readonly<Record<string, DeclaredEntity>>;
  }
  export interface DeclaredSystem {
    readonly limits?: readonly Limit[];
    readonly inherit?: boolean;
    readonly onUnavailable?: OnUnavailable;
    readonly auditRetentionDays?: number;
    readonly usageRetentionDays?: number;
  }
  export interface LimitStatus {
    readonly entityId: string;
    readonly resource: string;
    readonly limitName: string;
    readonly limit: SupportedLimit;
    readonly source: ConfigSource;
    readonly kind: LimitKind;
    readonly resetsAt: Date | undefined;
    readonly resetsInSeconds: number | undefined;
    readonly available: number;
    readonly requested: number;
    readonly leaves: number;
    readonly exceeded: boolean;
    readonly deficit: number;
    readonly retryAfterSeconds: number;
  }
  export type Calendar = {
    readonly zone: string;
  } & (
    | {
        readonly every: "hour";
      }
    | {
        readonly every: "day";
        readonly at?: string;
      }
    | {
        readonly every: "week";
        readonly weekday?: Weekday;
        readonly at?: string;
      }
    | {
        readonly every: "month";
        readonly day?: number;
        readonly at?: string;
      }
    | {
        readonly cron: string;
      }
  );
  export interface Carry {
    readonly debt?: boolean;
    readonly unused?: number;
  }
  export interface InFlightLimit extends LimitBase {
    readonly kind: "inflight";
    readonly holdSeconds: number;
  }
  export type LimitKind = NonNullable<AnyLimit["kind"]>;
  export interface LimitOptions {
    readonly counts?: string;
    readonly soft?: boolean;
    readonly schedule?: readonly Profile[];
    readonly reserve?: Readonly<Record<string, number>>;
  }
  export type Profile = {
    readonly when: string;
    readonly zone: string;
  } & (
    | {
        readonly percent: number;
      }
    | {
        readonly capacity: number;
        readonly refillAmount?: number;
      }
  );
  export interface QuotaLimit extends LimitBase {
    readonly kind: "quota";
    readonly resets: Calendar;
    readonly carry?: Carry;
    readonly alerts?: readonly number[];
  }
  export interface RateLimit extends LimitBase {
    readonly kind?: "rate";
    readonly refillAmount: number;
    readonly refillPeriodSeconds: number;
  }
  export interface SessionLimit extends LimitBase {
    readonly kind: "session";
    readonly windowSeconds: number;
    readonly alerts?: readonly number[];
  }
  export type Weekday =
    | "monday"
    | "tuesday"
    | "wednesday"
    | "thursday"
    | "friday"
    | "saturday"
    | "sunday";
  export interface Entity {
    readonly id: string;
    readonly name: string;
    readonly parentId: string | undefined;
    readonly cascade: boolean;
    readonly metadata: Readonly<Record<string, string>>;
    readonly createdAt: Date;
  }
  export class ApplyConflictError extends ValidationError {
    constructor(revision: number);
  }
  export class EntityError extends ZaeLimiterError {
    readonly entityId: string;
    constructor(code: string, entityId: string, message: string);
  }
  export class EntityExistsError extends EntityError {
    constructor(entityId: string);
  }
  export class EntityNotFoundError extends EntityError {
    constructor(entityId: string);
  }
  export class IncompatibleSchemaError extends VersionError {
    readonly migrationGuideUrl: string | undefined;
    constructor(
      message: string,
      versions: Versions & {
        readonly migrationGuideUrl?: string;
      },
    );
  }
  export class InfrastructureError extends ZaeLimiterError {}
  export class InfrastructureNotFoundError extends InfrastructureError {
    constructor(message: string, options?: ErrorOptions);
  }
  export class InvalidIdentifierError extends ValidationError {
    constructor(field: string, value: unknown, reason: string);
  }
  export class InvalidNameError extends ValidationError {
    constructor(field: string, value: unknown, reason: string);
  }
  export class LeaseExpiredError extends RateLimitError {
    constructor(state: "committed" | "rolled back");
  }
  export class NamespaceNotFoundError extends InfrastructureError {
    readonly namespaceName: string;
    constructor(namespaceName: string);
  }
  export class NamespaceStateError extends InfrastructureError {
    readonly namespaceName: string;
    readonly state: NamespaceStatus;
    constructor(namespaceName: string, state: NamespaceStatus, reason: string);
  }
  export class PermissionDenied extends InfrastructureError {
    constructor(message: string, options?: ErrorOptions, code?: string);
  }
  export class RateLimitError extends ZaeLimiterError {}
  export class RateLimiterUnavailable extends InfrastructureError {
    readonly entityId: string | undefined;
    readonly resource: string | undefined;
    readonly stackName: string | undefined;
    constructor(
      message: string,
      options?: ErrorOptions & {
        readonly entityId?: string;
        readonly resource?: string;
        readonly stackName?: string;
      },
    );
  }
  export class StackAlreadyExistsError extends InfrastructureError {
    readonly stackName: string;
    constructor(stackName: string);
  }
  export class StackOperationError extends InfrastructureError {
    readonly stackName: string;
    readonly reason: string;
    readonly events: readonly string[];
    constructor(stackName: string, reason: string, events?: readonly string[]);
  }
  export class ValidationError extends ZaeLimiterError {
    readonly field: string;
    readonly value: string;
    readonly reason: string;
    constructor(field: string, value: unknown, reason: string, code?: string);
  }
  export class VersionError extends ZaeLimiterError {
    readonly clientVersion: string;
    readonly schemaVersion: string;
    readonly lambdaVersion: string | undefined;
    constructor(code: string, message: string, versions: Versions);
  }
  export class VersionMismatchError extends VersionError {
    readonly canAutoUpdate: boolean;
    constructor(
      message: string,
      versions: Versions & {
        readonly canAutoUpdate: boolean;
      },
    );
  }
  export class ZaeLimiterError extends Error {
    readonly code: string;
    constructor(code: string, message?: string, options?: ErrorOptions);
  }
  export interface NamespaceInfo {
    readonly name: string;
    readonly namespaceId: string;
    readonly status: NamespaceStatus;
    readonly createdAt: Date;
    readonly deletedAt: Date | undefined;
  }
  export type NamespaceStatus = "active" | "deleted" | "purging";
  export type ConfigSource =
    | "entity"
    | "entity_default"
    | "resource"
    | "system"
    | "constructor"
    | "override";
  export type OnUnavailable = "allow" | "block";
  export interface ResolvedLimits {
    readonly limits: readonly Limit[];
    readonly onUnavailable: OnUnavailable | undefined;
    readonly source: ConfigSource;
    readonly sources: Readonly<Record<string, ConfigSource>>;
    readonly levels: readonly StoredLevel[];
  }
  export interface StoredLevel {
    readonly source: Exclude<ConfigSource, "constructor" | "override">;
    readonly limits: readonly Limit[];
    readonly inherit: boolean;
  }
  export class RateLimitExceeded extends RateLimitError {
    constructor(
      refused: WithStatuses | readonly LimitStatus[],
      use?: "as a value" | "to be thrown",
    );
    get message(): string;
    set message(message: string);
    get statuses(): readonly LimitStatus[];
    get violations(): readonly LimitStatus[];
    get passed(): readonly LimitStatus[];
    get primaryViolation(): LimitStatus;
    get retryAfterSeconds(): number;
    get retryAfterHeader(): string | undefined;
    toJSON(): RateLimitExceededJson;
  }
  export interface RateLimitExceededJson {
    readonly error: "rate_limit_exceeded";
    readonly message: string;
    readonly retry_after_seconds: number | null;
    readonly retry_after_ms: number | null;
    readonly limits: readonly {
      readonly entity_id: string;
      readonly resource: string;
      readonly limit_name: string;
      readonly kind: LimitKind;
      readonly capacity: number;
      readonly refill_amount?: number;
      readonly refill_period_seconds?: number;
      readonly resets_at_ms?: number | null;
      readonly available: number;
      readonly requested: number;
      readonly leaves: number;
      readonly exceeded: boolean;
      readonly retry_after_seconds: number | null;
    }[];
  }
  export interface UsageSnapshot {
    readonly entityId: string;
    readonly resource: string;
    readonly window: UsageWindow;
    readonly windowStart: Date;
    readonly windowEnd: Date;
    readonly counters: Amounts;
    readonly requests: number;
    readonly cascaded: Amounts;
    readonly cascadedRequests: number;
    readonly complete: boolean;
  }
  export interface UsageSummary {
    readonly snapshotCount: number;
    readonly total: Amounts;
    readonly average: Amounts;
    readonly requests: number;
    readonly cascaded: Amounts;
    readonly cascadedRequests: number;
    readonly minWindowStart: Date | undefined;
    readonly maxWindowStart: Date | undefined;
    readonly completeSince?: Date;
    readonly countedUntil?: Date;
  }
  export type UsageWindow = "hourly" | "daily" | "monthly";
  export interface Availability {
    readonly allowed: boolean;
    readonly available: Amounts;
    readonly retryAfterSeconds: number;
    readonly statuses: readonly LimitStatus[];
  }
  export interface AcquireRequest {
    readonly entityId: string;
    readonly resource: string;
    readonly consume: Amounts;
    readonly also?: Readonly<Record<string, Amounts>>;
    readonly limits?: readonly Limit[];
    readonly leave?: Amounts;
    readonly priority?: string;
    readonly onUnavailable?: OnUnavailable;
    readonly waitUpToMs?: number;
    readonly signal?: AbortSignal;
  }
  export class Lease implements LeaseOfResource, AsyncDisposable {
    readonly entityId: string;
    readonly resource: string;
    readonly degraded: boolean;
    private constructor();
    get consumed(): Amounts;
    get unlimited(): readonly string[];
    get resources(): readonly string[];
    resourceLease(resource: string): LeaseOfResource;
    consume(amounts: Amounts): Promise<void>;
    adjust(deltas: Amounts): void;
    release(amounts: Amounts): void;
    settle(totals: Readonly<Record<string, number | undefined>>): void;
    statuses(): Promise<readonly LimitStatus[]>;
    commit(): Promise<void>;
    rollback(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
  }
  export class RateLimiter implements AsyncDisposable {
    constructor(options: RateLimiterOptions);
    acquire<T>(request: AcquireRequest, work: (lease: Lease) => T | PromiseLike<T>): Promise<T>;
    acquire(request: AcquireRequest): Promise<Lease>;
    tryAcquire(request: AcquireRequest): Promise<AcquireResult>;
    charge(request: ChargeRequest): Promise<void>;
    check(request: AcquireRequest): Promise<Availability>;
    available(
      entityId: string,
      resource: string,
      options?: Pick<AcquireRequest, "limits">,
    ): Promise<Record<string, number>>;
    timeUntilAvailable(
      entityId: string,
      resource: string,
      needed: Amounts,
      options?: Pick<AcquireRequest, "limits">,
    ): Promise<number>;
    isReachable({ timeoutMs }?: { readonly timeoutMs?: number }): Promise<boolean>;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
  }
  export type AcquireResult =
    | {
        readonly granted: true;
        readonly lease: Lease;
      }
    | {
        readonly granted: false;
        readonly refusal: RateLimitExceeded;
      };
  export interface RateLimiterOptions {
    readonly repository: Repository;
    readonly defaults?: readonly Limit[];
    readonly onUnavailable?: OnUnavailable;
    readonly onSettlementFailed?: (error: RateLimiterUnavailable, lease: Lease) => void;
  }
  export interface LeaseOfResource {
    readonly resource: string;
    readonly consumed: Amounts;
    readonly unlimited: readonly string[];
    consume(amounts: Amounts): Promise<void>;
    adjust(deltas: Amounts): void;
    release(amounts: Amounts): void;
    settle(totals: Readonly<Record<string, number | undefined>>): void;
  }
  export interface RepositoryPort {
    readonly clock: Clock;
    readonly closed: AbortSignal;
    readonly lastOnUnavailable: OnUnavailable | undefined;
    consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
    charge(request: ConsumeRequest): MaybePromise<void>;
    settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
    giveBack(receipt: Receipt): MaybePromise<void>;
    knowsLimit(entityId: string, resource: string, limitName: string): boolean;
    read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
    remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]>;
  }
  export interface BackendCapabilities {
    readonly auditLogging: boolean;
    readonly usageSnapshots: boolean;
    readonly infrastructureManagement: boolean;
    readonly changeStreams: boolean;
    readonly batchOperations: boolean;
  }
  export interface BucketState {
    readonly entityId: string;
    readonly resource: string;
    readonly limitName: string;
    readonly shard: number;
    readonly shardCount: number;
    readonly kind: LimitKind;
    readonly tokensMilli: number;
    readonly windowEndMs: number | undefined;
    readonly lastRefillMs: number;
    readonly capacityMilli: number;
    readonly refillAmountMilli: number;
    readonly refillPeriodMs: number;
    readonly totalConsumedMilli: number;
    readonly available: number;
  }
  export interface CacheStats {
    readonly hits: number;
    readonly misses: number;
    readonly size: number;
    readonly ttlMs: number;
  }
  export interface DeletedEntity {
    readonly records: number;
    readonly usageRecords: number;
    readonly auditEvents: number;
    readonly usageMayFollowUntil?: Date;
    readonly archivedUnder?: string;
  }
  export interface EntityCapacity {
    readonly entityId: string;
    readonly capacity: number;
    readonly available: number;
    readonly utilizationPct: number;
  }
  export interface LevelName {
    readonly entityId?: string;
    readonly resource?: string;
  }
  export interface LimitTotal {
    readonly limitName: string;
    readonly available: number;
    readonly capacityMilli: number;
    readonly totalConsumedMilli: number;
  }
  export interface Page<T> {
    readonly items: readonly T[];
    readonly cursor: string | undefined;
  }
  export interface PendingApply {
    readonly hash: string;
    readonly startedAt: Date;
    readonly principal?: string | undefined;
    readonly declared: DeclaredLimits;
  }
  export interface ProvisionerState {
    readonly managedSystem: boolean;
    readonly managedResources: readonly string[];
    readonly managedEntities: Readonly<Record<string, readonly string[]>>;
    readonly lastApplied: Date | undefined;
    readonly appliedHash: string | undefined;
    readonly revision: number;
    readonly applied?: DeclaredLimits | undefined;
    readonly pending?: PendingApply | undefined;
    readonly owner?: string | undefined;
  }
  export interface Repository extends RepositoryPort, AsyncDisposable {
    createEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
    ensureEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
    updateEntity(entityId: string, options: UpdateEntityOptions): Promise<Entity>;
    getEntity(entityId: string): Promise<Entity | undefined>;
    getChildren(parentId: string): Promise<readonly Entity[]>;
    listEntities(options?: Paging): Promise<Page<Entity>>;
    deleteEntity(entityId: string, options?: DeleteEntityOptions): Promise<DeletedEntity>;
    setLimits(
      entityId: string,
      limits: readonly Limit[],
      options?: SetLimitsOptions,
    ): Promise<void>;
    getLimits(entityId: string, options?: LimitsOptions): Promise<readonly Limit[]>;
    getLevel(level: LevelName): Promise<StoredLevel | undefined>;
    batchGetLevels(levels: readonly LevelName[]): Promise<readonly (StoredLevel | undefined)[]>;
    deleteLimits(entityId: string, options?: LimitsOptions & By): Promise<void>;
    setResourceDefaults(
      resource: string,
      limits: readonly Limit[],
      options?: SetDefaultsOptions,
    ): Promise<void>;
    getResourceDefaults(resource: string): Promise<readonly Limit[]>;
    deleteResourceDefaults(resource: string, options?: By): Promise<void>;
    setSystemDefaults(
      limits: readonly Limit[] | undefined,
      options?: SystemDefaultsOptions,
    ): Promise<void>;
    getSystemDefaults(): Promise<SystemDefaults>;
    deleteSystemDefaults(options?: DeleteSystemDefaultsOptions): Promise<void>;
    listResourcesWithDefaults(): Promise<readonly string[]>;
    listEntitiesWithCustomLimits(resource: string, options?: Paging): Promise<Page<string>>;
    listResourcesWithEntityConfigs(): Promise<readonly string[]>;
    resolveLimits(entityId: string, resource: string): Promise<ResolvedLimits | undefined>;
    invalidateConfigCache(): Promise<void>;
    getCacheStats(): CacheStats;
    getStatistics(): RepositoryStatistics;
    getBuckets(entityId: string, options?: BucketsOptions): Promise<readonly BucketState[]>;
    getBucket(
      entityId: string,
      resource: string,
      options?: BucketOptions,
    ): Promise<readonly BucketState[] | undefined>;
    batchGetBuckets(
      entityIds: readonly string[],
      options?: BucketsOptions,
    ): Promise<ReadonlyMap<string, readonly BucketState[]>>;
    getResourceBuckets(
      resource: string,
      options?: ResourceBucketsOptions,
    ): Promise<Page<ResourceBucket>>;
    splitBucket?(entityId: string, resource: string, options: ShardsOptions): Promise<number>;
    mergeBucket?(entityId: string, resource: string, options: ShardsOptions): Promise<number>;
    getResourceCapacity(
      resource: string,
      limitName: string,
      options?: CapacityOptions,
    ): Promise<ResourceCapacity>;
    getUsageSnapshots(query: UsageQuery & Paging): Promise<UsagePage>;
    getUsageSummary(query: UsageQuery): Promise<UsageSummary>;
    getAuditEvents(entityId: string, options?: Paging): Promise<Page<AuditEvent>>;
    readonly namespaceName: string;
    readonly namespaceId: string;
    namespace(name: string, options?: NamespaceOptions): Promise<Repository>;
    registerNamespace(name: string): Promise<string>;
    registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
    getNamespace(name: string): Promise<NamespaceInfo | undefined>;
    listNamespaces(): Promise<readonly NamespaceInfo[]>;
    deleteNamespace(name: string): Promise<void>;
    recoverNamespace(namespaceId: string): Promise<string>;
    listOrphanNamespaces(): Promise<readonly NamespaceInfo[]>;
    purgeNamespace(namespaceId: string, options?: PurgeOptions): Promise<void>;
    getProvisionerState(): Promise<ProvisionerState>;
    putProvisionerState(state: ProvisionerState): Promise<void>;
    getVersionRecord(): Promise<VersionRecord | undefined>;
    setVersionRecord(record: NewVersionRecord): Promise<void>;
    ping(): Promise<boolean>;
    readonly capabilities: BackendCapabilities;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
  }
  export interface RepositoryOptions {
    readonly namespace?: string;
    readonly configCacheTtlMs?: number;
    readonly clock?: Clock;
    readonly random?: Random;
    readonly create?: boolean;
    readonly principal?: string;
    readonly recordUsage?: boolean;
  }
  export interface RepositoryStatistics {
    readonly requests: number;
    readonly writes: number;
    readonly failedConditions: number;
    readonly retries: number;
    readonly batches: number;
    readonly batchedOperations: number;
    readonly refusalsFromMemory: number;
    readonly splits: number;
    readonly merges: number;
  }
  export interface ResourceBucket {
    readonly entityId: string;
    readonly resource: string;
    readonly shardCount: number;
    readonly limits: readonly LimitTotal[];
    readonly shards: readonly BucketState[];
  }
  export interface ResourceCapacity {
    readonly resource: string;
    readonly limitName: string;
    readonly totalCapacity: number;
    readonly totalAvailable: number;
    readonly utilizationPct: number;
    readonly cascadedCapacity: number;
    readonly cascadedAvailable: number;
    readonly entities: readonly EntityCapacity[];
  }
  export interface SystemDefaults {
    readonly limits: readonly Limit[];
    readonly onUnavailable: OnUnavailable | undefined;
    readonly auditRetentionDays: number;
    readonly usageRetentionDays: number;
  }
  export interface UsagePage extends Page<UsageSnapshot> {
    readonly completeSince?: Date;
    readonly countedUntil?: Date;
  }
  export interface UsageQuery {
    readonly entityId?: string;
    readonly resource?: string;
    readonly window?: UsageWindow;
    readonly start?: Date;
    readonly end?: Date;
  }
  export interface VersionRecord {
    readonly schemaVersion: string;
    readonly lambdaVersion: string | undefined;
    readonly clientMinVersion: string;
    readonly updatedAt: Date;
    readonly updatedBy: string | undefined;
  }
  export interface Clock {
    now(): number;
    sleep(ms: number, signal?: AbortSignal, options?: SleepOptions): Promise<void>;
  }
  export type Random = () => number;
  export interface SleepOptions {
    readonly holdsProcess?: boolean;
  }
  export const VERSION = "0.1.0";
  type AnyLimit = RateLimit | QuotaLimit | SessionLimit | InFlightLimit;
  type LimitOf = (
    name: string,
    rate: number,
    options?: {
      readonly burst?: number;
    } & LimitOptions,
  ) => RateLimit;
  type SupportedLimit = RateLimit | QuotaLimit | SessionLimit;
  interface LimitBase extends LimitOptions {
    readonly name: string;
    readonly capacity: number;
  }
  interface Versions {
    readonly clientVersion: string;
    readonly schemaVersion: string;
    readonly lambdaVersion?: string | undefined;
  }
  interface WithStatuses {
    readonly statuses: readonly LimitStatus[];
  }
  interface AsyncDisposable {
    [Symbol.asyncDispose](): Promise<void>;
  }
  interface CreateEntityOptions extends By {
    readonly name?: string;
    readonly parentId?: string;
    readonly cascade?: boolean;
    readonly metadata?: Readonly<Record<string, string>>;
  }
  interface UpdateEntityOptions extends EntityChange, By {}
  interface Paging {
    readonly limit?: number;
    readonly cursor?: string;
  }
  interface DeleteEntityOptions extends Pick<By, "principal">, PurgeOptions {
    readonly history?: boolean;
  }
  interface SetLimitsOptions extends LimitsOptions, SetDefaultsOptions {}
  interface LimitsOptions {
    readonly resource?: string;
  }
  interface By {
    readonly principal?: string;
    readonly ifRevision?: number;
  }
  interface SetDefaultsOptions extends By {
    readonly inherit?: boolean;
  }
  interface SystemDefaultsOptions extends SetDefaultsOptions {
    readonly onUnavailable?: OnUnavailable;
    readonly auditRetentionDays?: number;
    readonly usageRetentionDays?: number;
  }
  interface DeleteSystemDefaultsOptions extends By {
    readonly keepSettings?: boolean;
  }
  interface BucketsOptions {
    readonly resource?: string;
  }
  interface BucketOptions {
    readonly shard?: number;
  }
  interface ResourceBucketsOptions extends Paging {
    readonly limitName?: string;
  }
  interface ShardsOptions {
    readonly shards: number;
  }
  interface CapacityOptions {
    readonly parentsOnly?: boolean;
  }
  interface NamespaceOptions {
    readonly onUnavailable?: OnUnavailable;
    readonly auditRetentionDays?: number;
    readonly usageRetentionDays?: number;
    readonly bucketTtlMultiplier?: number;
  }
  interface NewVersionRecord {
    readonly schemaVersion: string;
    readonly lambdaVersion?: string;
    readonly clientMinVersion?: string;
    readonly updatedBy?: string;
  }
}

declare module "declared/zae-limiter/memory" {
  import { StoreRepository } from "zae-limiter/backend";
  import { RepositoryOptions } from "declared/zae-limiter";
  export class MemoryRepository extends StoreRepository {
    constructor(options?: RepositoryOptions);
  }
}

declare module "declared/zae-limiter/sqlite" {
  import { StoreRepository } from "zae-limiter/backend";
  import { RepositoryOptions } from "declared/zae-limiter";
  export interface SqliteDatabase {
    exec(sql: string): unknown;
    prepare(sql: string): SqliteStatement;
    close(): unknown;
  }
  export interface SqliteStatement {
    run(...values: never[]): unknown;
    get(...values: never[]): unknown;
    all(...values: never[]): unknown[];
  }
  export class SqliteRepository extends StoreRepository {
    readonly driver: string;
    readonly schemaVersion: number;
    private constructor();
    static open(path: string, options?: SqliteOptions): Promise<SqliteRepository>;
  }
  export interface SqliteOptions extends RepositoryOptions {
    readonly database?: SqliteDatabase;
    readonly lockTimeoutMs?: number;
    readonly durability?: "process" | "power";
  }
}

declare module "declared/zae-limiter/dynamodb" {
  import { StoreRepository } from "zae-limiter/backend";
  import {
    NamespaceOptions,
    Repository,
    RepositoryOptions,
    UsageWindow,
    OnUnavailable,
  } from "declared/zae-limiter";
  export function checkTable(place?: TablePlace): Promise<TableCheck>;
  export interface TableCheck extends TableVersions, Compatibility {}
  export type TablePlace = Pick<
    DynamoOptions,
    "stack" | "region" | "endpointUrl" | "client" | "transport" | "clock"
  >;
  export class DynamoRepository extends StoreRepository {
    readonly stackName: string;
    readonly tableName: string;
    readonly region: string;
    readonly endpointUrl: string | undefined;
    private constructor();
    static open(namespace?: string, options?: DynamoOptions): Promise<DynamoRepository>;
    static builder(): RepositoryBuilder;
    namespace(name: string, options?: NamespaceOptions): Promise<Repository>;
    createTable(): Promise<void>;
    getCountedUntil(): Promise<Date | undefined>;
    deleteTable(): Promise<void>;
    deleteStack(): Promise<void>;
  }
  export type RepositoryBuilder = BuilderOf<DynamoRepository>;
  export function leanTransport(options?: LeanTransportOptions): Promise<ObservedTransport>;
  export type CredentialProvider = (options?: {
    readonly forceRefresh?: boolean;
  }) => Promise<AwsCredentials>;
  export interface LeanTransportOptions {
    readonly region?: string;
    readonly endpointUrl?: string;
    readonly credentials?: AwsCredentials | CredentialProvider;
    readonly agent?: HttpAgent;
  }
  export interface DynamoOptions extends RepositoryOptions {
    readonly stack?: string;
    readonly region?: string;
    readonly endpointUrl?: string;
    readonly client?: DynamoClient;
    readonly transport?: DynamoTransport;
    readonly provisioning?: "stack" | "table" | "never";
    readonly stream?: boolean;
    readonly updateLambda?: boolean;
    readonly lambda?: "warn" | "must-match" | "ignore";
    readonly bucketTtlMultiplier?: number;
    readonly refusalMemoryMs?: number;
    readonly requestTimeoutMs?: number;
    readonly maxAttempts?: number;
    readonly maxShards?: number;
    readonly shareRequests?: boolean;
  }
  export interface Compatibility {
    readonly state: CompatibilityState;
    readonly lambda: LambdaState;
    readonly message: string;
  }
  export type CompatibilityState =
    | "compatible"
    | "not initialised"
    | "upgrade needed"
    | "schema too new"
    | "client too old"
    | "unreadable";
  export type LambdaState = "none" | "same" | "older" | "newer" | "unreadable";
  export interface TableVersions {
    readonly clientVersion: string;
    readonly schemaVersion: string | undefined;
    readonly lambdaVersion: string | undefined;
    readonly clientMinVersion: string | undefined;
  }
  export const SCHEMA_VERSION = "1.0.0";
  export interface StackOptions {
    readonly snapshotWindows?: readonly UsageWindow[];
    readonly usageRetentionDays?: number;
    readonly auditRetentionDays?: number;
    readonly bucketTtlMultiplier?: number;
    readonly billingMode?: "on-demand" | "provisioned";
    readonly readCapacity?: number;
    readonly maxReadCapacity?: number;
    readonly writeCapacity?: number;
    readonly maxWriteCapacity?: number;
    readonly indexReadCapacity?: number;
    readonly indexWriteCapacity?: number;
    readonly capacityUtilizationPct?: number;
    readonly pitrRecoveryDays?: number;
    readonly enableDeletionProtection?: boolean;
    readonly enableAggregator?: boolean;
    readonly enableProvisioner?: boolean;
    readonly lambdaTimeoutSeconds?: number;
    readonly lambdaMemoryMb?: number;
    readonly aggregatorReservedConcurrency?: number;
    readonly logRetentionDays?: number;
    readonly enableTracing?: boolean;
    readonly enableAuditArchival?: boolean;
    readonly auditArchiveGlacierDays?: number;
    readonly enableAlarms?: boolean;
    readonly alarmSnsTopic?: string;
    readonly lambdaDurationThresholdPct?: number;
    readonly createIam?: boolean;
    readonly createIamRoles?: boolean;
    readonly aggregatorRoleArn?: string;
    readonly permissionBoundary?: string;
    readonly roleNameFormat?: string;
    readonly policyNameFormat?: string;
    readonly tags?: Readonly<Record<string, string>>;
  }
  export function tableDeclaration({ stream }: { readonly stream: boolean }): TableDeclaration;
  export const TTL_ATTRIBUTE = "ttl";
  export interface IndexDeclaration {
    readonly IndexName: string;
    readonly KeySchema: readonly {
      readonly AttributeName: string;
      readonly KeyType: "HASH" | "RANGE";
    }[];
    readonly Projection: {
      readonly ProjectionType: Projection;
    };
  }
  export interface TableDeclaration {
    readonly BillingMode: "PAY_PER_REQUEST";
    readonly KeySchema: IndexDeclaration["KeySchema"];
    readonly AttributeDefinitions: readonly {
      readonly AttributeName: string;
      readonly AttributeType: "S";
    }[];
    readonly GlobalSecondaryIndexes: readonly IndexDeclaration[];
    readonly StreamSpecification?: {
      readonly StreamEnabled: true;
      readonly StreamViewType: "NEW_AND_OLD_IMAGES";
    };
  }
  export interface DynamoClient {
    send(
      command: never,
      options?: {
        abortSignal?: AbortSignal;
      },
    ): Promise<unknown>;
    destroy?(): void;
  }
  export interface AwsCredentials {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string | undefined;
    readonly expiration?: Date | undefined;
  }
  export interface DynamoTransport {
    call(
      operation: string,
      input: object,
      options: {
        readonly signal: AbortSignal;
      },
    ): Promise<object>;
    close(): void;
  }
  export interface HttpAgent {
    readonly maxSockets: number;
    readonly maxFreeSockets: number;
    destroy(): void;
  }
  export interface ObservedTransport extends DynamoTransport {
    readonly region: string;
    readonly endpointUrl: string | undefined;
    watchServerDate(listener: (date: string | undefined) => void): () => void;
  }
  interface BuilderOf<Built> {
    namespace(name: string): this;
    options(options: DynamoOptions): this;
    stackOptions(options: StackOptions): this;
    onUnavailable(action: OnUnavailable): this;
    build(): Promise<Built>;
  }
  type Projection = "ALL" | "KEYS_ONLY";
}

declare module "declared/zae-limiter/backend" {
  export { AuditEvent } from "declared/zae-limiter";
  import {
    SupportedLimit,
    Amounts,
    LimitStatus,
    ConfigSource,
    UsageWindow,
    Repository,
    Clock,
    OnUnavailable,
    CreateEntityOptions,
    Entity,
    UpdateEntityOptions,
    Paging,
    Page,
    DeleteEntityOptions,
    DeletedEntity,
    Limit,
    SetLimitsOptions,
    LimitsOptions,
    LevelName,
    StoredLevel,
    By,
    SetDefaultsOptions,
    SystemDefaultsOptions,
    SystemDefaults,
    DeleteSystemDefaultsOptions,
    ResolvedLimits,
    CacheStats,
    RepositoryStatistics,
    BucketsOptions,
    BucketState,
    BucketOptions,
    ResourceBucketsOptions,
    ResourceBucket,
    CapacityOptions,
    ResourceCapacity,
    UsageQuery,
    UsagePage,
    UsageSummary,
    AuditEvent,
    NamespaceOptions,
    NamespaceInfo,
    ProvisionerState,
    VersionRecord,
    NewVersionRecord,
    BackendCapabilities,
    RepositoryOptions,
    Random,
    Calendar,
  } from "declared/zae-limiter";
  export function apply(
    bucket: Bucket,
    costsMilli: readonly number[],
    nowMs: number,
    ends?: WindowEnds,
  ): Bucket;
  export function listWindowEnds(bucket: Bucket): WindowEnds | undefined;
  export interface Bucket {
    readonly limits: readonly BucketLimit[];
    readonly refilledAtMs: number;
    readonly balances: readonly number[];
  }
  export interface BucketLimit {
    readonly limit: SupportedLimit;
    readonly capacityMilli: number;
    readonly window: LimitWindow | undefined;
    readonly refillAmountMilli: number;
    readonly refillPeriodMs: number;
    readonly amount: number;
    readonly period: number;
    readonly hidden: boolean;
  }
  export function afterRefusal(
    stored: Bucket | undefined,
    policy: Policy,
    nowMs: number,
  ): Bucket | undefined;
  export function buildClaims<C extends Owned>(
    request: WantedAmounts,
    find: (wanted: WantedBucket) => C | undefined,
  ): C[];
  export function buildClaims<C extends Owned>(
    request: WantedAmounts,
    find: FindClaim<C>,
    nowMs: number,
  ): C[];
  export function costsMilli(bucket: Bucket, amounts: Amounts): number[];
  export function divideAmounts(policy: Policy, amounts: Amounts): DividedAmounts;
  export function fits(claims: readonly BucketClaim[], nowMs: number): boolean;
  export function selectKnownAmounts(
    { amounts, override, isParent, field, leave }: WantedBucket,
    policy: Policy,
    levels: Levels,
  ): Amounts;
  export function negate(amounts: Amounts): Amounts;
  export function computeStatuses(
    claims: readonly BucketClaim[],
    nowMs: number,
  ): readonly LimitStatus[];
  export function takesAnything({ amounts, unlimited }: DividedAmounts): boolean;
  export function withPolicyLimits(
    stored: Bucket | undefined,
    policy: Policy,
    nowMs: number,
  ): Bucket;
  export interface BucketClaim {
    readonly entityId: string;
    readonly resource: string;
    readonly policy: Policy;
    readonly bucket: Bucket;
    readonly amounts: Amounts;
    readonly unlimited?: Amounts | undefined;
    readonly costs?: readonly number[];
    readonly others?: readonly Bucket[];
    readonly leaves?: Amounts | undefined;
    readonly places?:
      | readonly {
          readonly shard: number;
          readonly divisor: number;
        }[]
      | undefined;
  }
  export type OwnedClaim = BucketClaim & Owned;
  export interface WantedBucket {
    readonly entityId: string;
    readonly resource: string;
    readonly amounts: Amounts;
    readonly override: Policy | undefined;
    readonly defaults?: Policy | undefined;
    readonly isParent: boolean;
    readonly field?: string | undefined;
    readonly leave?: Leave | undefined;
  }
  export function withDefaults(
    stored: Policy | undefined,
    defaults: Policy | undefined,
  ): Policy | undefined;
  export function computeLeaves(policy: Policy, leave: Leave | undefined): Amounts | undefined;
  export interface Leave {
    readonly amounts: Amounts;
    readonly priority: string | undefined;
  }
  export type WindowEnds = Readonly<Record<string, number>>;
  export type ConfigKey =
    | {
        readonly level: "system";
      }
    | {
        readonly level: "resource";
        readonly resource: string;
      }
    | {
        readonly level: "entity";
        readonly entityId: string;
        readonly resource: string;
      };
  export interface Policy {
    readonly source: ConfigSource;
    readonly inherited: ReadonlyMap<string, ConfigSource> | undefined;
    readonly inherits: boolean;
    readonly limits: readonly SupportedLimit[];
    readonly bucketLimits: readonly BucketLimit[];
    readonly names: ReadonlySet<string>;
    readonly counts: ReadonlyMap<string, string> | undefined;
    readonly knownNames: ReadonlySet<string>;
    readonly hasWindows: boolean;
    readonly fromCode: readonly string[] | undefined;
    readonly defaults: Policy | undefined;
  }
  export function allocateSettlement<Part extends TakenPart>(
    parts: readonly Part[],
    resource: string,
    deltas: Amounts,
    parentKnows?: (parent: Part, name: string) => boolean,
  ): readonly BorneShare<Part>[];
  export function computeTakenStatuses<Part extends TakenPart>(
    parts: readonly Part[],
    findStored: (part: Part) => Bucket | undefined,
    nowMs: number,
  ): readonly LimitStatus[];
  export interface TakenPart {
    readonly entityId: string;
    readonly resource: string;
    readonly policy: Policy;
    readonly amounts: Amounts;
    readonly unlimited?: Amounts | undefined;
    readonly windowEnds?: WindowEnds | undefined;
  }
  export interface EntityChange {
    readonly name?: string;
    readonly metadata?: Readonly<Record<string, string>>;
    readonly cascade?: boolean;
  }
  export const DEFAULT_NAMESPACE = "default";
  export function newNamespaceId(random: () => number): string;
  export interface UsageRow {
    readonly entityId: string;
    readonly resource: string;
    readonly window: UsageWindow;
    readonly windowStartMs: number;
    readonly counters: Amounts;
    readonly requests: number;
    readonly cascaded: Amounts;
    readonly cascadedRequests: number;
  }
  export class StoreRepository implements Repository {
    readonly namespaceName: string;
    readonly clock: Clock;
    readonly splitBucket?: NonNullable<Repository["splitBucket"]>;
    readonly mergeBucket?: NonNullable<Repository["mergeBucket"]>;
    constructor(scope: Scope, shared?: Shared);
    get closed(): AbortSignal;
    get namespaceId(): string;
    get lastOnUnavailable(): OnUnavailable | undefined;
    consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
    charge(request: ConsumeRequest): MaybePromise<void>;
    settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
    knowsLimit(entityId: string, resource: string, limitName: string): boolean;
    giveBack(receipt: Receipt): MaybePromise<void>;
    read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
    remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]>;
    createEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
    ensureEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
    updateEntity(entityId: string, options?: UpdateEntityOptions): Promise<Entity>;
    getEntity(entityId: string): Promise<Entity | undefined>;
    getChildren(parentId: string): Promise<readonly Entity[]>;
    listEntities(options?: Paging): Promise<Page<Entity>>;
    deleteEntity(entityId: string, options?: DeleteEntityOptions): Promise<DeletedEntity>;
    setLimits(entityId: string, list: readonly Limit[], options?: SetLimitsOptions): Promise<void>;
    getLimits(entityId: string, options?: LimitsOptions): Promise<readonly Limit[]>;
    getLevel(level: LevelName): Promise<StoredLevel | undefined>;
    batchGetLevels(levels: readonly LevelName[]): Promise<readonly (StoredLevel | undefined)[]>;
    deleteLimits(entityId: string, options?: LimitsOptions & By): Promise<void>;
    setResourceDefaults(
      resource: string,
      list: readonly Limit[],
      options?: SetDefaultsOptions,
    ): Promise<void>;
    getResourceDefaults(resource: string): Promise<readonly Limit[]>;
    deleteResourceDefaults(resource: string, options?: By): Promise<void>;
    setSystemDefaults(
      list: readonly Limit[] | undefined,
      options?: SystemDefaultsOptions,
    ): Promise<void>;
    getSystemDefaults(): Promise<SystemDefaults>;
    deleteSystemDefaults(options?: DeleteSystemDefaultsOptions): Promise<void>;
    listResourcesWithDefaults(): Promise<readonly string[]>;
    listEntitiesWithCustomLimits(resource: string, options?: Paging): Promise<Page<string>>;
    listResourcesWithEntityConfigs(): Promise<readonly string[]>;
    resolveLimits(entityId: string, resource: string): Promise<ResolvedLimits | undefined>;
    invalidateConfigCache(): Promise<void>;
    getCacheStats(): CacheStats;
    getStatistics(): RepositoryStatistics;
    getBuckets(entityId: string, options?: BucketsOptions): Promise<readonly BucketState[]>;
    getBucket(
      entityId: string,
      resource: string,
      options?: BucketOptions,
    ): Promise<readonly BucketState[] | undefined>;
    batchGetBuckets(
      entityIds: readonly string[],
      options?: BucketsOptions,
    ): Promise<ReadonlyMap<string, readonly BucketState[]>>;
    getResourceBuckets(
      resource: string,
      options?: ResourceBucketsOptions,
    ): Promise<Page<ResourceBucket>>;
    getResourceCapacity(
      resource: string,
      limitName: string,
      options?: CapacityOptions,
    ): Promise<ResourceCapacity>;
    getUsageSnapshots(query: UsageQuery & Paging): Promise<UsagePage>;
    getUsageSummary(query: UsageQuery): Promise<UsageSummary>;
    getAuditEvents(entityId: string, options?: Paging): Promise<Page<AuditEvent>>;
    namespace(name: string, options?: NamespaceOptions): Promise<Repository>;
    registerNamespace(name: string): Promise<string>;
    registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
    getNamespace(name: string): Promise<NamespaceInfo | undefined>;
    listNamespaces(): Promise<readonly NamespaceInfo[]>;
    deleteNamespace(name: string): Promise<void>;
    recoverNamespace(namespaceId: string): Promise<string>;
    listOrphanNamespaces(): Promise<readonly NamespaceInfo[]>;
    purgeNamespace(namespaceId: string, options?: PurgeOptions): Promise<void>;
    getProvisionerState(): Promise<ProvisionerState>;
    putProvisionerState(state: ProvisionerState): Promise<void>;
    getVersionRecord(): Promise<VersionRecord | undefined>;
    setVersionRecord(record: NewVersionRecord): Promise<void>;
    ping(): Promise<boolean>;
    get capabilities(): BackendCapabilities;
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
  }
  export interface Scope {
    readonly store: Store;
    readonly namespaceName: string;
    readonly namespaceId: string;
    readonly options: RepositoryOptions;
    readonly reopening?: Reopening;
  }
  export type ConsumeOutcome =
    | {
        readonly granted: true;
        readonly receipt: Receipt;
        readonly policies: readonly Policy[];
      }
    | {
        readonly granted: false;
        readonly statuses: readonly LimitStatus[];
      };
  export interface ConsumeRequest {
    readonly entityId: string;
    readonly resources: readonly ResourceAmounts[];
    readonly override: Policy | undefined;
    readonly defaults?: Policy | undefined;
  }
  export type MaybePromise<T> = T | Promise<T>;
  export interface Receipt {
    readonly parts: readonly TakenPart[];
  }
  export interface ResourceAmounts {
    readonly resource: string;
    readonly amounts: Amounts;
    readonly field?: string;
    readonly leave?: Leave | undefined;
  }
  export function mergeConfig(stored: StoredConfig, wanted: StoredConfig): StoredConfig;
  export const NO_CONFIG: StoredConfig;
  export function withoutLimits({ settings }: StoredConfig): StoredConfig;
  export interface AuditStore {
    events(entityId: string, page: KeyPage): MaybePromise<Keyed<AuditEvent>>;
    add(event: AuditEvent): MaybePromise<void>;
    erase(entityId: string, options: PurgeOptions): MaybePromise<number>;
    archivedUnder?(namespaceName: string): string;
  }
  export interface BucketStore {
    consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
    charge(request: ConsumeRequest): MaybePromise<void>;
    settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
    giveBack(receipt: Receipt): MaybePromise<void>;
    read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
    remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]>;
    ofEntity(entityId: string, resource: string | undefined): MaybePromise<readonly StoredBucket[]>;
    ofResource(resource: string): MaybePromise<readonly StoredBucket[]>;
    get?(entityId: string, resource: string, shard: number): MaybePromise<StoredBucket | undefined>;
    ofEntities?(
      entityIds: readonly string[],
      resource: string | undefined,
    ): MaybePromise<readonly StoredBucket[]>;
    ofResourcePage?(resource: string, page: KeyPage): MaybePromise<Keyed<StoredBucket>>;
    split?(entityId: string, resource: string, shards: number): Promise<number>;
    merge?(entityId: string, resource: string, shards: number): Promise<number>;
  }
  export interface DeleteOptions extends Guard {
    readonly keepSettings: boolean;
  }
  export interface EntityStore {
    create(entity: Entity, event: AuditEvent, guard: Guard): MaybePromise<void>;
    update(
      entityId: string,
      change: EntityChange,
      buildEvent: (before: Entity) => AuditEvent,
      guard: Guard,
    ): MaybePromise<Entity>;
    get(entityId: string): MaybePromise<Entity | undefined>;
    children(parentId: string): MaybePromise<readonly Entity[]>;
    list(page: KeyPage): MaybePromise<Keyed<Entity>>;
    delete(entityId: string, event: AuditEvent): MaybePromise<number>;
  }
  export interface Guard {
    readonly ifRevision: number | undefined;
  }
  export interface Keyed<T> {
    readonly items: readonly T[];
    readonly next: string | undefined;
  }
  export interface KeyPage {
    readonly limit: number;
    readonly after: string | undefined;
  }
  export interface LimitStore {
    read(keys: readonly ConfigKey[]): MaybePromise<readonly StoredConfig[]>;
    put(key: ConfigKey, config: StoredConfig, event: AuditEvent, guard: Guard): MaybePromise<void>;
    delete(key: ConfigKey, event: AuditEvent, options: DeleteOptions): MaybePromise<boolean>;
    resourcesWithDefaults(): MaybePromise<readonly string[]>;
    entitiesWithLimits(resource: string, page: KeyPage): MaybePromise<Keyed<string>>;
    resourcesWithEntityLimits(): MaybePromise<readonly string[]>;
  }
  export interface NamespaceData {
    readonly buckets: BucketStore;
    readonly entities: EntityStore;
    readonly limits: LimitStore;
    readonly usage: UsageStore;
    readonly audit: AuditStore;
    readonly provisioner: ProvisionerStore;
  }
  export interface NamespaceNote {
    readonly filedIn: string;
    event(details: { readonly name: string | undefined; readonly namespaceId: string }): AuditEvent;
  }
  export interface NamespaceStore {
    readonly filesNotes?: boolean;
    register(
      name: string,
      newId: () => string,
      nowMs: number,
      note?: NamespaceNote,
    ): MaybePromise<{
      readonly namespaceId: string;
      readonly created: boolean;
    }>;
    byName(name: string): MaybePromise<NamespaceInfo | undefined>;
    byId(namespaceId: string): MaybePromise<NamespaceInfo | undefined>;
    list(): MaybePromise<readonly NamespaceInfo[]>;
    delete(name: string, nowMs: number, note?: NamespaceNote): MaybePromise<string | undefined>;
    recover(namespaceId: string, note?: NamespaceNote): MaybePromise<string>;
    purge(namespaceId: string, options: PurgeOptions, note?: NamespaceNote): MaybePromise<boolean>;
  }
  export interface PolicySource {
    readonly version: number;
    isUnchangedSince(version: number): boolean;
    getCached(entityId: string, resource: string, held?: CachedPolicy): CachedPolicy | undefined;
    resolve(entityId: string, resource: string): MaybePromise<Policy | undefined>;
    levels(entityId: string, resource: string): MaybePromise<readonly (Policy | undefined)[]>;
    refresh(entityId: string, resource: string): MaybePromise<Policy | undefined>;
    clear(): void;
  }
  export interface ProvisionerStore {
    get(): MaybePromise<ProvisionerState | undefined>;
    put(state: ProvisionerState, expected: number): MaybePromise<boolean>;
  }
  export interface Store {
    readonly namespaces: NamespaceStore;
    readonly versions: VersionStore;
    open(namespaceId: string, policies: PolicySource): NamespaceData;
    readonly capabilities: BackendCapabilities;
    statistics(): RepositoryStatistics;
    ping(): MaybePromise<boolean>;
    close(): MaybePromise<void>;
  }
  export interface StoredBucket {
    readonly entityId: string;
    readonly resource: string;
    readonly shard: number;
    readonly shardCount: number;
    readonly bucket: Bucket;
  }
  export interface StoredConfig {
    readonly limits: readonly SupportedLimit[] | undefined;
    readonly inherit?: boolean | undefined;
    readonly settings?: SystemSettings;
  }
  export interface SystemSettings {
    readonly onUnavailable: OnUnavailable | undefined;
    readonly auditRetentionDays: number | undefined;
    readonly usageRetentionDays: number | undefined;
  }
  export interface UsageRange {
    readonly entityId: string | undefined;
    readonly resource: string | undefined;
    readonly window: UsageWindow;
    readonly startMs: number | undefined;
    readonly endMs: number | undefined;
  }
  export interface UsageStore {
    rows(range: UsageRange, page: KeyPage): MaybePromise<Keyed<UsageRow>>;
    getCountedUntilMs(): MaybePromise<number | undefined>;
    completeSinceMs?(window: UsageWindow): number | undefined;
    erase(entityId: string, options: PurgeOptions): MaybePromise<number>;
  }
  export interface VersionStore {
    get(): MaybePromise<VersionRecord | undefined>;
    put(record: VersionRecord): MaybePromise<void>;
  }
  export interface PurgeOptions {
    readonly onProgress?: (deletedItems: number) => void;
    readonly signal?: AbortSignal;
  }
  export const systemClock: Clock;
  export const systemRandom: Random;
  export function wholeMs(clock: Pick<Clock, "now">): number;
  interface LimitWindow {
    readonly kind: "quota" | "session";
    readonly capacityMilli: number;
    readonly unusedMilli: number;
    readonly carriesDebt: boolean;
    readonly calendar: Calendar | undefined;
    readonly lengthMs: number;
    readonly definition: string;
  }
  interface Owned {
    readonly parentId: string | undefined;
  }
  interface WantedAmounts {
    readonly entityId: string;
    readonly resources: readonly {
      readonly resource: string;
      readonly amounts: Amounts;
      readonly field?: string;
      readonly leave?: Leave | undefined;
    }[];
    readonly override: Policy | undefined;
    readonly defaults?: Policy | undefined;
  }
  type FindClaim<C extends Owned> = (wanted: WantedBucket, nowMs: number) => C | undefined;
  type DividedAmounts = Pick<BucketClaim, "amounts" | "unlimited">;
  type Levels = readonly (Policy | undefined)[];
  interface BorneShare<Part extends TakenPart> {
    readonly part: Part;
    readonly amounts: Amounts;
    readonly unlimited: Amounts;
  }
  class Shared {
    readonly contexts: Map<string, Context>;
    closedReason: Error | undefined;
    get closed(): AbortSignal;
    close(reason: Error): void;
  }
  interface Reopening {
    readonly losses: {
      readonly count: number;
    };
    readonly find: (namespaceName: string) => Promise<string>;
  }
  interface CachedPolicy {
    readonly policy: Policy | undefined;
    readonly version: number;
    readonly fromMs: number;
    readonly untilMs: number;
  }
  interface Context {
    readonly store: Store;
    readonly namespaceName: string;
    readonly namespaceId: string;
    readonly data: NamespaceData;
    readonly policies: PolicyCache;
    readonly clock: Clock;
    readonly random: Random;
    readonly principal: string | undefined;
    readonly eventOrder: EventOrder;
  }
  class PolicyCache implements PolicySource {
    lastOnUnavailable: OnUnavailable | undefined;
    constructor(options: {
      readonly read: (keys: readonly ConfigKey[]) => MaybePromise<readonly StoredConfig[]>;
      readonly clock: Pick<Clock, "now">;
      readonly ttlMs: number;
    });
    get version(): number;
    isUnchangedSince(version: number): boolean;
    getCached(entityId: string, resource: string, held?: CachedPolicy): CachedPolicy | undefined;
    resolve(entityId: string, resource: string): MaybePromise<Policy | undefined>;
    levels(entityId: string, resource: string): MaybePromise<readonly (Policy | undefined)[]>;
    knows(entityId: string, resource: string, limitName: string): boolean;
    refresh(entityId: string, resource: string): MaybePromise<Policy | undefined>;
    evict(key: ConfigKey): void;
    evictEntity(entityId: string): void;
    clear(): void;
    stats(): CacheStats;
  }
  class EventOrder {
    next(timeMs: number): number;
  }
}

declare module "declared/zae-limiter/testing" {
  import { Repository, Clock, Random } from "declared/zae-limiter";
  export function faultyRepository(
    repository: Repository,
    next: (operation: string) => Fault | undefined,
  ): Repository;
  export type Fault =
    | "error-before"
    | "error-after"
    | {
        readonly delayMs: number;
      };
  export class ManualClock implements Clock {
    constructor(startMs?: number);
    now(): number;
    sleep(ms: number, signal?: AbortSignal): Promise<void>;
    advance(ms: number): Promise<void>;
    set(ms: number): void;
  }
  export function seededRandom(seed: number): Random;
}

declare module "declared/zae-limiter/open" {
  export { tableOptions } from "declared/zae-limiter/aggregator";
  import { RepositoryOptions, Repository } from "declared/zae-limiter";
  export function withoutCredentials(text: string): string;
  export function openRepository(url: string, options?: RepositoryOptions): Promise<Repository>;
}
