import type { AuditEvent } from "../../core/audit.ts";
import type { LimitStatus } from "../../core/bucket/decision.ts";
import type { Entity } from "../../core/entity.ts";
import { NamespaceNotFoundError, RateLimiterUnavailable } from "../../core/errors.ts";
import { namespaceName as checkNamespaceName } from "../../core/identifiers.ts";
import type { Limit } from "../../core/limit.ts";
import { NO_NAMESPACE, type NamespaceInfo } from "../../core/namespace.ts";
import type { OnUnavailable, ResolvedLimits, StoredLevel } from "../../core/bucket/policy.ts";
import type { UsageSummary } from "../../core/usage.ts";
import type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "../port.ts";
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
  Repository,
  RepositoryStatistics,
  ResourceBucket,
  ResourceBucketsOptions,
  ResourceCapacity,
  SetDefaultsOptions,
  SetLimitsOptions,
  SystemDefaults,
  SystemDefaultsOptions,
  UpdateEntityOptions,
  UsagePage,
  UsageQuery,
  VersionRecord,
} from "../repository.ts";
import type { BucketStore } from "../store.ts";
import type { Clock } from "../system-clock.ts";
import * as buckets from "./buckets.ts";
import { CurrentContext, Shared, type Context, type Scope } from "./context.ts";
import * as entities from "./entities.ts";
import { checkKnown } from "./known-options.ts";
import * as limits from "./limits.ts";
import * as namespaces from "./namespaces.ts";
import * as records from "./records.ts";
import * as reports from "./reports.ts";
import { mergeBucket, splitBucket } from "./shards.ts";

export type { Scope } from "./context.ts";

/**
 * The public surface on top of any store. It decides nothing: each method checks its input and
 * calls the store or the cache.
 */
export class StoreRepository implements Repository {
  readonly namespaceName: string;
  readonly clock: Clock;
  readonly splitBucket?: NonNullable<Repository["splitBucket"]>;
  readonly mergeBucket?: NonNullable<Repository["mergeBucket"]>;
  readonly #current: CurrentContext;
  readonly #shared: Shared;
  /** Whether `close` closes the store. Repositories made with `namespace()` leave it open. */
  readonly #isOwner: boolean;

