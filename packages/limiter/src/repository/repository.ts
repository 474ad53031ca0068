import type { AuditEvent } from "../core/audit.ts";
import type { Entity } from "../core/entity.ts";
import type { Limit } from "../core/limit.ts";
import type { NamespaceInfo } from "../core/namespace.ts";
import type { OnUnavailable } from "../core/bucket/policy.ts";
import type { UsageSummary } from "../core/usage.ts";
import type {
  BackendCapabilities,
  BucketState,
  By,
  CacheStats,
  CreateEntityOptions,
  Page,
  Paging,
  ProvisionerState,
  RepositoryStatistics,
  ResolvedLimits,
  ResourceCapacity,
  SystemDefaults,
  SystemDefaultsOptions,
  UsagePage,
  UsageQuery,
  VersionRecord,
} from "./models.ts";
import type { RepositoryPort } from "./port.ts";

export type * from "./models.ts";

/** Limits, balances, usage and audit events of one namespace. */
export interface Repository extends RepositoryPort, AsyncDisposable {
  /**
   * Creates an entity. Throws `EntityExistsError`, or `EntityNotFoundError` for an unknown parent.
   */
  createEntity(entityId: string, options?: CreateEntityOptions): Promise<Entity>;
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

  /** Stores limits of an entity, for one resource or by default for all of its resources. */
  setLimits(
    entityId: string,
    limits: readonly Limit[],
    options?: { readonly resource?: string } & By,
  ): Promise<void>;
  /** The limits stored for an entity; empty if there are none at this level. */
  getLimits(entityId: string, options?: { readonly resource?: string }): Promise<readonly Limit[]>;
  /** Deletes limits of an entity. Does nothing if there are none. */
  deleteLimits(entityId: string, options?: { readonly resource?: string } & By): Promise<void>;
  /** Stores the limits of all entities on a resource. */
  setResourceDefaults(resource: string, limits: readonly Limit[], options?: By): Promise<void>;
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
  /** The limits that apply to an entity on a resource; undefined if no level has any. */
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
