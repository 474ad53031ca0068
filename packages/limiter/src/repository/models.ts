import type { LimitKind } from "../core/limit-kinds.ts";
import type { DeclaredLimits } from "./declared-limits.ts";
import type { EntityChange } from "../core/entity.ts";
import type { Limit } from "../core/limit.ts";
import type { OnUnavailable } from "../core/bucket/policy.ts";
import type { UsageSnapshot, UsageWindow } from "../core/usage.ts";
import type { Clock, Random } from "./system-clock.ts";

/** One page of a list; `cursor` is undefined on the last page. */
export interface Page<T> {
  /** At most `limit` entries. */
  readonly items: readonly T[];
  /** Pass it on to get the next page; undefined on the last one. */
  readonly cursor: string | undefined;
}

/** One page of usage. */
export interface UsagePage extends Page<UsageSnapshot> {
  /**
   * Only if the memory backend had to drop usage: windows that begin earlier are missing or
   * incomplete.
   */
  readonly completeSince?: Date;
  /**
   * Only on DynamoDB: until when the aggregator has counted. Windows that end later are not
   * complete.
   */
  readonly countedUntil?: Date;
}

/**
 * One limit of one stored bucket (or shard), as stored. Only `available` includes the refill up to
 * now.
 */
export interface BucketState {
  /** Whose bucket it is. */
  readonly entityId: string;
  /** The resource of the bucket. */
  readonly resource: string;
  /** The limit of this entry. */
  readonly limitName: string;
  /** Which shard it is, from 0. Always 0 on memory and SQLite. */
  readonly shard: number;
  /** How many shards the bucket has; 1 unless it was split. */
  readonly shardCount: number;
  /** The kind of the limit. */
  readonly kind: LimitKind;
  /** The stored balance, in thousandths of a token; negative in debt. */
  readonly tokensMilli: number;
  /** The end of the open window of a quota or session, in milliseconds since 1970. */
  readonly windowEndMs: number | undefined;
  /** When the stored balance was computed, in milliseconds since 1970. */
  readonly lastRefillMs: number;
  /** The most that this shard can hold, in thousandths of a token. */
  readonly capacityMilli: number;
  /** Thousandths of a token that flow back to this shard in every period; 0 unless it is a rate. */
  readonly refillAmountMilli: number;
  /** The period of the refill, in milliseconds; 0 unless it is a rate. */
  readonly refillPeriodMs: number;
  /** All tokens consumed so far, net of what was given back. */
  readonly totalConsumedMilli: number;
  /** Whole tokens now, refill included, rounded down; negative in debt. */
  readonly available: number;
}

/** One limit of a bucket, all of its shards together. */
export interface LimitTotal {
  /** The limit of this entry. */
  readonly limitName: string;
  /** Whole tokens now, refill included, rounded down; negative in debt. */
  readonly available: number;
  /** The most that the bucket can hold, in thousandths of a token. */
  readonly capacityMilli: number;
  /** All tokens consumed so far, net of what was given back. */
  readonly totalConsumedMilli: number;
}

/** The stored bucket of one entity on a resource. */
export interface ResourceBucket {
  /** Whose bucket it is. */
  readonly entityId: string;
  /** The resource of the bucket. */
  readonly resource: string;
  /** How many shards the bucket has; 1 unless it was split. */
  readonly shardCount: number;
  /** One entry for each limit, or only the limit that was asked for. */
  readonly limits: readonly LimitTotal[];
  /** The same limits in each shard. */
  readonly shards: readonly BucketState[];
}

/** How much of one limit one entity has left. */
export interface EntityCapacity {
  /** Whose bucket it is. */
  readonly entityId: string;
  /** The most that the bucket can hold, in whole tokens. */
  readonly capacity: number;
  /** What it holds now, refill included; negative in debt. */
  readonly available: number;
  /** The part of the capacity that is in use, in percent; above 100 in debt. */
  readonly utilizationPct: number;
}