  constructor(scope: Scope, shared?: Shared) {
    this.#shared = shared ?? new Shared();
    this.#isOwner = shared === undefined;
    this.#current = new CurrentContext(scope, this.#shared);
    this.clock = this.#context.clock;
    this.namespaceName = scope.namespaceName;
    if (this.#context.data.buckets.split !== undefined)
      this.splitBucket = async (entityId, resource, options) =>
        splitBucket(await this.#active(), entityId, resource, options);
    if (this.#context.data.buckets.merge !== undefined)
      this.mergeBucket = async (entityId, resource, options) =>
        mergeBucket(await this.#active(), entityId, resource, options);
  }

  get closed(): AbortSignal {
    return this.#shared.closed;
  }

  /** The id of the namespace. It changes if the store is lost and created again. */
  get namespaceId(): string {
    return this.#context.namespaceId;
  }

  get lastOnUnavailable(): OnUnavailable | undefined {
    return this.#context.policies.lastOnUnavailable;
  }

  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome> {
    return this.#whenFound(() => this.#buckets().consume(request, extending));
  }

  charge(request: ConsumeRequest): MaybePromise<void> {
    return this.#whenFound(() => this.#buckets().charge(request));
  }

  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void> {
    return this.#buckets().settle(receipt, deltas);
  }

  knowsLimit(entityId: string, resource: string, limitName: string): boolean {
    return this.#context.policies.knows(entityId, resource, limitName);
  }

  giveBack(receipt: Receipt): MaybePromise<void> {
    return this.#buckets().giveBack(receipt);
  }

  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]> {
    return this.#whenFound(() => this.#buckets().read(request));
  }

  remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]> {
    return this.#buckets().remembered(receipt);
  }

  async createEntity(entityId: string, options: CreateEntityOptions = {}): Promise<Entity> {
    checkKnown("createEntity", options);
    return entities.createEntity(await this.#active(), entityId, options);
  }

  async ensureEntity(entityId: string, options: CreateEntityOptions = {}): Promise<Entity> {
    checkKnown("ensureEntity", options);
    return entities.ensureEntity(await this.#active(), entityId, options);
  }

  async updateEntity(entityId: string, options: UpdateEntityOptions = {}): Promise<Entity> {
    return entities.updateEntity(await this.#active(), entityId, options);
  }

  async getEntity(entityId: string): Promise<Entity | undefined> {
    return entities.getEntity(await this.#active(), entityId);
  }

  async getChildren(parentId: string): Promise<readonly Entity[]> {
    return entities.getChildren(await this.#active(), parentId);
  }

  async listEntities(options: Paging = {}): Promise<Page<Entity>> {
    checkKnown("listEntities", options);
    return entities.listEntities(await this.#active(), options);
  }

  async deleteEntity(entityId: string, options: DeleteEntityOptions = {}): Promise<DeletedEntity> {
    checkKnown("deleteEntity", options);
    return entities.deleteEntity(await this.#active(), entityId, options);
  }

  async setLimits(
    entityId: string,
    list: readonly Limit[],
    options: SetLimitsOptions = {},
  ): Promise<void> {
    checkKnown("setLimits", options);
    return limits.setLimits(await this.#active(), entityId, list, options);
  }

  async getLimits(entityId: string, options: LimitsOptions = {}): Promise<readonly Limit[]> {
    checkKnown("getLimits", options);
    return limits.getLimits(await this.#active(), entityId, options);
  }

  async getLevel(level: LevelName): Promise<StoredLevel | undefined> {
    return limits.getLevel(await this.#active(), level);
  }

  async batchGetLevels(
    levels: readonly LevelName[],
  ): Promise<readonly (StoredLevel | undefined)[]> {
    return limits.batchGetLevels(await this.#active(), levels);
  }

  async deleteLimits(entityId: string, options: LimitsOptions & By = {}): Promise<void> {
    checkKnown("deleteLimits", options);
    return limits.deleteLimits(await this.#active(), entityId, options);
  }

  async setResourceDefaults(
    resource: string,
    list: readonly Limit[],
    options: SetDefaultsOptions = {},
  ): Promise<void> {
    checkKnown("setResourceDefaults", options);
    return limits.setResourceDefaults(await this.#active(), resource, list, options);
  }

  async getResourceDefaults(resource: string): Promise<readonly Limit[]> {
    return limits.getResourceDefaults(await this.#active(), resource);
  }

  async deleteResourceDefaults(resource: string, options: By = {}): Promise<void> {
    checkKnown("deleteResourceDefaults", options);
    return limits.deleteResourceDefaults(await this.#active(), resource, options);
  }

  async setSystemDefaults(
    list: readonly Limit[] | undefined,
    options: SystemDefaultsOptions = {},
  ): Promise<void> {
    checkKnown("setSystemDefaults", options);
    return limits.setSystemDefaults(await this.#active(), list, options);
  }

  async getSystemDefaults(): Promise<SystemDefaults> {
    return limits.getSystemDefaults(await this.#active());
  }

  async deleteSystemDefaults(options: DeleteSystemDefaultsOptions = {}): Promise<void> {
    checkKnown("deleteSystemDefaults", options);
    return limits.deleteSystemDefaults(await this.#active(), options);
  }

  async listResourcesWithDefaults(): Promise<readonly string[]> {
    return (await this.#active()).data.limits.resourcesWithDefaults();
  }

  async listEntitiesWithCustomLimits(
    resource: string,
    options: Paging = {},
  ): Promise<Page<string>> {
    checkKnown("listEntitiesWithCustomLimits", options);
    return limits.listEntitiesWithCustomLimits(await this.#active(), resource, options);
  }

  async listResourcesWithEntityConfigs(): Promise<readonly string[]> {
    return (await this.#active()).data.limits.resourcesWithEntityLimits();
  }

  async resolveLimits(entityId: string, resource: string): Promise<ResolvedLimits | undefined> {
    return limits.resolveLimits(await this.#active(), entityId, resource);
  }

  async invalidateConfigCache(): Promise<void> {
    this.#open().policies.clear();
  }

  getCacheStats(): CacheStats {
    return this.#context.policies.stats();
  }

  getStatistics(): RepositoryStatistics {
    return this.#context.store.statistics();
  }

  async getBuckets(
    entityId: string,
    options: BucketsOptions = {},
  ): Promise<readonly BucketState[]> {
    checkKnown("getBuckets", options);
    return buckets.getBuckets(await this.#active(), entityId, options);
  }

  async getBucket(
    entityId: string,
    resource: string,
    options: BucketOptions = {},
  ): Promise<readonly BucketState[] | undefined> {
    checkKnown("getBucket", options);
    await this.#current.findAgain();
    const checksItself = this.#buckets().get !== undefined;
    const context = checksItself ? this.#context : await this.#active();
    return buckets.getBucket(context, entityId, resource, options);
  }

  async batchGetBuckets(
    entityIds: readonly string[],
    options: BucketsOptions = {},
  ): Promise<ReadonlyMap<string, readonly BucketState[]>> {
    checkKnown("batchGetBuckets", options);
    return buckets.batchGetBuckets(await this.#active(), entityIds, options);
  }

  async getResourceBuckets(
    resource: string,
    options: ResourceBucketsOptions = {},
  ): Promise<Page<ResourceBucket>> {
    checkKnown("getResourceBuckets", options);
    return buckets.getResourceBuckets(await this.#active(), resource, options);
  }

  async getResourceCapacity(
    resource: string,
    limitName: string,
    options: CapacityOptions = {},
  ): Promise<ResourceCapacity> {
    checkKnown("getResourceCapacity", options);
    return buckets.getResourceCapacity(await this.#active(), resource, limitName, options);
  }

  async getUsageSnapshots(query: UsageQuery & Paging): Promise<UsagePage> {
    checkKnown("getUsageSnapshots", query);
    return reports.getUsageSnapshots(await this.#active(), query);
  }

  async getUsageSummary(query: UsageQuery): Promise<UsageSummary> {
    checkKnown("getUsageSummary", query);
    return reports.getUsageSummary(await this.#active(), query);
  }

  async getAuditEvents(entityId: string, options: Paging = {}): Promise<Page<AuditEvent>> {
    checkKnown("getAuditEvents", options);
    return reports.getAuditEvents(await this.#active(), entityId, options);
  }

  async namespace(name: string, options: NamespaceOptions = {}): Promise<Repository> {
    checkKnown("namespace", options);
    const info = await this.getNamespace(name);
    if (info?.status !== "active") throw new NamespaceNotFoundError(name);
    const scope = {
      ...this.#current.scope,
      namespaceName: info.name,
      namespaceId: info.namespaceId,
    };
    const scoped = new StoreRepository(scope, this.#shared);
    await limits.setSettings(scoped.#context, options);
    return scoped;
  }

  async registerNamespace(name: string): Promise<string> {
    return namespaces.registerNamespace(await this.#administrative(), name);
  }

  async registerNamespaces(names: readonly string[]): Promise<Readonly<Record<string, string>>> {
    return namespaces.registerNamespaces(await this.#administrative(), names);
  }

  async getNamespace(name: string): Promise<NamespaceInfo | undefined> {
    return this.#open().store.namespaces.byName(checkNamespaceName(name));
  }

  async listNamespaces(): Promise<readonly NamespaceInfo[]> {
    return (await this.#open().store.namespaces.list()).filter(({ status }) => status === "active");
  }

  async deleteNamespace(name: string): Promise<void> {
    return namespaces.deleteNamespace(this.#open(), name);
  }

  async recoverNamespace(namespaceId: string): Promise<string> {
    return namespaces.recoverNamespace(this.#open(), namespaceId);
  }

  async listOrphanNamespaces(): Promise<readonly NamespaceInfo[]> {
    return namespaces.listOrphanNamespaces(this.#open().store);
  }

  async purgeNamespace(namespaceId: string, options: PurgeOptions = {}): Promise<void> {
    checkKnown("purgeNamespace", options);
    return namespaces.purgeNamespace(this.#open(), namespaceId, options);
  }

  async getProvisionerState(): Promise<ProvisionerState> {
    return (await (await this.#active()).data.provisioner.get()) ?? records.noProvisionerState();
  }

  async putProvisionerState(state: ProvisionerState): Promise<void> {
    return records.putProvisionerState(await this.#active(), state);
  }

  async getVersionRecord(): Promise<VersionRecord | undefined> {
    return this.#open().store.versions.get();
  }

  async setVersionRecord(record: NewVersionRecord): Promise<void> {
    return records.setVersionRecord(this.#open(), record);
  }

  async ping(): Promise<boolean> {
    return this.#shared.closedReason === undefined && this.#context.store.ping();
  }

  get capabilities(): BackendCapabilities {
    return this.#context.store.capabilities;
  }

  async close(): Promise<void> {
    if (!this.#isOwner) return;
    this.#shared.close(new RateLimiterUnavailable("The repository was closed. Open it again."));
    await this.#context.store.close();
  }

  /** The same as `close`. @example await using repository = new MemoryRepository(); */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /**
   * The context for operations on all namespaces. It works for a repository without a namespace,
   * but throws if the repository's namespace was deleted.
   */
  async #administrative(): Promise<Context> {
    await this.#current.findAgain();
    return this.namespaceId === NO_NAMESPACE ? this.#open() : this.#active();
  }

  /** The context of an active namespace. Operations on a deleted one throw. */
  async #active(): Promise<Context> {
    await this.#current.findAgain();
    const context = this.#open();
    const info = await context.store.namespaces.byId(this.namespaceId);
    if (info?.status !== "active") throw new NamespaceNotFoundError(this.namespaceName);
    return context;
  }

  /** The buckets. They check that the namespace is active themselves, if it has an id. */
  #buckets(): BucketStore {
    const { data } = this.#open();
    if (this.namespaceId === NO_NAMESPACE) throw new NamespaceNotFoundError(this.namespaceName);
    return data.buckets;
  }

  #whenFound<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    const finding = this.#current.findAgain();
    return finding === undefined ? work() : finding.then(work);
  }

  get #context(): Context {
    return this.#current.context;
  }

  /** The context, unless the repository was closed: then every operation throws the same error. */
  #open(): Context {
    if (this.#shared.closedReason !== undefined) throw this.#shared.closedReason;
    return this.#context;
  }
}
