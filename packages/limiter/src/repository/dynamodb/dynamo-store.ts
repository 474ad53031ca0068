/*
 * The subfolders, each of which imports only those listed below it:
 *
 *   acquire/     which buckets a call takes from, taking from one, from shards, from several;
 *                refusing; ending a lease, and charging without one
 *   shards/      the tree of shards; splitting (pressure.ts) and merging (merge-monitor.ts)
 *   write/       one batch, one conditional write: deciding its members, building it, learning what
 *                became of it
 *   cache/       what this process knows of buckets, and values that expire
 *   items/       what is stored: keys, items, versions, the check of guarded writes
 *   opening/     options and addresses, the connection, and the stack
 *   table/       requests to one table: time-outs, retries, errors, batches, shared requests
 *   transport/   the SDK's client, and lean/, a smaller one of our own
 *
 * aggregator/ stands on top of them. Who may change what on the write path:
 *
 *   images and stamps of shards                 KnownBuckets (cache/known-buckets.ts)
 *   queue, tick, failed units                   BucketWriter (write/bucket-writer.ts)
 *   writes without an answer, what is owed      WriteOutcomes (write/write-outcomes.ts)
 *   names in slots                              OperationIds (write/operation-ids.ts)
 *   how far limits were compared                PolicyResolver (cache/)
 *   measured rates, throttling, looks           PressureWatch, MergeMonitor (shards/)
 *   gathers, and the pause between them         GatherQueue (acquire/gather-queue.ts)
 *   reads of all shards that are under way      SharedRounds (cache/shared-rounds.ts)
 *   undecided calls over several buckets        UndecidedCalls (cache/undecided-calls.ts)
 *   how a lease ends                            LeaseEnds (acquire/lease-end.ts)
 *   calls under way in this process             OverloadGuard (acquire/bounds.ts)
 */
import { InfrastructureError, NamespaceNotFoundError } from "../../core/errors.ts";
import type { BackendCapabilities, RepositoryStatistics } from "../repository.ts";
import type { NamespaceData, PolicySource, Store } from "../store.ts";
import { DynamoAudit } from "./audit.ts";
import { marshalKey } from "./table/batch.ts";
import { OverloadGuard } from "./acquire/bounds.ts";
import { DynamoBuckets } from "./buckets.ts";
import { newCounts } from "./write/write-observer.ts";
import type { KnownEntity } from "./acquire/prepare.ts";
import type { Connection } from "./table/connection.ts";
import { DynamoEntities } from "./entities.ts";
import { Expiring } from "./cache/expiring.ts";
import { ItemReader } from "./table/item-reader.ts";
import { SharedRequests } from "./table/shared-requests.ts";
import { bucketPartitionPrefix, versionKey } from "./items/keys.ts";
import { LastHeartbeat } from "./cache/last-heartbeat.ts";
import { KnownBuckets } from "./cache/known-buckets.ts";
import { DynamoLimits } from "./limits.ts";
import { DynamoNamespaces } from "./namespaces.ts";
import { OperationIds } from "./write/operation-ids.ts";
import { DynamoProvisioner } from "./provisioner.ts";
import { DynamoVersions } from "./records.ts";
import { resolveRetention, type RetentionDays } from "./cache/retention.ts";
import { DynamoUsage } from "./usage.ts";

/** What a store is opened with. */
export interface DynamoStoreOptions {
  readonly connection: Connection;
  /** How long configuration, entities and namespaces are cached. */
  readonly cacheTtlMs: number;
  readonly bucketTtlMultiplier: number;
  readonly largestTickMs: number;
  readonly refusalMemoryMs: number;
  readonly maxShards: number;
  readonly shareRequests: boolean;
  /** The most requests under way while writes wait; benchmarks vary it. */
  readonly maxRequests?: number;
  readonly stream: boolean;
}

/** The data of one namespace; its buckets can be split. */
export interface DynamoNamespaceData extends NamespaceData {
  readonly buckets: DynamoBuckets;
}

/** Everything in one DynamoDB table. */
export class DynamoStore implements Store {
  readonly capabilities: BackendCapabilities;
  readonly namespaces: DynamoNamespaces;
  readonly versions: DynamoVersions;
  readonly heartbeat: LastHeartbeat;
  readonly #options: DynamoStoreOptions;
  readonly #reader: ItemReader;
  readonly #requests: SharedRequests;
  readonly #ids: OperationIds;
  /** The names of active namespaces, by id: a deleted one is refused once its entry has expired. */
  readonly #active: Expiring<string>;
  readonly #ttlMultipliers = new Map<string, number>();
  readonly #counts = newCounts();
  readonly #overload = new OverloadGuard();