/** How much of one limit all entities of a resource have left together. */
export interface ResourceCapacity {
  /** The resource of the buckets. */
  readonly resource: string;
  /** The limit that was asked for. */
  readonly limitName: string;
  /** The most that the buckets can hold together, in whole tokens. */
  readonly totalCapacity: number;
  /** What they hold now, refill included; negative in debt. */
  readonly totalAvailable: number;
  /** The part of the capacity that is in use, in percent; above 100 in debt. */
  readonly utilizationPct: number;
  /**
   * How much of `totalCapacity` belongs to entities that others with a bucket on the resource
   * cascade into. Calls by these children need it too, so it is not available on top of theirs.
   */
  readonly cascadedCapacity: number;
  /** How much of `totalAvailable` belongs to these entities. */
  readonly cascadedAvailable: number;
  /** One entry for each entity that has a bucket. */
  readonly entities: readonly EntityCapacity[];
}

/** What is stored at the system level. */
export interface SystemDefaults {
  /** The limits of the system level; empty if there are none. */
  readonly limits: readonly Limit[];
  /** What calls do when the store cannot be reached; undefined if nothing is stored. */
  readonly onUnavailable: OnUnavailable | undefined;
  /** How many days audit events are kept; 90 if nothing is stored. */
  readonly auditRetentionDays: number;
  /** How many days usage is kept; 90 if nothing is stored. */
  readonly usageRetentionDays: number;
}

/** Counters of the configuration cache since the repository was opened. */
export interface CacheStats {
  /** Lookups that the cache could answer. */
  readonly hits: number;
  /** Lookups that had to read the store. */
  readonly misses: number;
  /** Entries in the cache now. */
  readonly size: number;
  /** How long an entry is used: `configCacheTtlMs` of the options. */
  readonly ttlMs: number;
}

/** What declared limits manage; `revision` is 0 when nothing is stored. */
export interface ProvisionerState {
  /** Whether the limits of the system level are managed; settings are if `applied` has them. */
  readonly managedSystem: boolean;
  /** The resources whose defaults are managed. */
  readonly managedResources: readonly string[];
  /** The resources whose limits are managed, by entity. */
  readonly managedEntities: Readonly<Record<string, readonly string[]>>;
  /** When declared limits were last applied; undefined if they never were. */
  readonly lastApplied: Date | undefined;
  /** A hash of what was applied, to find changes; undefined if nothing was, or if it is unknown. */
  readonly appliedHash: string | undefined;
  /** Goes up by one with every write; `putProvisionerState` compares it. */
  readonly revision: number;
  /** The values that were last applied, to find what was changed by hand; absent if unknown. */
  readonly applied?: DeclaredLimits | undefined;
  /** An apply that was started and has not finished: it is running, or was interrupted. */
  readonly pending?: PendingApply | undefined;
  /** What applies the limits, if it is a resource of CloudFormation: its physical id. */
  readonly owner?: string | undefined;
}

/** An apply of declared limits that was started and has not finished. */
export interface PendingApply {
  /** A hash of what it applies. */
  readonly hash: string;
  /** When it started. */
  readonly startedAt: Date;
  /** Who started it; undefined if unknown. */
  readonly principal?: string | undefined;
  /** What it applies. */
  readonly declared: DeclaredLimits;
}

/** Names one level: of an entity, of a resource, or of the system if neither is given. */
export interface LevelName {
  /** The entity. @default none */
  readonly entityId?: string;
  /** The resource. @default that of all resources of an entity */
  readonly resource?: string;
}

/** The versions that wrote the stored data. */
export interface VersionRecord {
  /** The version of the stored format. */
  readonly schemaVersion: string;
  /** The version of the deployed Lambda; undefined if there is none. */
  readonly lambdaVersion: string | undefined;
  /** The oldest client that may use the data. */
  readonly clientMinVersion: string;
  /** When the record was written. */
  readonly updatedAt: Date;
  /** Who wrote it, such as `client:0.1.0`; undefined if it did not say. */
  readonly updatedBy: string | undefined;
}

/** What a backend can do. */
export interface BackendCapabilities {
  /** Whether changes are recorded as audit events. */
  readonly auditLogging: boolean;
  /**
   * Whether usage is recorded. On DynamoDB: whether an aggregator had ever counted when the
   * repository was opened, or when usage was last read.
   */
  readonly usageSnapshots: boolean;
  /** Whether it can create and delete what it is stored in. */
  readonly infrastructureManagement: boolean;
  /** Whether the store reports its changes as a stream. */
  readonly changeStreams: boolean;
  /** Whether calls on one bucket share a write. */
  readonly batchOperations: boolean;
}

