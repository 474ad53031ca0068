import { InfrastructureError } from "../../core/errors.ts";
import type { BackendCapabilities, RepositoryStatistics } from "../repository.ts";
import type { NamespaceData, PolicySource, Store } from "../store.ts";
import { Admission } from "./admission.ts";
import { DynamoAudit } from "./audit.ts";
import { marshalKey } from "./batch.ts";
import { newCounts } from "./bucket-counts.ts";
import type { DynamoBuckets } from "./buckets.ts";
import type { Connection } from "./connection.ts";
import { DynamoEntities } from "./entities.ts";
import { Families } from "./families.ts";
import { BucketImages } from "./images.ts";
import { ItemReader } from "./item-reader.ts";
import { bucketPartitionPrefix, versionKey } from "./keys.ts";
import { DynamoLimits } from "./limits.ts";
import { NamespaceGuard } from "./namespace-guard.ts";
import { DynamoNamespaces } from "./namespaces.ts";
import { openBuckets } from "./open-buckets.ts";
import { OperationIds } from "./operation-ids.ts";
import { DynamoProvisioner, DynamoVersions } from "./records.ts";
import { Retention } from "./retention.ts";
import type { MeteredTransport } from "./transport.ts";
import { DynamoUsage } from "./usage.ts";

/** What a store is opened with. */
export interface DynamoStoreOptions {
  readonly connection: Connection;
  readonly meter: MeteredTransport;
  /** How long what was read of configuration, entities and namespaces is believed. */
  readonly cacheTtlMs: number;
  readonly bucketTtlMultiplier: number;
  readonly largestTickMs: number;
  readonly refusalMemoryMs: number;
  readonly maxShards: number;
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
  readonly #options: DynamoStoreOptions;
  readonly #reader: ItemReader;
  readonly #ids: OperationIds;
  readonly #guards = new Map<string, NamespaceGuard>();
  readonly #ttlMultipliers = new Map<string, number>();
  readonly #counts = newCounts();
  readonly #admission = new Admission();

  constructor(options: DynamoStoreOptions) {
    const { connection } = options;
    this.#options = options;
    this.#reader = new ItemReader(connection);
    this.#ids = new OperationIds(connection.random);
    this.namespaces = new DynamoNamespaces(connection, this.#reader, (namespaceId) =>
      this.#guards.get(namespaceId)?.forget(),
    );
    this.versions = new DynamoVersions(connection, this.#reader);
    this.capabilities = {
      auditLogging: true,
      // Snapshots can be read, but nothing writes them before there is an aggregator behind the
      // table's stream.
      usageSnapshots: false,
      infrastructureManagement: true,
      changeStreams: options.stream,
      batchOperations: true,
    };
  }

  open(namespaceId: string, policies: PolicySource): DynamoNamespaceData {
    const { connection, cacheTtlMs } = this.#options;
    const { clock } = connection;
    const reader = this.#reader;
    const retention: Retention = new Retention({
      read: async () => (await limits.read([{ level: "system" }]))[0]?.settings,
      clock,
      ttlMs: cacheTtlMs,
    });
    const audit = new DynamoAudit(connection, namespaceId, retention);
    const limits = new DynamoLimits({ connection, namespaceId, reader, audit, retention });
    const images = new BucketImages();
    const onChange = (entityId: string): void => {
      families.forget(entityId);
      images.forget(bucketPartitionPrefix(namespaceId, entityId));
    };
    const entities = new DynamoEntities({ connection, namespaceId, reader, audit, onChange });
    const families = new Families({
      read: (entityId) => entities.get(entityId),
      clock,
      ttlMs: cacheTtlMs,
    });
    return {
      buckets: this.#buckets({ namespaceId, policies, families, images }),
      entities,
      limits,
      usage: new DynamoUsage(connection, namespaceId, retention),
      audit,
      provisioner: new DynamoProvisioner(connection, namespaceId, reader),
    };
  }

  /**
   * Lets the buckets of one namespace live longer or shorter than others; holds for namespaces that
   * are opened afterwards.
   */
  useTtlMultiplier(namespaceId: string, multiplier: number): void {
    this.#ttlMultipliers.set(namespaceId, multiplier);
  }

  statistics(): RepositoryStatistics {
    const { meter, connection } = this.#options;
    return { ...this.#counts, requests: meter.counts().requests, retries: connection.retries };
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

  #buckets(parts: {
    readonly namespaceId: string;
    readonly policies: PolicySource;
    readonly families: Families;
    readonly images: BucketImages;
  }): DynamoBuckets {
    const guard = this.#guard(parts.namespaceId);
    return openBuckets({
      ...this.#options,
      ...parts,
      reader: this.#reader,
      ids: this.#ids,
      counts: this.#counts,
      admission: this.#admission,
      ttlMultiplier:
        this.#ttlMultipliers.get(parts.namespaceId) ?? this.#options.bucketTtlMultiplier,
      assertActive: () => guard.assertActive(),
    });
  }

  #guard(namespaceId: string): NamespaceGuard {
    const read = async (): ReturnType<DynamoNamespaces["byId"]> =>
      this.namespaces.byId(namespaceId);
    const guard = new NamespaceGuard({
      read,
      namespaceId,
      clock: this.#options.connection.clock,
      ttlMs: this.#options.cacheTtlMs,
    });
    this.#guards.set(namespaceId, guard);
    return guard;
  }
}