  constructor(options: DynamoStoreOptions) {
    const { connection } = options;
    this.#options = options;
    this.#reader = new ItemReader(connection);
    this.#requests = new SharedRequests({
      connection,
      reader: this.#reader,
      isOn: options.shareRequests,
      maxRequests: options.maxRequests,
    });
    this.#ids = new OperationIds(connection.random);
    this.#active = new Expiring({
      read: (namespaceId) => this.#activeName(namespaceId),
      clock: connection.clock,
      ttlMs: options.cacheTtlMs,
    });
    const versions = new DynamoVersions(connection, this.#reader);
    this.versions = versions;
    this.namespaces = new DynamoNamespaces(connection, this.#reader, {
      recordVersion: (nowMs) => versions.putFirst(nowMs),
      onChange: (namespaceId) => this.#active.forget(namespaceId),
    });
    const heartbeat = new LastHeartbeat(this.#reader);
    this.heartbeat = heartbeat;
    this.capabilities = {
      auditLogging: true,
      get usageSnapshots() {
        return heartbeat.wasSeen;
      },
      infrastructureManagement: true,
      changeStreams: options.stream,
      batchOperations: true,
    };
  }

  open(namespaceId: string, policies: PolicySource): DynamoNamespaceData {
    const { connection, cacheTtlMs } = this.#options;
    const { clock } = connection;
    const reader = this.#reader;
    const ttlMs = cacheTtlMs;
    const retention: Expiring<RetentionDays> = new Expiring({
      read: async () => resolveRetention((await limits.read([{ level: "system" }]))[0]?.settings),
      clock,
      ttlMs,
    });
    const audit = new DynamoAudit(connection, namespaceId, retention);
    const limits = new DynamoLimits({ connection, namespaceId, reader, audit, retention });
    const known = new KnownBuckets(reader, clock);
    const onChange = (entityId: string): void => {
      parents.forget(entityId);
      known.forget(bucketPartitionPrefix(namespaceId, entityId));
    };
    const entities = new DynamoEntities({ connection, namespaceId, reader, audit, onChange });
    const parents = new Expiring<KnownEntity>({
      read: async (entityId) => {
        const entity = await entities.get(entityId);
        const parentId = entity?.cascade === true ? entity.parentId : undefined;
        return { parentId, buckets: new Map() };
      },
      clock,
      ttlMs,
    });
    return {
      buckets: new DynamoBuckets({
        ...this.#options,
        namespaceId,
        policies,
        configTtlMs: ttlMs,
        entities: parents,
        known,
        reader,
        requests: this.#requests,
        ids: this.#ids,
        counts: this.#counts,
        overload: this.#overload,
        ttlMultiplier: this.#ttlMultipliers.get(namespaceId) ?? this.#options.bucketTtlMultiplier,
        active: this.#active,
      }),
      entities,
      limits,
      usage: new DynamoUsage({ connection, namespaceId, retention, heartbeat: this.heartbeat }),
      audit,
      provisioner: new DynamoProvisioner(connection, namespaceId, reader),
    };
  }

  /**
   * Sets how long the buckets of one namespace are kept; applies to namespaces that are opened
   * afterwards.
   */
  useTtlMultiplier(namespaceId: string, multiplier: number): void {
    this.#ttlMultipliers.set(namespaceId, multiplier);
  }

  statistics(): RepositoryStatistics {
    const { connection } = this.#options;
    return { ...this.#counts, requests: connection.requests, retries: connection.retries };
  }

  async ping(): Promise<boolean> {
    try {
      await this.#options.connection.repeat("GetItem", { Key: marshalKey(versionKey()) });
      return true;
    } catch (error) {
      if (error instanceof InfrastructureError) return false;
      throw error;
    }
  }

  close(): void {
    this.#options.connection.close();
  }

  async #activeName(namespaceId: string): Promise<string> {
    const info = await this.namespaces.byId(namespaceId);
    if (info?.status === "active") return info.name;
    this.#active.forget(namespaceId);
    throw new NamespaceNotFoundError(info?.name ?? namespaceId);
  }
}