/** Counters since the repository was opened; 0 for what a backend does not have. */
export interface RepositoryStatistics {
  /** Requests sent to the store, reads and retries included. */
  readonly requests: number;
  /** Writes to buckets that were applied. */
  readonly writes: number;
  /**
   * Writes that found their bucket changed and had to be decided again. Stores bill them like other
   * writes.
   */
  readonly failedConditions: number;
  /** Requests that were sent again because the store did not respond, or was throttling. */
  readonly retries: number;
  /** Writes that carried acquires or ends of leases. */
  readonly batches: number;
  /** The acquires and ends in those writes; divided by `batches`, the mean size of a batch. */
  readonly batchedOperations: number;
  /** Calls that were refused without a request to the store. */
  readonly refusalsFromMemory: number;
  /** Shards that were split in two. */
  readonly splits: number;
  /** Pairs of shards that were merged into one. */
  readonly merges: number;
}

/** Options that every backend has. */
export interface RepositoryOptions {
  /** The tenant whose data is used; registered if it is new. @default "default" */
  readonly namespace?: string;
  /** How long stored limits are cached; 0 reads them for every decision. @default 60000 */
  readonly configCacheTtlMs?: number;
  /** The source of time, for tests. @default the system's clock */
  readonly clock?: Clock;
  /**
   * The source of random numbers, for tests. @default the system's
   * @example new MemoryRepository({ random: seededRandom(1) });
   */
  readonly random?: Random;
  /**
   * If false, only what exists is opened: a missing file throws `InfrastructureNotFoundError`, and
   * a namespace that is not registered is not created, so its operations throw
   * `NamespaceNotFoundError`. The memory backend always creates its namespace. @default true
   */
  readonly create?: boolean;
  /** Recorded in audit events if the call does not name a principal. */
  readonly principal?: string;
  /** Whether usage is recorded; memory and SQLite only. @default true */
  readonly recordUsage?: boolean;
}

/** Who makes a change, and under which condition. */
export interface By {
  /** Who makes the change. @default the `principal` of the repository's options */
  readonly principal?: string;
  /**
   * Makes the change only while the state of declared limits has this revision
   * (`getProvisionerState`; 0 before anything was applied). Otherwise it changes nothing and throws
   * `ApplyConflictError`, even if there is nothing to change. @default any revision
   */
  readonly ifRevision?: number;
}

/** Which page of a list to return. */
export interface Paging {
  /** The most entries of the page. @default 100 */
  readonly limit?: number;
  /** The `cursor` of the page before. @default the first page */
  readonly cursor?: string;
}

/** Which windows to return; `entityId` or `resource` is required. */
export interface UsageQuery {
  /** Only the usage of this entity. */
  readonly entityId?: string;
  /** Only the usage of this resource. */
  readonly resource?: string;
  /** The length of the windows. @default "hourly" */
  readonly window?: UsageWindow;
  /** Windows with `start ≤ windowStart < end`. @default no beginning */
  readonly start?: Date;
  /** The end of the period, exclusive. @default no end */
  readonly end?: Date;
}

/** How an entity is deleted. That takes several steps, so it cannot depend on a revision. */
export interface DeleteEntityOptions extends Pick<By, "principal">, PurgeOptions {
  /** Whether its usage and its audit events are removed too. @default false */
  readonly history?: boolean;
}

/** What the deletion of an entity removed, and what it cannot remove. */
export interface DeletedEntity {
  /** Its record, its limits and its buckets; 0 if they were gone already. */
  readonly records: number;
  /** Records of its usage; 0 without `history`. */
  readonly usageRecords: number;
  /** Its audit events, with that of the deletion itself; 0 without `history`. */
  readonly auditEvents: number;
  /**
   * Only with `history`, on DynamoDB: an aggregator may still count what the entity used before
   * this time. Delete it once more when `countedUntil` has passed it; undefined if nothing follows.
   */
  readonly usageMayFollowUntil?: Date;
  /**
   * Only with `history`, on DynamoDB: if an aggregator has an archive, audit events that expired
   * earlier remain in its folder or bucket, under this name.
   */
  readonly archivedUnder?: string;
}

