import type { BackendCapabilities, RepositoryStatistics } from "../repository.ts";
import type { NamespaceData, PolicySource, Store, VersionStore } from "../store.ts";
import { SqliteAudit } from "./audit.ts";
import { SqliteBuckets } from "./buckets.ts";
import { ConfigVersion } from "./transactions/config-version.ts";
import type { Connection } from "./database/connection.ts";
import { SqliteEntities } from "./entities.ts";
import { SqliteLimits } from "./limits.ts";
import { SqliteNamespaces } from "./namespaces.ts";
import { SqliteProvisioner, SqliteVersions } from "./records.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";
import type { Transactions } from "./transactions/transactions.ts";
import { SqliteUsage } from "./usage.ts";

/** A store in one SQLite file. */
export class SqliteStore implements Store {
  readonly capabilities: BackendCapabilities;
  readonly namespaces: SqliteNamespaces;
  readonly versions: VersionStore;
  readonly #connection: Connection;
  readonly #transactions: Transactions;
  readonly #nowMs: () => number;
  readonly #recordUsage: boolean;
  readonly #release: () => void;
  #closing: Promise<void> | undefined;

  constructor(options: {
    readonly connection: Connection;
    readonly transactions: Transactions;
    readonly nowMs: () => number;
    readonly recordUsage: boolean;
    /** Closes the connection if the repository opened it. */
    readonly release: () => void;
  }) {
    this.#connection = options.connection;
    this.#transactions = options.transactions;
    this.#nowMs = options.nowMs;
    this.#recordUsage = options.recordUsage;
    this.#release = options.release;
    this.namespaces = new SqliteNamespaces(options.connection, options.transactions);
    this.versions = new SqliteVersions(options.connection, options.transactions);
    this.capabilities = {
      auditLogging: true,
      usageSnapshots: options.recordUsage,
      infrastructureManagement: false,
      changeStreams: false,
      batchOperations: true,
    };
  }

  open(namespaceId: string, policies: PolicySource): NamespaceData {
    const namespace = this.#namespace(namespaceId, policies);
    const limits = new SqliteLimits(namespace);
    return {
      limits,
      buckets: new SqliteBuckets({ namespace, limits, policies, recordUsage: this.#recordUsage }),
      entities: new SqliteEntities(namespace),
      usage: new SqliteUsage(namespace, this.#recordUsage),
      audit: new SqliteAudit(namespace),
      provisioner: new SqliteProvisioner(namespace),
    };
  }

  statistics(): RepositoryStatistics {
    return {
      ...this.#transactions.counts,
      failedConditions: 0,
      refusalsFromMemory: 0,
      splits: 0,
      merges: 0,
    };
  }

  async ping(): Promise<boolean> {
    try {
      return await this.#transactions.read(
        () => this.#connection.row("SELECT 1 AS one")?.["one"] === 1,
      );
    } catch {
      // A ping only asks whether the store responds.
      return false;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#transactions.close().then(this.#release);
    return this.#closing;
  }

  #namespace(namespaceId: string, policies: PolicySource): SqliteNamespace {
    const connection = this.#connection;
    const config = new ConfigVersion(connection, namespaceId, policies);
    return {
      namespaceId,
      connection,
      transactions: this.#transactions,
      nowMs: this.#nowMs,
      config,
    };
  }
}
