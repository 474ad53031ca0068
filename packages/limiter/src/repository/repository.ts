import type { AuditEvent } from "../core/audit.ts";
import type { Entity, EntityChange } from "../core/entity.ts";
import type { Limit } from "../core/limit.ts";
import type { NamespaceInfo } from "../core/namespace.ts";
import type { OnUnavailable, ResolvedLimits } from "../core/bucket/policy.ts";
import type { UsageSnapshot, UsageSummary, UsageWindow } from "../core/usage.ts";
import type { RepositoryPort } from "./port.ts";
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
  /**
   * How much of `totalCapacity` belongs to entities that others cascade into. Calls of their
   * children need it too, so it is no capacity on top of theirs.
   */
  readonly cascadedCapacity: number;
  /** How much of `totalAvailable` belongs to entities that others cascade into. */
  readonly cascadedAvailable: number;
  readonly entities: readonly EntityCapacity[];
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

/** What changes of an entity: at least one field. What is left out stays as it is. */
export interface UpdateEntityOptions extends EntityChange, By {}

/** What is stored besides the system limits. An omitted option keeps its stored value. */
export interface SystemDefaultsOptions extends By {
  readonly onUnavailable?: OnUnavailable;
  readonly auditRetentionDays?: number;
  readonly usageRetentionDays?: number;
}

/** Limits, balances, usage and audit events of one namespace. */
export interface Repository extends RepositoryPort, AsyncDisposable {
  /**
   * Creates an entity. Throws `EntityExistsError`, or `EntityNotFoundError` for an unknown parent.
   */
  createEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
  /**
   * Creates an entity unless it exists, and returns it. One that exists is returned as it is
   * stored, even if `options` describe it differently; `updateEntity` changes it.
   *
   * @example
   * await repository.ensureEntity("project-1");
   * await repository.ensureEntity("key-1", { parentId: "project-1", cascade: true });
   */
  ensureEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
  /**
   * Changes the name, the metadata or the cascade of an entity, and returns it. What is left out
   * stays as it is, also if somebody else changes it at the same time. `metadata` replaces all
   * metadata. Throws `EntityNotFoundError`.
   *
   * @example
   * const { name } = await repository.updateEntity("key-1", { name: "Ada's key" });
   */
  updateEntity(entityId: string, options: UpdateEntityOptions): Promise<Entity>;
  /** The entity, or undefined if there is none with this id. */
  getEntity(entityId: string): Promise<Entity | undefined>;
  /** The entities with this parent. */
  getChildren(parentId: string): Promise<readonly Entity[]>;
  /** All entities, page by page. */
  listEntities(options?: Paging): Promise<Page<Entity>>;
  /**
   * Deletes the entity, its limits and its buckets; usage and audit stay until their retention
   * ends.
   */
  deleteEntity(entityId: string, options?: By): Promise<void>;

  /**
   * Stores limits of an entity, for one resource or by default for all of its resources. They hide
   * the levels below, unless they inherit.
   *
   * @example
   * // Raises one limit; the others stay as the levels below say.
   * await repository.setLimits("key-1", [Limit.perMinute("rpm", 600)], { inherit: true });
   */
  setLimits(
    entityId: string,
    limits: readonly Limit[],
    options?: { readonly resource?: string; readonly inherit?: boolean } & By,
  ): Promise<void>;
  /** The limits stored for an entity; empty if there are none at this level. */
  getLimits(entityId: string, options?: { readonly resource?: string }): Promise<readonly Limit[]>;
  /** Deletes limits of an entity. Does nothing if there are none. */
  deleteLimits(entityId: string, options?: { readonly resource?: string } & By): Promise<void>;
  /**
   * Stores the limits of all entities on a resource. They hide the system's, unless they inherit.
   *
   * @example
   * await repository.setResourceDefaults("gpt-4", [Limit.perMinute("rpm", 60)], { inherit: true });
   */
  setResourceDefaults(
    resource: string,
    limits: readonly Limit[],
    options?: { readonly inherit?: boolean } & By,
  ): Promise<void>;
  /** The limits stored for a resource; empty if there are none. */
  getResourceDefaults(resource: string): Promise<readonly Limit[]>;
  /** Deletes the limits of a resource. Does nothing if there are none. */
  deleteResourceDefaults(resource: string, options?: By): Promise<void>;
  /** Stores the limits of all entities on all resources, and settings of the system level. */
  setSystemDefaults(limits: readonly Limit[], options?: SystemDefaultsOptions): Promise<void>;
  /** The limits and settings of the system level. */
  getSystemDefaults(): Promise<SystemDefaults>;
  /** Deletes the limits and settings of the system level. */
  deleteSystemDefaults(options?: By): Promise<void>;
  /** The resources that have limits of their own. */
  listResourcesWithDefaults(): Promise<readonly string[]>;
  /** The entities that have limits of their own on a resource, page by page. */
  listEntitiesWithCustomLimits(resource: string, options?: Paging): Promise<Page<string>>;
  /** The resources on which some entity has limits of its own. */
  listResourcesWithEntityConfigs(): Promise<readonly string[]>;
  /**
   * The limits that apply to an entity on a resource, with their levels; undefined if no level has
   * any.
   *
   * @example
   * const resolved = await repository.resolveLimits("key-1", "gpt-4");
   * resolved?.sources["tpm"]; // "system"
   */
  resolveLimits(entityId: string, resource: string): Promise<ResolvedLimits | undefined>;
  /** Empties the cache of stored limits. */
  invalidateConfigCache(): Promise<void>;
  /** Counters of the cache of stored limits. */
  getCacheStats(): CacheStats;
  /** Counters of the requests to the store. */
  getStatistics(): RepositoryStatistics;

