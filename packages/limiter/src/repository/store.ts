/*
 * Beside this file: port.ts is what the limiter needs from a backend, repository.ts the public
 * surface, which management/ puts on top of any store; policy-cache.ts remembers stored levels, and
 * group-commit.ts lets calls on one key share a write. memory/, sqlite/ and dynamodb/ are backends
 * with the same file names.
 */
import type { AuditEvent } from "../core/audit.ts";
import type { Bucket } from "../core/bucket/bucket.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { Entity, EntityChange } from "../core/entity.ts";
import type { SupportedLimit } from "../core/supported-limits.ts";
import type { NamespaceInfo } from "../core/namespace.ts";
import type { ConfigKey, OnUnavailable, Policy } from "../core/bucket/policy.ts";
import type { UsageRow, UsageWindow } from "../core/usage.ts";
import type {
  ConsumeOutcome,
  ConsumeRequest,
  MaybePromise,
  Receipt,
  ResourceAmounts,
} from "./port.ts";
import type {
  BackendCapabilities,
  ProvisionerState,
  PurgeOptions,
  RepositoryStatistics,
  VersionRecord,
} from "./repository.ts";

/**
 * What a backend implements. `StoreRepository` builds the public surface on top: it checks input,
 * caches policies, makes audit events and translates cursors into keys, once for all backends. A
 * store receives checked values, and writes a change and its audit event together or not at all.
 */
export interface Store {
  readonly namespaces: NamespaceStore;
  readonly versions: VersionStore;
  /**
   * The data of one namespace. `policies` provides the limits that apply; the store looks them up
   * itself, so that a decision from a warm cache needs no read.
   */
  open(namespaceId: string, policies: PolicySource): NamespaceData;
  readonly capabilities: BackendCapabilities;
  statistics(): RepositoryStatistics;
  ping(): MaybePromise<boolean>;
  close(): MaybePromise<void>;
}

/** Provides the limits that apply, from the cache if possible. */
export interface PolicySource {
  /** Increases when this process changes the configuration, or reads it again. */
  readonly version: number;
  /**
   * Whether nothing has changed in this process since that version. Backends that no other process
   * writes to need to know no more. Counts as a hit.
   */
  isUnchangedSince(version: number): boolean;
  /**
   * The cached policy; `undefined` means that the cache has none, and `resolve` must read. Pass
   * what it returned before, if anything, which is returned again while it holds: looking at each
   * level took a fifteenth of a call on DynamoDB.
   */
  getCached(entityId: string, resource: string, held?: CachedPolicy): CachedPolicy | undefined;
  resolve(entityId: string, resource: string): MaybePromise<Policy | undefined>;
  /** What each of the four levels stores, strongest first, including those that do not apply. */
  levels(entityId: string, resource: string): MaybePromise<readonly (Policy | undefined)[]>;
  /** Reads the stored limits again, because a bucket shows that the cache may be stale. */
  refresh(entityId: string, resource: string): MaybePromise<Policy | undefined>;
  /** Empties the cache, because another process has changed the configuration. */
  clear(): void;
}

/** A cached result, possibly that there are no limits, and how long it is valid. */
export interface CachedPolicy {
  readonly policy: Policy | undefined;
  /** It is valid in this version only, and in this time. */
  readonly version: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Everything that belongs to one namespace. */
export interface NamespaceData {
  readonly buckets: BucketStore;
  readonly entities: EntityStore;
  readonly limits: LimitStore;
  readonly usage: UsageStore;
  readonly audit: AuditStore;
  readonly provisioner: ProvisionerStore;
}

/** A request for one page, with the key to start after. */
export interface KeyPage {
  readonly limit: number;
  readonly after: string | undefined;
}

/** One page, with the key that the next one starts after; `undefined` on the last page. */
export interface Keyed<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
}

/** One stored bucket. */
export interface StoredBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly shardCount: number;
  readonly bucket: Bucket;
}

