import type { AuditEvent } from "../core/audit.ts";
import type { Bucket } from "../core/bucket/bucket.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { Entity } from "../core/entity.ts";
import type { Limit } from "../core/limit.ts";
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
  RepositoryStatistics,
  VersionRecord,
} from "./repository.ts";

/**
 * What a backend has to be able to do. `StoreRepository` puts the public surface on top: it checks
 * input, keeps the policy cache, makes audit events and turns cursors into keys, once for all
 * backends. A store gets checked values, and writes a change and the event that describes it
 * together or not at all.
 */
export interface Store {
  readonly namespaces: NamespaceStore;
  readonly versions: VersionStore;
  /**
   * The data of one namespace. `policies` answers what holds now; it is asked, not told, so that a
   * warm decision costs no read.
   */
  open(namespaceId: string, policies: PolicySource): NamespaceData;
  readonly capabilities: BackendCapabilities;
  statistics(): RepositoryStatistics;
  ping(): MaybePromise<boolean>;
  close(): MaybePromise<void>;
}

/** Answers which limits hold, from the cache where it can. */
export interface PolicySource {
  /** Grows with every change of configuration in this process. */
  readonly version: number;
  /**
   * Whether nothing was changed in this process since; for backends that no other process writes
   * to, that settles it. Counts as a hit.
   */
  unchangedSince(version: number): boolean;
  /** The policy when the cache knows it: `undefined` means "ask `resolve`". */
  cached(entityId: string, resource: string): CachedPolicy | undefined;
  resolve(entityId: string, resource: string): MaybePromise<Policy | undefined>;
  /** Reads again what is stored, because a bucket shows that the cache may be old. */
  refresh(entityId: string, resource: string): MaybePromise<Policy | undefined>;
  /** Forgets everything: somebody else has changed the configuration. */
  clear(): void;
}

