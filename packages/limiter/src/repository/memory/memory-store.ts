import { NamespaceNotFoundError } from "../../core/errors.ts";
import { DEFAULT_RETENTION_DAYS } from "../../core/usage.ts";
import type { BackendCapabilities, RepositoryStatistics } from "../repository.ts";
import type { NamespaceData, PolicySource, Store } from "../store.ts";
import { emitWarning } from "../warning.ts";
import { MemoryAudit } from "./audit.ts";
import { FORGET_ABOVE, MemoryBuckets } from "./buckets.ts";
import { MemoryEntities } from "./entities.ts";
import { MemoryLimits } from "./limits.ts";
import { MemoryNamespaces } from "./namespaces.ts";
import { MemoryProvisioner, MemoryVersions } from "./records.ts";
import { MemoryUsage } from "./usage.ts";

/** All data of one namespace. */
interface MemoryData extends NamespaceData {
  readonly buckets: MemoryBuckets;
  clear(): number;
}

/** A store in the memory of the process. */
export class MemoryStore implements Store {
  readonly capabilities: BackendCapabilities;
  readonly namespaces = new MemoryNamespaces((namespaceId) => this.#empty(namespaceId));
  readonly versions = new MemoryVersions();
  readonly #data = new Map<string, MemoryData>();
  readonly #nowMs: () => number;
  readonly #recordUsage: boolean;
  readonly #forgetAbove: number;
  readonly #maxUsageCounts: number | undefined;
  #hasWarned = false;

  constructor(options: {
    readonly nowMs: () => number;
    readonly recordUsage: boolean;
    readonly forgetAbove?: number;
    readonly maxUsageCounts?: number;
  }) {
    this.#nowMs = options.nowMs;
    this.#recordUsage = options.recordUsage;
    this.#forgetAbove = options.forgetAbove ?? FORGET_ABOVE;
    this.#maxUsageCounts = options.maxUsageCounts;
    this.capabilities = {
      auditLogging: true,
      usageSnapshots: options.recordUsage,
      infrastructureManagement: false,
      changeStreams: false,
      batchOperations: true,
    };
  }

  open(namespaceId: string, policies: PolicySource): NamespaceData {
    const held = this.#data.get(namespaceId);
    if (held !== undefined) return held;
    const data = this.#newData(namespaceId, policies);
    this.#data.set(namespaceId, data);
    return data;
  }

  statistics(): RepositoryStatistics {
    const writes = [...this.#data.values()].reduce((sum, { buckets }) => sum + buckets.writes, 0);
    return {
      requests: 0,
      writes,
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

  #newData(namespaceId: string, policies: PolicySource): MemoryData {
    const nowMs = this.#nowMs;
    const provisioner = new MemoryProvisioner();
    const limits: MemoryLimits = new MemoryLimits(() => audit, provisioner);
    const audit = new MemoryAudit(
      nowMs,
      () => limits.settings?.auditRetentionDays ?? DEFAULT_RETENTION_DAYS,
    );
    const usage = new MemoryUsage({
      nowMs,
      isRecorded: this.#recordUsage,
      retentionDays: () => limits.settings?.usageRetentionDays ?? DEFAULT_RETENTION_DAYS,
      onDropped: (maxCounts) => this.#warnOnce(maxCounts),
      ...(this.#maxUsageCounts !== undefined && { maxCounts: this.#maxUsageCounts }),
    });
    // Every call asks, and namespaces hardly ever change: the lookup took 20 ns.
    let activeAtVersion = -1;
    const assertActive = (): void => {
      if (this.namespaces.version === activeAtVersion) return;
      const info = this.namespaces.byId(namespaceId);
      if (info?.status !== "active") throw new NamespaceNotFoundError(info?.name ?? namespaceId);
      activeAtVersion = this.namespaces.version;
    };
    const buckets: MemoryBuckets = new MemoryBuckets({
      policies,
      entities: { get: (id) => entities.find(id) },
      usage: this.#recordUsage ? usage : undefined,
      nowMs,
      forgetAbove: this.#forgetAbove,
      assertActive,
    });
    const entities = new MemoryEntities(audit, provisioner, [limits, buckets]);
    const parts = [buckets, entities, limits, usage, audit, provisioner];
    return {
      buckets,
      entities,
      limits,
      usage,
      audit,
      provisioner,
      clear: () => parts.reduce((sum, part) => sum + part.clear(), 0),
    };
  }

  #warnOnce(maxCounts: number): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    emitWarning(
      `The memory backend keeps at most ${maxCounts} counts of usage in a namespace, so the oldest ` +
        "windows were dropped. Read completeSince with the usage, keep it in SQLite, or pass " +
        "recordUsage: false.",
      { code: "WARN_LIMITER_USAGE_DROPPED" },
    );
  }

  #empty(namespaceId: string): number {
    const count = this.#data.get(namespaceId)?.clear() ?? 0;
    this.#data.delete(namespaceId);
    return count;
  }
}
