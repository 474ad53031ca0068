import type { Limit } from "../core/limit.ts";
import type { ConfigSource, OnUnavailable } from "../core/bucket/policy.ts";
import type { UsageSnapshot, UsageWindow } from "../core/usage.ts";
import type { Clock, Random } from "./system-clock.ts";

/** One page of a list; `cursor` is undefined on the last page. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly cursor: string | undefined;
}

/** One page of usage. */
export interface UsagePage extends Page<UsageSnapshot> {
  /**
   * Only if the memory backend had to drop usage: windows that begin earlier are missing, or lack
   * something.
   */
  readonly completeSince?: Date;
}

/**
 * One limit of one stored bucket (or shard), as stored. Only `available` includes the refill up to
 * now.
 */
export interface BucketState {
  readonly entityId: string;
  readonly resource: string;
  readonly limitName: string;
  readonly shard: number;
  readonly shardCount: number;
  readonly tokensMilli: number;
  readonly lastRefillMs: number;
  readonly capacityMilli: number;
  readonly refillAmountMilli: number;
  readonly refillPeriodMs: number;
  readonly totalConsumedMilli: number;
  readonly available: number;
}

/** How much of one limit one entity has left. */
export interface EntityCapacity {
  readonly entityId: string;
  readonly capacity: number;
  readonly available: number;
  readonly utilizationPct: number;
}

/** How much of one limit all entities of a resource have left together. */
export interface ResourceCapacity {
  readonly resource: string;
  readonly limitName: string;
  readonly totalCapacity: number;
  readonly totalAvailable: number;
  readonly utilizationPct: number;
  readonly entities: readonly EntityCapacity[];
}

/** The limits that apply to an entity and a resource, and the level they came from. */
export interface ResolvedLimits {
  readonly limits: readonly Limit[];
  readonly onUnavailable: OnUnavailable | undefined;
  readonly source: ConfigSource;
}

/** What is stored at the system level. */
export interface SystemDefaults {
  readonly limits: readonly Limit[];
  readonly onUnavailable: OnUnavailable | undefined;
  readonly auditRetentionDays: number;
  readonly usageRetentionDays: number;
}

/** Counters of the configuration cache since the repository was opened. */
export interface CacheStats {
  readonly hits: number;
  readonly misses: number;
  readonly size: number;
  readonly ttlMs: number;
}

/** What declared limits manage; `revision` is 0 when nothing is stored. */
export interface ProvisionerState {
  readonly managedSystem: boolean;
  readonly managedResources: readonly string[];
  readonly managedEntities: Readonly<Record<string, readonly string[]>>;
  readonly lastApplied: Date | undefined;
  readonly appliedHash: string | undefined;
  readonly revision: number;
}

/** The versions that wrote the stored data. */
export interface VersionRecord {
  readonly schemaVersion: string;
  readonly lambdaVersion: string | undefined;
  readonly clientMinVersion: string;
  readonly updatedAt: Date;
  readonly updatedBy: string | undefined;
}

/** What a backend can do. */
export interface BackendCapabilities {
  readonly auditLogging: boolean;
  readonly usageSnapshots: boolean;
  readonly infrastructureManagement: boolean;
  readonly changeStreams: boolean;
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
  /** @default "default" */
  readonly namespace?: string;
  /** How long stored limits are cached; 0 reads them for every decision. @default 60000 */
  readonly configCacheTtlMs?: number;
  readonly clock?: Clock;
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

/** Who makes a change, for the audit trail. */
export interface By {
  readonly principal?: string;
}

/** Which page of a list to return. */
export interface Paging {
  /** @default 100 */
  readonly limit?: number;
  readonly cursor?: string;
}

/** Which windows to return; `entityId` or `resource` is required. */
export interface UsageQuery {
  readonly entityId?: string;
  readonly resource?: string;
  /** @default "hourly" */
  readonly window?: UsageWindow;
  /** Windows with `start ≤ windowStart < end`. */
  readonly start?: Date;
  readonly end?: Date;
}

/** How a new entity is described. */
export interface CreateEntityOptions extends By {
  /** @default the id */
  readonly name?: string;
  readonly parentId?: string;
  /** Whether calls of the entity also take from its parent. @default false */
  readonly cascade?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** What is stored besides the system limits. An omitted option keeps its stored value. */
export interface SystemDefaultsOptions extends By {
  readonly onUnavailable?: OnUnavailable;
  readonly auditRetentionDays?: number;
  readonly usageRetentionDays?: number;
}