/** How a new entity is described. */
export interface CreateEntityOptions extends By {
  /** A display name. @default the id */
  readonly name?: string;
  /** The entity that it belongs to, which must exist. */
  readonly parentId?: string;
  /** Whether calls by the entity also take from its parent. @default false */
  readonly cascade?: boolean;
  /** Your own data: at most 50 entries of text. @default none */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** The changes to an entity: at least one field. Omitted fields stay as they are. */
export interface UpdateEntityOptions extends EntityChange, By {}

/** What is stored besides the system limits. An omitted setting keeps its stored value. */
export interface SystemDefaultsOptions extends SetDefaultsOptions {
  /** What calls do when the store cannot be reached, unless they specify it themselves. */
  readonly onUnavailable?: OnUnavailable;
  /** How many days audit events are kept. */
  readonly auditRetentionDays?: number;
  /** How many days usage is kept. */
  readonly usageRetentionDays?: number;
}

/** Which part of the system level to delete. */
export interface DeleteSystemDefaultsOptions extends By {
  /** Whether only the limits are deleted: `onUnavailable` and retention stay. @default false */
  readonly keepSettings?: boolean;
}

/** Selects limits of an entity. */
export interface LimitsOptions {
  /** Only those for this resource. @default those for all of the entity's resources */
  readonly resource?: string;
}

/** How limits of a resource are stored. */
export interface SetDefaultsOptions extends By {
  /**
   * Whether limits of other names still come from the levels below; `false` hides those. Belongs
   * to this list: the next call decides anew. @default true
   */
  readonly inherit?: boolean;
}

/** How limits of an entity are stored. */
export interface SetLimitsOptions extends LimitsOptions, SetDefaultsOptions {}

/** Selects buckets of an entity. */
export interface BucketsOptions {
  /** Only the bucket of this resource. @default those of all resources */
  readonly resource?: string;
}

/** Selects one shard of a bucket. */
export interface BucketOptions {
  /** The shard, as `BucketState` numbers them. @default 0, the only one unless it was split */
  readonly shard?: number;
}

/** Selects buckets of a resource. */
export interface ResourceBucketsOptions extends Paging {
  /** Only this limit, and only buckets that have it. @default all limits */
  readonly limitName?: string;
}

/** How many shards a bucket should have. */
export interface ShardsOptions {
  /** A power of two, such as 8. */
  readonly shards: number;
}

/** Whose capacity is added up. */
export interface CapacityOptions {
  /** Only that of entities without a parent. @default false */
  readonly parentsOnly?: boolean;
}

/** How another namespace is used. */
export interface NamespaceOptions {
  /** Stored for its calls, like the option of `setSystemDefaults`. @default what is stored */
  readonly onUnavailable?: OnUnavailable;
  /** Stored, like the option of `setSystemDefaults`. @default what is stored */
  readonly auditRetentionDays?: number;
  /** Stored, like the option of `setSystemDefaults`. @default what is stored */
  readonly usageRetentionDays?: number;
  /** DynamoDB only: how long its unused buckets are kept, as in `DynamoOptions`. */
  readonly bucketTtlMultiplier?: number;
}

/** The versions that write the stored data. */
export interface NewVersionRecord {
  /** The version of the stored format. */
  readonly schemaVersion: string;
  /** The version of the deployed Lambda. @default none */
  readonly lambdaVersion?: string;
  /** The oldest client that may use the data. @default "0.0.0" */
  readonly clientMinVersion?: string;
  /** Who writes the record. @default none */
  readonly updatedBy?: string;
}

/** How to watch and stop a purge, or the removal of an entity's history. */
export interface PurgeOptions {
  /**
   * Called from time to time with the number of items removed so far.
   * @example await repository.purgeNamespace(id, { onProgress: (count) => console.log(count) });
   */
  readonly onProgress?: (deletedItems: number) => void;
  /** Stops the removal, which rejects with the signal's reason and can be started again. */
  readonly signal?: AbortSignal;
}
