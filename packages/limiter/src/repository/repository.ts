import type { AuditEvent } from "../core/audit.ts";
import type { Entity } from "../core/entity.ts";
import type { Limit } from "../core/limit.ts";
import type { NamespaceInfo } from "../core/namespace.ts";
import type { ConfigSource, OnUnavailable } from "../core/bucket/policy.ts";
import type { UsageSnapshot, UsageSummary, UsageWindow } from "../core/usage.ts";
import type { RepositoryPort } from "./port.ts";
import type { Clock, Random } from "./system-clock.ts";

/** A part of a list; `cursor` is undefined on the last page. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly cursor: string | undefined;
}

/**
 * One limit of one stored bucket (one shard), as stored; `available` is the balance now, refill
 * included.
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

/** How much of one limit of a resource all entities together have left. */
export interface ResourceCapacity {
  readonly resource: string;
  readonly limitName: string;
  readonly totalCapacity: number;
  readonly totalAvailable: number;
  readonly utilizationPct: number;
  readonly entities: readonly EntityCapacity[];
}

/** The limits that hold for an entity and a resource, and the level that they came from. */
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

/** What the configuration cache did since the repository was opened. */
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

/** Counters since the repository was opened; 0 where a backend has no such thing. */
export interface RepositoryStatistics {
  /** Everything that was sent to the store, reads and repetitions included. */
  readonly requests: number;
  /** Writes to buckets that were applied. */
  readonly writes: number;
  /**
   * Writes to buckets that found them changed, and were decided anew. Stores bill them like others.
   */
  readonly failedConditions: number;
  /**
   * Requests that were sent once more because there was no answer, or a refusal to do any work now.
   */
  readonly retries: number;
  /** Writes that carried acquires and ends of leases. */
  readonly batches: number;
  /** How many of them they carried: divided by `batches`, the size of a batch. */
  readonly batchedOperations: number;
  /** Calls that were refused without asking the store. */
  readonly refusalsFromMemory: number;
  /** Shards that were split in two. */
  readonly splits: number;
}

/** Options that every backend has. */
export interface RepositoryOptions {
  /** @default "default" */
  readonly namespace?: string;
  /** How long stored limits are remembered; 0 reads them for every decision. @default 60000 */
  readonly configCacheTtlMs?: number;
  readonly clock?: Clock;
  readonly random?: Random;
  /**
   * False opens only what exists: a missing file is `InfrastructureNotFoundError`, and a namespace
   * that is not registered stays so and answers `NamespaceNotFoundError`. Memory always begins with
   * its namespace. @default true
   */
  readonly create?: boolean;
  /** Recorded in audit events when a call names none. */
  readonly principal?: string;
  /** Whether usage is summed into windows; memory and SQLite only. @default true */
  readonly recordUsage?: boolean;
}

/** Who makes a change, for the audit trail. */
export interface By {
  readonly principal?: string;
}

/** Which part of a list. */
export interface Paging {
  /** @default 100 */
  readonly limit?: number;
  readonly cursor?: string;
}

/** Which windows; `entityId` or `resource` is required. */
export interface UsageQuery {
  readonly entityId?: string;
  readonly resource?: string;
  /** @default "hourly" */
  readonly window?: UsageWindow;
  /** Windows with `start ≤ windowStart < end`. */
  readonly start?: Date;
  readonly end?: Date;
}

/** What describes an entity when it is created. */
export interface CreateEntityOptions extends By {
  /** @default the id */
  readonly name?: string;
  readonly parentId?: string;
  /** Whether calls of the entity also take from its parent. @default false */
  readonly cascade?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** What is stored beside the system limits; an omitted option keeps its stored value. */
export interface SystemDefaultsOptions extends By {
  readonly onUnavailable?: OnUnavailable;
  readonly auditRetentionDays?: number;
  readonly usageRetentionDays?: number;
}

/** A store of limits, balances, usage and audit for one namespace. */
export interface Repository extends RepositoryPort, AsyncDisposable {
  createEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
  getEntity(entityId: string): Promise<Entity | undefined>;
  getChildren(parentId: string): Promise<readonly Entity[]>;
  listEntities(options?: Paging): Promise<Page<Entity>>;
  /**
   * Deletes the entity, its limits and its buckets; usage and audit stay until their retention
   * ends.
   */
  deleteEntity(entityId: string, options?: By): Promise<void>;

