import type { AuditEvent } from "../core/audit.ts";
import type { Entity } from "../core/entity.ts";
import type { Limit } from "../core/limit.ts";
import type { NamespaceInfo } from "../core/namespace.ts";
import type { ResolvedLimits, StoredLevel } from "../core/bucket/policy.ts";
import type { AsyncDisposable } from "./platform-types.ts";
import type { UsageSummary } from "../core/usage.ts";
import type {
  BackendCapabilities,
  BucketOptions,
  BucketsOptions,
  BucketState,
  By,
  CacheStats,
  CapacityOptions,
  CreateEntityOptions,
  DeletedEntity,
  DeleteEntityOptions,
  DeleteSystemDefaultsOptions,
  LevelName,
  LimitsOptions,
  NamespaceOptions,
  NewVersionRecord,
  Page,
  Paging,
  ProvisionerState,
  PurgeOptions,
  RepositoryStatistics,
  ResourceBucket,
  ResourceBucketsOptions,
  ResourceCapacity,
  SetDefaultsOptions,
  SetLimitsOptions,
  ShardsOptions,
  SystemDefaults,
  SystemDefaultsOptions,
  UpdateEntityOptions,
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
   * @example await repository.createEntity("key-1", { parentId: "project-1", cascade: true });
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
   * stays as it is, even if another caller changes it at the same time. `metadata` replaces all
   * metadata. Throws `EntityNotFoundError`.
   *
   * @example
   * const { name } = await repository.updateEntity("key-1", { name: "Ada's key" });
   */
  updateEntity(entityId: string, options: UpdateEntityOptions): Promise<Entity>;
  /**
   * The entity, or undefined if there is none with this id.
   * @example const entity = await repository.getEntity("key-1");
   */
  getEntity(entityId: string): Promise<Entity | undefined>;
  /**
   * The entities with this parent.
   * @example const keys = await repository.getChildren("project-1");
   */
  getChildren(parentId: string): Promise<readonly Entity[]>;
  /**
   * All entities, page by page.
   * @example const { items, cursor } = await repository.listEntities({ limit: 50 });
   */
  listEntities(options?: Paging): Promise<Page<Entity>>;
  /**
   * Deletes the entity, its limits and its buckets; usage and audit stay until their retention
   * ends. With `history`, they are removed too, also of an entity that is gone already, so a
   * deletion that was interrupted can be repeated. Returns what was removed.
   * @example await repository.deleteEntity("key-1", { principal: "admin" });
   * @example const { archivedUnder } = await repository.deleteEntity("key-1", { history: true });
   */
  deleteEntity(entityId: string, options?: DeleteEntityOptions): Promise<DeletedEntity>;

  /**
   * Stores limits of an entity, for one resource or by default for all of its resources. They
   * replace limits of the same name at the levels below, and with `inherit: false` all of those.
   *
   * @example
   * // Raises one limit; the others stay as the levels below say.
   * await repository.setLimits("key-1", [Limit.perMinute("rpm", 600)]);
   */
  setLimits(entityId: string, limits: readonly Limit[], options?: SetLimitsOptions): Promise<void>;
  /**
   * The limits stored for an entity; empty if there are none at this level.
   * @example const limits = await repository.getLimits("key-1", { resource: "gpt-4" });
   */
  getLimits(entityId: string, options?: LimitsOptions): Promise<readonly Limit[]>;
  /**
   * What one level stores, `inherit` included; undefined if it has no limits.
   *
   * @example
   * const level = await repository.getLevel({ resource: "gpt-4" });
   * level?.inherit; // true
   */
  getLevel(level: LevelName): Promise<StoredLevel | undefined>;
  /**
   * What many levels store, at most 10,000, in the order of their names. A level that is named
   * twice is read once.
   * @example const [system, model] = await repository.batchGetLevels([{}, { resource: "gpt-4" }]);
   */
  batchGetLevels(levels: readonly LevelName[]): Promise<readonly (StoredLevel | undefined)[]>;
  /**
   * Deletes limits of an entity. Does nothing if there are none.
   * @example await repository.deleteLimits("key-1", { resource: "gpt-4" });
   */
  deleteLimits(entityId: string, options?: LimitsOptions & By): Promise<void>;
  /**
   * Stores the limits of all entities on a resource. They replace those of the system that have the
   * same name, and with `inherit: false` all of them.
   *
   * @example
   * await repository.setResourceDefaults("gpt-4", [Limit.perMinute("rpm", 60)]);
   */
  setResourceDefaults(
    resource: string,
    limits: readonly Limit[],
    options?: SetDefaultsOptions,
  ): Promise<void>;
  /**
   * The limits stored for a resource; empty if there are none.
   * @example const limits = await repository.getResourceDefaults("gpt-4");
   */
  getResourceDefaults(resource: string): Promise<readonly Limit[]>;
  /**
   * Deletes the limits of a resource. Does nothing if there are none.
   * @example await repository.deleteResourceDefaults("gpt-4");
   */
  deleteResourceDefaults(resource: string, options?: By): Promise<void>;
  /**
   * Stores the limits of all entities on all resources, and settings of the system level. With
   * `undefined` instead of limits, it stores settings only.
   * @example
   * await repository.setSystemDefaults([Limit.perMinute("rpm", 60)], { onUnavailable: "allow" });
   */
  setSystemDefaults(
    limits: readonly Limit[] | undefined,
    options?: SystemDefaultsOptions,
  ): Promise<void>;
  /**
   * The limits and settings of the system level.
   * @example const { limits, usageRetentionDays } = await repository.getSystemDefaults();
   */
  getSystemDefaults(): Promise<SystemDefaults>;
  /**
   * Deletes the limits and settings of the system level, or its limits only.
   * @example await repository.deleteSystemDefaults({ keepSettings: true });
   */
  deleteSystemDefaults(options?: DeleteSystemDefaultsOptions): Promise<void>;
  /**
   * The resources that have limits of their own.
   * @example const resources = await repository.listResourcesWithDefaults();
   */
  listResourcesWithDefaults(): Promise<readonly string[]>;
  /**
   * The entities that have limits of their own on a resource, page by page.
   * @example const { items } = await repository.listEntitiesWithCustomLimits("gpt-4");
   */
  listEntitiesWithCustomLimits(resource: string, options?: Paging): Promise<Page<string>>;
  /**
   * The resources on which some entity has limits of its own.
   * @example const resources = await repository.listResourcesWithEntityConfigs();
   */
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
  /**
   * Empties the cache of stored limits.
   * @example await repository.invalidateConfigCache(); // after another process has changed limits
   */
  invalidateConfigCache(): Promise<void>;
  /**
   * Counters of the cache of stored limits.
   * @example const { hits, misses } = repository.getCacheStats();
   */
  getCacheStats(): CacheStats;
  /**
   * Counters of the requests to the store.
   * @example const { writes, refusalsFromMemory } = repository.getStatistics();
   */
  getStatistics(): RepositoryStatistics;

  /**
   * The stored buckets of an entity, one entry for each limit.
   * @example const states = await repository.getBuckets("key-1", { resource: "gpt-4" });
   */
  getBuckets(entityId: string, options?: BucketsOptions): Promise<readonly BucketState[]>;
  /**
   * One stored bucket, or one of its shards, with an entry for each limit; undefined if there is
   * none. On DynamoDB this reads one item, once the process knows the namespace.
   * @example const states = await repository.getBucket("key-1", "gpt-4");
   */
  getBucket(
    entityId: string,
    resource: string,
    options?: BucketOptions,
  ): Promise<readonly BucketState[] | undefined>;
  /**
   * The stored buckets of many entities, at most 10,000: one list for each, in the order of the
   * ids, empty for an entity without buckets. An id that is named twice is read once. On DynamoDB
   * a request reads 100 buckets if `resource` is given; without it, each entity takes one more.
   * @example
   * const buckets = await repository.batchGetBuckets(["key-1", "key-2"], { resource: "gpt-4" });
   * buckets.get("key-2")?.[0]?.available;
   */
  batchGetBuckets(
    entityIds: readonly string[],
    options?: BucketsOptions,
  ): Promise<ReadonlyMap<string, readonly BucketState[]>>;
  /**
   * The stored buckets of a resource with their totals and shards, by entity id, page by page. A
   * page may be empty without being the last: it holds no bucket without the `limitName`.
   * @example
   * const { items } = await repository.getResourceBuckets("gpt-4", { limitName: "tpm" });
   * items[0]?.limits[0]?.available;
   */
  getResourceBuckets(
    resource: string,
    options?: ResourceBucketsOptions,
  ): Promise<Page<ResourceBucket>>;
  /**
   * Splits a bucket into at least `shards` shards, ahead of an expected load; returns the actual
   * count. Only on backends whose buckets have shards.
   * @example await repository.splitBucket?.("key-1", "gpt-4", { shards: 4 });
   */
  splitBucket?(entityId: string, resource: string, options: ShardsOptions): Promise<number>;
  /**
   * Merges a bucket into at most `shards` shards, when it needs them no longer; returns the actual
   * count. Buckets that are calm for some minutes are merged without it. Only on backends whose
   * buckets have shards.
   * @example await repository.mergeBucket?.("key-1", "gpt-4", { shards: 1 });
   */
  mergeBucket?(entityId: string, resource: string, options: ShardsOptions): Promise<number>;
  /**
   * How much of one limit is left on a resource, in total and for each entity.
   * @example const { totalAvailable } = await repository.getResourceCapacity("gpt-4", "tpm");
   */
  getResourceCapacity(
    resource: string,
    limitName: string,
    options?: CapacityOptions,
  ): Promise<ResourceCapacity>;
  /**
   * Usage by window, oldest first.
   * @example
   * const { items } = await repository.getUsageSnapshots({ entityId: "key-1", window: "daily" });
   */
  getUsageSnapshots(query: UsageQuery & Paging): Promise<UsagePage>;
  /**
   * The sum of the usage in several windows.
   * @example const { total } = await repository.getUsageSummary({ entityId: "key-1", start });
   */
  getUsageSummary(query: UsageQuery): Promise<UsageSummary>;
  /**
   * The audit events of an entity, or of a pseudo entity such as `$SYSTEM`, newest first.
   * @example const { items } = await repository.getAuditEvents("key-1", { limit: 20 });
   */
  getAuditEvents(entityId: string, options?: Paging): Promise<Page<AuditEvent>>;

  /** The name of the namespace that this repository works in. */
  readonly namespaceName: string;
  /** The id of that namespace; empty while it is not registered. */
  readonly namespaceId: string;
  /**
   * A repository for another namespace of the same store. Closing it has no effect.
   * @example const tenant = await repository.namespace("tenant-b", { onUnavailable: "allow" });
   */
  namespace(name: string, options?: NamespaceOptions): Promise<Repository>;
  /**
   * Creates a namespace if there is none with this name. Returns its id.
   * @example const namespaceId = await repository.registerNamespace("tenant-b");
   */
  registerNamespace(name: string): Promise<string>;
  /**
   * Creates several namespaces. Returns their ids by name.
   * @example const ids = await repository.registerNamespaces(["tenant-a", "tenant-b"]);
   */
  registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
  /**
   * The active namespace with this name; undefined if there is none.
   * @example const info = await repository.getNamespace("tenant-b");
   */
  getNamespace(name: string): Promise<NamespaceInfo | undefined>;
  /**
   * All active namespaces.
   * @example const names = (await repository.listNamespaces()).map(({ name }) => name);
   */
  listNamespaces(): Promise<readonly NamespaceInfo[]>;
  /**
   * Deletes a namespace and frees its name. Its data is kept until it is purged.
   * @example await repository.deleteNamespace("tenant-b");
   */
  deleteNamespace(name: string): Promise<void>;
  /**
   * Makes a deleted namespace active again. Returns its name.
   * @example const name = await repository.recoverNamespace(namespaceId);
   */
  recoverNamespace(namespaceId: string): Promise<string>;
  /**
   * Namespaces that were deleted, or whose purge was interrupted.
   * @example const [orphan] = await repository.listOrphanNamespaces();
   */
  listOrphanNamespaces(): Promise<readonly NamespaceInfo[]>;
  /**
   * Removes all data of a deleted namespace. An interrupted purge can be resumed; purging a
   * namespace that is gone removes writes that were under way when it was purged.
   * @example await repository.purgeNamespace(namespaceId, { signal: AbortSignal.timeout(60_000) });
   */
  purgeNamespace(namespaceId: string, options?: PurgeOptions): Promise<void>;

  /**
   * What declared limits manage in this namespace.
   * @example const { revision } = await repository.getProvisionerState();
   */
  getProvisionerState(): Promise<ProvisionerState>;
  /**
   * Stores `revision + 1`. Throws `ApplyConflictError` if the stored revision is not
   * `state.revision`.
   * @example await repository.putProvisionerState({ ...state, managedSystem: true });
   */
  putProvisionerState(state: ProvisionerState): Promise<void>;
  /**
   * The versions that wrote the stored data; undefined if none were recorded.
   * @example const { schemaVersion } = (await repository.getVersionRecord()) ?? {};
   */
  getVersionRecord(): Promise<VersionRecord | undefined>;
  /**
   * Records the versions that write the stored data.
   * @example await repository.setVersionRecord({ schemaVersion: "1.0.0", updatedBy: "deploy" });
   */
  setVersionRecord(record: NewVersionRecord): Promise<void>;

  /**
   * Whether the store responds.
   * @example if (!(await repository.ping())) respond(503);
   */
  ping(): Promise<boolean>;
  /** What this backend can do. */
  readonly capabilities: BackendCapabilities;
  /**
   * Closes the repository and ends waiting calls; every later operation throws
   * `RateLimiterUnavailable`. A repository made with `namespace()` leaves the store open.
   * @example await repository.close();
   */
  close(): Promise<void>;
  /**
   * The same as `close`.
   * @example await using repository = await SqliteRepository.open("limits.db");
   */
  [Symbol.asyncDispose](): Promise<void>;
}
