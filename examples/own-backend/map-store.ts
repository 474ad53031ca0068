import { NamespaceNotFoundError, type RepositoryStatistics, type VersionRecord } from "zae-limiter";
import type { NamespaceData, PolicySource, Store, VersionStore } from "zae-limiter/backend";
import { MapAudit } from "./map-audit.ts";
import { MapBuckets } from "./map-buckets.ts";
import { MapEntities } from "./map-entities.ts";
import { MapLimits } from "./map-limits.ts";
import { MapNamespaces } from "./map-namespaces.ts";
import { MapProvisioner } from "./map-provisioner.ts";

/** How long events are kept if the system level does not say otherwise. */
const AUDIT_RETENTION_DAYS = 90;
const DAY_MS = 86_400_000;

/** All namespaces. It keeps no usage, and says so in its capabilities. */
export class MapStore implements Store {
  readonly capabilities = {
    auditLogging: true,
    usageSnapshots: false,
    infrastructureManagement: false,
    changeStreams: false,
    batchOperations: true,
  };
  readonly #data = new Map<string, NamespaceData>();
  readonly namespaces = new MapNamespaces((namespaceId) => this.#data.delete(namespaceId));
  readonly versions: VersionStore = new MapVersions();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  open(namespaceId: string, policies: PolicySource): NamespaceData {
    const data = this.#data.get(namespaceId) ?? this.#create(namespaceId, policies);
    this.#data.set(namespaceId, data);
    return data;
  }

  statistics(): RepositoryStatistics {
    return {
      requests: 0,
      writes: 0,
      failedConditions: 0,
      retries: 0,
      batches: 0,
      batchedOperations: 0,
      refusalsFromMemory: 0,
      splits: 0,
      merges: 0,
    };
  }

  ping(): boolean {
    return true;
  }

  close(): void {
    this.#data.clear();
  }

  #create(namespaceId: string, policies: PolicySource): NamespaceData {
    const provisioner = new MapProvisioner();
    const audit: MapAudit = new MapAudit(
      () => this.#nowMs() - (limits.settings?.auditRetentionDays ?? AUDIT_RETENTION_DAYS) * DAY_MS,
    );
    const limits = new MapLimits(provisioner, audit);
    const buckets: MapBuckets = new MapBuckets({
      policies,
      nowMs: this.#nowMs,
      findEntity: (entityId) => entities.get(entityId),
      assertActive: () => {
        const info = this.namespaces.byId(namespaceId);
        if (info?.status !== "active") throw new NamespaceNotFoundError(info?.name ?? namespaceId);
      },
    });
    const entities = new MapEntities(provisioner, audit, [limits, buckets]);
    return {
      buckets,
      entities,
      limits,
      provisioner,
      audit,
      usage: {
        rows: () => ({ items: [], next: undefined }),
        getCountedUntilMs: () => undefined,
        erase: () => 0,
      },
    };
  }
}

class MapVersions implements VersionStore {
  #record: VersionRecord | undefined;

  get(): VersionRecord | undefined {
    return structuredClone(this.#record);
  }

  put(record: VersionRecord): void {
    this.#record = record;
  }
}