/** The buckets of a namespace. */
export interface BucketStore {
  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
  charge(request: ConsumeRequest): MaybePromise<void>;
  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
  giveBack(receipt: Receipt): MaybePromise<void>;
  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
  remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]>;
  ofEntity(entityId: string, resource: string | undefined): MaybePromise<readonly StoredBucket[]>;
  ofResource(resource: string): MaybePromise<readonly StoredBucket[]>;
  /**
   * One shard of a bucket, for stores that can read it alone. Checks that the namespace is active.
   */
  get?(entityId: string, resource: string, shard: number): MaybePromise<StoredBucket | undefined>;
  /** The buckets of distinct entities, for stores that can read them together. */
  ofEntities?(
    entityIds: readonly string[],
    resource: string | undefined,
  ): MaybePromise<readonly StoredBucket[]>;
  /** Buckets of `limit` entities in order of their ids, for stores that can read a part. */
  ofResourcePage?(resource: string, page: KeyPage): MaybePromise<Keyed<StoredBucket>>;
  /**
   * Splits a bucket into at least `shards` shards; returns the actual count. Only on backends whose
   * buckets have shards.
   */
  split?(entityId: string, resource: string, shards: number): Promise<number>;
  /** Merges a bucket into at most `shards` shards; returns the actual count. */
  merge?(entityId: string, resource: string, shards: number): Promise<number>;
}

/**
 * The condition of a write. It is checked in the same atomic step, before all others, and even if
 * nothing is to be written; if it does not hold, the store throws `ApplyConflictError`.
 */
export interface Guard {
  /** The revision that the state of declared limits must have; 0 means that none is stored. */
  readonly ifRevision: number | undefined;
}

/** The entities of a namespace. */
export interface EntityStore {
  /** Throws `EntityExistsError`, or `EntityNotFoundError` for an unknown parent. */
  create(entity: Entity, event: AuditEvent, guard: Guard): MaybePromise<void>;
  /**
   * Changes the fields that are given, in one atomic step, so that concurrent changes of other
   * fields stay. `buildEvent` makes the event from the entity before the change. Returns the
   * changed entity, or throws `EntityNotFoundError`.
   */
  update(
    entityId: string,
    change: EntityChange,
    buildEvent: (before: Entity) => AuditEvent,
    guard: Guard,
  ): MaybePromise<Entity>;
  get(entityId: string): MaybePromise<Entity | undefined>;
  children(parentId: string): MaybePromise<readonly Entity[]>;
  list(page: KeyPage): MaybePromise<Keyed<Entity>>;
  /**
   * Deletes the record, the limits and the buckets. Throws `EntityNotFoundError` if there is
   * nothing to delete, and `ValidationError` if the entity has children. Returns the number of
   * records that were deleted.
   */
  delete(entityId: string, event: AuditEvent): MaybePromise<number>;
}

/** What the system level stores besides its limits; `undefined` where nothing is stored. */
export interface SystemSettings {
  readonly onUnavailable: OnUnavailable | undefined;
  readonly auditRetentionDays: number | undefined;
  readonly usageRetentionDays: number | undefined;
}

/** What is stored under one key; `settings` at the system level only. */
export interface StoredConfig {
  readonly limits: readonly SupportedLimit[] | undefined;
  /**
   * Whether limits of weaker levels apply too, unless this level has one of the same name. Stores
   * mark the levels that do: those of the Python zae-limiter have no mark, and replace.
   */
  readonly inherit?: boolean | undefined;
  readonly settings?: SystemSettings;
}

/** A level that stores nothing. */
export const NO_CONFIG: StoredConfig = { limits: undefined };

/** The settings of a system level that stores none. */
export const NO_SETTINGS: SystemSettings = {
  onUnavailable: undefined,
  auditRetentionDays: undefined,
  usageRetentionDays: undefined,
};

/** The system level after a change. What the change leaves undefined keeps its stored value. */
export function mergeConfig(stored: StoredConfig, wanted: StoredConfig): StoredConfig {
  const { limits, inherit } = wanted.limits === undefined ? stored : wanted;
  return {
    limits,
    inherit,
    settings: {
      onUnavailable: wanted.settings?.onUnavailable ?? stored.settings?.onUnavailable,
      auditRetentionDays:
        wanted.settings?.auditRetentionDays ?? stored.settings?.auditRetentionDays,
      usageRetentionDays:
        wanted.settings?.usageRetentionDays ?? stored.settings?.usageRetentionDays,
    },
  };
}

/** The system level after its limits were deleted and its settings kept. */
export function withoutLimits({ settings = NO_SETTINGS }: StoredConfig): StoredConfig {
  const isEmpty = Object.values(settings).every((value) => value === undefined);
  return isEmpty ? NO_CONFIG : { limits: undefined, settings };
}

/** How limits are deleted. */
export interface DeleteOptions extends Guard {
  /** At the system level: deletes the limits only. */
  readonly keepSettings: boolean;
}