  /** The stored buckets of an entity, one entry for each limit. */
  getBuckets(
    entityId: string,
    options?: { readonly resource?: string },
  ): Promise<readonly BucketState[]>;
  /**
   * Splits a bucket into at least `shards` shards, ahead of an expected load; returns the actual
   * count. Only on backends whose buckets have shards.
   */
  splitBucket?(
    entityId: string,
    resource: string,
    options: { readonly shards: number },
  ): Promise<number>;
  /**
   * Merges a bucket into at most `shards` shards, when it needs them no longer; returns the actual
   * count. Buckets that are calm for some minutes are merged without it. Only on backends whose
   * buckets have shards.
   */
  mergeBucket?(
    entityId: string,
    resource: string,
    options: { readonly shards: number },
  ): Promise<number>;
  /** How much of one limit is left on a resource, in total and for each entity. */
  getResourceCapacity(
    resource: string,
    limitName: string,
    options?: { readonly parentsOnly?: boolean },
  ): Promise<ResourceCapacity>;
  /** Usage by window, oldest first. */
  getUsageSnapshots(query: UsageQuery & Paging): Promise<UsagePage>;
  /** The sum of the usage in several windows. */
  getUsageSummary(query: UsageQuery): Promise<UsageSummary>;
  /** The audit events of an entity, or of a pseudo entity such as `$SYSTEM`, newest first. */
  getAuditEvents(entityId: string, options?: Paging): Promise<Page<AuditEvent>>;

  readonly namespaceName: string;
  readonly namespaceId: string;
  /** A repository for another namespace of the same store. Closing it has no effect. */
  namespace(
    name: string,
    options?: { readonly onUnavailable?: OnUnavailable; readonly bucketTtlMultiplier?: number },
  ): Promise<Repository>;
  /** Creates a namespace if there is none with this name. Returns its id. */
  registerNamespace(name: string): Promise<string>;
  /** Creates several namespaces. Returns their ids by name. */
  registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
  /** The active namespace with this name; undefined if there is none. */
  getNamespace(name: string): Promise<NamespaceInfo | undefined>;
  /** All active namespaces. */
  listNamespaces(): Promise<readonly NamespaceInfo[]>;
  /** Deletes a namespace and frees its name. Its data is kept until it is purged. */
  deleteNamespace(name: string): Promise<void>;
  /** Makes a deleted namespace active again. Returns its name. */
  recoverNamespace(namespaceId: string): Promise<string>;
  /** Namespaces that were deleted, or whose purge was interrupted. */
  listOrphanNamespaces(): Promise<readonly NamespaceInfo[]>;
  /** Removes all data of a deleted namespace. An interrupted purge can be resumed. */
  purgeNamespace(
    namespaceId: string,
    options?: {
      readonly onProgress?: (deletedItems: number) => void;
      readonly signal?: AbortSignal;
    },
  ): Promise<void>;

  /** What declared limits manage in this namespace. */
  getProvisionerState(): Promise<ProvisionerState>;
  /** Stores `revision + 1`. Throws if the stored revision is not `state.revision`. */
  putProvisionerState(state: ProvisionerState): Promise<void>;
  /** The versions that wrote the stored data; undefined if none were recorded. */
  getVersionRecord(): Promise<VersionRecord | undefined>;
  /** Records the versions that write the stored data. */
  setVersionRecord(record: {
    readonly schemaVersion: string;
    readonly lambdaVersion?: string;
    readonly clientMinVersion?: string;
    readonly updatedBy?: string;
  }): Promise<void>;

  /** Whether the store responds. */
  ping(): Promise<boolean>;
  /** What this backend can do. */
  readonly capabilities: BackendCapabilities;
  /**
   * Closes the repository and ends waiting calls; every later operation throws
   * `RateLimiterUnavailable`. A repository made with `namespace()` leaves the store open.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