  setLimits(
    entityId: string,
    limits: readonly Limit[],
    options?: { readonly resource?: string } & By,
  ): Promise<void>;
  getLimits(entityId: string, options?: { readonly resource?: string }): Promise<readonly Limit[]>;
  deleteLimits(entityId: string, options?: { readonly resource?: string } & By): Promise<void>;
  setResourceDefaults(resource: string, limits: readonly Limit[], options?: By): Promise<void>;
  getResourceDefaults(resource: string): Promise<readonly Limit[]>;
  deleteResourceDefaults(resource: string, options?: By): Promise<void>;
  setSystemDefaults(limits: readonly Limit[], options?: SystemDefaultsOptions): Promise<void>;
  getSystemDefaults(): Promise<SystemDefaults>;
  deleteSystemDefaults(options?: By): Promise<void>;
  listResourcesWithDefaults(): Promise<readonly string[]>;
  listEntitiesWithCustomLimits(resource: string, options?: Paging): Promise<Page<string>>;
  listResourcesWithEntityConfigs(): Promise<readonly string[]>;
  resolveLimits(entityId: string, resource: string): Promise<ResolvedLimits | undefined>;
  invalidateConfigCache(): Promise<void>;
  getCacheStats(): CacheStats;
  getStatistics(): RepositoryStatistics;

  getBuckets(
    entityId: string,
    options?: { readonly resource?: string },
  ): Promise<readonly BucketState[]>;
  /**
   * Splits a bucket ahead of a load that is known to come; answers how many shards it has. Only on
   * backends whose buckets have shards.
   */
  splitBucket?(
    entityId: string,
    resource: string,
    options: { readonly shards: number },
  ): Promise<number>;
  getResourceCapacity(
    resource: string,
    limitName: string,
    options?: { readonly parentsOnly?: boolean },
  ): Promise<ResourceCapacity>;
  getUsageSnapshots(query: UsageQuery & Paging): Promise<Page<UsageSnapshot>>;
  getUsageSummary(query: UsageQuery): Promise<UsageSummary>;
  /** Newest first. */
  getAuditEvents(entityId: string, options?: Paging): Promise<Page<AuditEvent>>;

  readonly namespaceName: string;
  readonly namespaceId: string;
  /** A repository for another namespace of the same store; closing it does nothing. */
  namespace(
    name: string,
    options?: { readonly onUnavailable?: OnUnavailable; readonly bucketTtlMultiplier?: number },
  ): Promise<Repository>;
  registerNamespace(name: string): Promise<string>;
  registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
  getNamespace(name: string): Promise<NamespaceInfo | undefined>;
  listNamespaces(): Promise<readonly NamespaceInfo[]>;
  deleteNamespace(name: string): Promise<void>;
  recoverNamespace(namespaceId: string): Promise<string>;
  /** Namespaces that are deleted or half purged. */
  listOrphanNamespaces(): Promise<readonly NamespaceInfo[]>;
  purgeNamespace(
    namespaceId: string,
    options?: {
      readonly onProgress?: (deletedItems: number) => void;
      readonly signal?: AbortSignal;
    },
  ): Promise<void>;

  getProvisionerState(): Promise<ProvisionerState>;
  /** Refused when the stored revision is not `state.revision`; stores `revision + 1`. */
  putProvisionerState(state: ProvisionerState): Promise<void>;
  getVersionRecord(): Promise<VersionRecord | undefined>;
  setVersionRecord(record: {
    readonly schemaVersion: string;
    readonly lambdaVersion?: string;
    readonly clientMinVersion?: string;
    readonly updatedBy?: string;
  }): Promise<void>;

  ping(): Promise<boolean>;
  readonly capabilities: BackendCapabilities;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