/** The stored limits of a namespace. */
export interface LimitStore {
  /** One result per key, in order. Reads are consistent: they see every write that has ended. */
  read(keys: readonly ConfigKey[]): MaybePromise<readonly StoredConfig[]>;
  /**
   * Stores limits. At the system level, what is `undefined` keeps its stored value
   * (`mergeConfig`). That happens in one atomic step, because several writers may set different
   * options.
   */
  put(key: ConfigKey, config: StoredConfig, event: AuditEvent, guard: Guard): MaybePromise<void>;
  /** Returns whether there was something to delete; only then the event is written. */
  delete(key: ConfigKey, event: AuditEvent, options: DeleteOptions): MaybePromise<boolean>;
  resourcesWithDefaults(): MaybePromise<readonly string[]>;
  entitiesWithLimits(resource: string, page: KeyPage): MaybePromise<Keyed<string>>;
  resourcesWithEntityLimits(): MaybePromise<readonly string[]>;
}

/** Which usage rows to list, in order of window start, entity and resource. */
export interface UsageRange {
  readonly entityId: string | undefined;
  readonly resource: string | undefined;
  readonly window: UsageWindow;
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
}

/** The usage of a namespace, summed into windows. */
export interface UsageStore {
  rows(range: UsageRange, page: KeyPage): MaybePromise<Keyed<UsageRow>>;
  /**
   * The time up to which usage is in the rows that are read afterwards: `Infinity` if each write
   * counts itself, undefined if nothing was ever counted.
   */
  getCountedUntilMs(): MaybePromise<number | undefined>;
  /**
   * The time since which windows of this length are complete, if the backend has dropped some
   * before the end of their retention. Called after the rows are read.
   */
  completeSinceMs?(window: UsageWindow): number | undefined;
  /**
   * Removes all usage of an entity; an interrupted removal can be repeated. Returns the number of
   * records that were removed.
   */
  erase(entityId: string, options: PurgeOptions): MaybePromise<number>;
}

/** The audit events of a namespace. */
export interface AuditStore {
  /** Lists events, newest first; `after` is an event id. */
  events(entityId: string, page: KeyPage): MaybePromise<Keyed<AuditEvent>>;
  /** Records a change to something outside this namespace's own data. */
  add(event: AuditEvent): MaybePromise<void>;
  /** Removes all events of an entity, like `UsageStore.erase`. */
  erase(entityId: string, options: PurgeOptions): MaybePromise<number>;
  /** Where an archive that this store cannot reach may hold expired events of a namespace. */
  archivedUnder?(namespaceName: string): string;
}

/** What declared limits manage in a namespace. */
export interface ProvisionerStore {
  get(): MaybePromise<ProvisionerState | undefined>;
  /**
   * Stores the state if the stored revision (0 if nothing is stored) is `expected`. Returns whether
   * it was stored.
   */
  put(state: ProvisionerState, expected: number): MaybePromise<boolean>;
}

/**
 * Describes a change to a namespace. The event is filed in the namespace from which the change is
 * made, because a purged namespace could not keep it.
 */
export interface NamespaceNote {
  readonly filedIn: string;
  event(details: { readonly name: string | undefined; readonly namespaceId: string }): AuditEvent;
}

/** The namespaces of a store. */
export interface NamespaceStore {
  /**
   * Whether the methods below write the event of a note together with the change. Otherwise it is
   * filed right afterwards.
   */
  readonly filesNotes?: boolean;
  /** Returns the id of the active namespace with this name, which is created if necessary. */
  register(
    name: string,
    newId: () => string,
    nowMs: number,
    note?: NamespaceNote,
  ): MaybePromise<{ readonly namespaceId: string; readonly created: boolean }>;
  byName(name: string): MaybePromise<NamespaceInfo | undefined>;
  byId(namespaceId: string): MaybePromise<NamespaceInfo | undefined>;
  list(): MaybePromise<readonly NamespaceInfo[]>;
  /** Frees the name. Returns the id, or undefined if no active namespace has the name. */
  delete(name: string, nowMs: number, note?: NamespaceNote): MaybePromise<string | undefined>;
  /** Makes a deleted namespace active; throws `NamespaceNotFoundError` or `NamespaceStateError`. */
  recover(namespaceId: string, note?: NamespaceNote): MaybePromise<string>;
  /**
   * Removes everything; an interrupted purge can be resumed, and a purge of a namespace that is
   * gone removes what was written to it since. Throws `NamespaceStateError` if the namespace is
   * active, and returns false if there was nothing.
   */
  purge(namespaceId: string, options: PurgeOptions, note?: NamespaceNote): MaybePromise<boolean>;
}

/** The versions that wrote the stored data. */
export interface VersionStore {
  get(): MaybePromise<VersionRecord | undefined>;
  put(record: VersionRecord): MaybePromise<void>;
}