/** A cached answer, which may be that there are no limits. */
export interface CachedPolicy {
  readonly policy: Policy | undefined;
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

/** A page request with the key that it continues after. */
export interface KeyPage {
  readonly limit: number;
  readonly after: string | undefined;
}

/** A page with the key to continue after; `undefined` on the last one. */
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

export interface BucketStore {
  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
  giveBack(receipt: Receipt): MaybePromise<void>;
  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
  ofEntity(entityId: string, resource: string | undefined): MaybePromise<readonly StoredBucket[]>;
  ofResource(resource: string): MaybePromise<readonly StoredBucket[]>;
  /**
   * Splits a bucket until it has so many shards, and answers how many it has. Only where buckets
   * have shards.
   */
  split?(entityId: string, resource: string, shards: number): Promise<number>;
}

export interface EntityStore {
  /** Throws `EntityExistsError`, or `EntityNotFoundError` for an unknown parent. */
  create(entity: Entity, event: AuditEvent): MaybePromise<void>;
  get(entityId: string): MaybePromise<Entity | undefined>;
  children(parentId: string): MaybePromise<readonly Entity[]>;
  list(page: KeyPage): MaybePromise<Keyed<Entity>>;
  /**
   * Deletes record, limits and buckets; throws `EntityNotFoundError` when there is none of them,
   * `ValidationError` when it has children.
   */
  delete(entityId: string, event: AuditEvent): MaybePromise<void>;
}

/** What the system level stores beside its limits; `undefined` where nothing is stored. */
export interface SystemSettings {
  readonly onUnavailable: OnUnavailable | undefined;
  readonly auditRetentionDays: number | undefined;
  readonly usageRetentionDays: number | undefined;
}

/** What one key holds; `settings` at the system level only. */
export interface StoredConfig {
  readonly limits: readonly Limit[] | undefined;
  readonly settings?: SystemSettings;
}

/** What the system level stores beside its limits when nothing is stored. */
export const NO_SETTINGS: SystemSettings = {
  onUnavailable: undefined,
  auditRetentionDays: undefined,
  usageRetentionDays: undefined,
};

/** The system level after a change: what the change leaves open stays as it is stored. */
export function mergedConfig(stored: StoredConfig, wanted: StoredConfig): StoredConfig {
  return {
    limits: wanted.limits ?? stored.limits,
    settings: {
      onUnavailable: wanted.settings?.onUnavailable ?? stored.settings?.onUnavailable,
      auditRetentionDays:
        wanted.settings?.auditRetentionDays ?? stored.settings?.auditRetentionDays,
      usageRetentionDays:
        wanted.settings?.usageRetentionDays ?? stored.settings?.usageRetentionDays,
    },
  };
}

export interface LimitStore {
  /** One answer a key, in order. Reads are consistent: they see every write that ended before. */
  read(keys: readonly ConfigKey[]): MaybePromise<readonly StoredConfig[]>;
  /**
   * What is `undefined` at the system level keeps its stored value (`mergedConfig`), in the same
   * step: writers set options apart from each other.
   */
  put(key: ConfigKey, config: StoredConfig, event: AuditEvent): MaybePromise<void>;
  /** Writes the event, and answers true, only when there was something to delete. */
  delete(key: ConfigKey, event: AuditEvent): MaybePromise<boolean>;
  resourcesWithDefaults(): MaybePromise<readonly string[]>;
  entitiesWithLimits(resource: string, page: KeyPage): MaybePromise<Keyed<string>>;
  resourcesWithEntityLimits(): MaybePromise<readonly string[]>;
}

/** Which usage rows, in order of window start, entity and resource. */
export interface UsageRange {
  readonly entityId: string | undefined;
  readonly resource: string | undefined;
  readonly window: UsageWindow;
  readonly startMs: number | undefined;
  readonly endMs: number | undefined;
}

export interface UsageStore {
  rows(range: UsageRange, page: KeyPage): MaybePromise<Keyed<UsageRow>>;
}

export interface AuditStore {
  /** Newest first; `after` is an event id. */
  events(entityId: string, page: KeyPage): MaybePromise<Keyed<AuditEvent>>;
  /** Records what was done to something outside this namespace's own data. */
  add(event: AuditEvent): MaybePromise<void>;
}

export interface ProvisionerStore {
  get(): MaybePromise<ProvisionerState | undefined>;
  /**
   * Stores only when the stored revision (0 when nothing is stored) is `expected`, and answers
   * whether it was.
   */
  put(state: ProvisionerState, expected: number): MaybePromise<boolean>;
}

/**
 * Describes a change of a namespace. The event is filed in the namespace from which the change is
 * made: a purged one could not keep it.
 */
export interface NamespaceNote {
  readonly filedIn: string;
  event(details: { readonly name: string | undefined; readonly namespaceId: string }): AuditEvent;
}

/** How a purge is watched and stopped. */
export interface PurgeOptions {
  readonly onProgress?: (deletedItems: number) => void;
  readonly signal?: AbortSignal;
}

export interface NamespaceStore {
  /**
   * Whether the members below write the event of a note together with the change. Otherwise it is
   * filed right afterwards.
   */
  readonly filesNotes?: boolean;
  /** The id of an active namespace, which is created when the name is free. */
  register(
    name: string,
    newId: () => string,
    nowMs: number,
    note?: NamespaceNote,
  ): MaybePromise<{ readonly namespaceId: string; readonly created: boolean }>;
  byName(name: string): MaybePromise<NamespaceInfo | undefined>;
  byId(namespaceId: string): MaybePromise<NamespaceInfo | undefined>;
  list(): MaybePromise<readonly NamespaceInfo[]>;
  /** Frees the name; answers the id, or undefined when no active namespace has it. */
  delete(name: string, nowMs: number, note?: NamespaceNote): MaybePromise<string | undefined>;
  /** Takes the name again; throws `NamespaceNotFoundError` or `NamespaceStateError`. */
  recover(namespaceId: string, note?: NamespaceNote): MaybePromise<string>;
  /**
   * Removes everything, resumably; throws `NamespaceStateError` when active, and answers false when
   * there is no such namespace.
   */
  purge(namespaceId: string, options: PurgeOptions, note?: NamespaceNote): MaybePromise<boolean>;
}

export interface VersionStore {
  get(): MaybePromise<VersionRecord | undefined>;
  put(record: VersionRecord): MaybePromise<void>;
}
