import type { AuditEvent } from "../../core/audit.ts";
import type { ConfigKey } from "../../core/bucket/policy.ts";
import type { MaybePromise } from "../port.ts";
import {
  mergeConfig,
  NO_CONFIG,
  NO_SETTINGS,
  withoutLimits,
  type DeleteOptions,
  type Guard,
  type Keyed,
  type KeyPage,
  type LimitStore,
  type StoredConfig,
  type SystemSettings,
} from "../store.ts";
import { insertEvent } from "./audit.ts";
import type { Row } from "./database/connection.ts";
import { checkRevision } from "./records.ts";
import { formatLevel, parseLevel } from "./transactions/limit-texts.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";

/** The limits of all four levels. Every change increments the configuration version. */
export class SqliteLimits implements LimitStore {
  readonly #namespace: SqliteNamespace;

  constructor(namespace: SqliteNamespace) {
    this.#namespace = namespace;
  }

  read(keys: readonly ConfigKey[]): MaybePromise<readonly StoredConfig[]> {
    const { transactions, config } = this.#namespace;
    return transactions.read(() => {
      config.refresh();
      return this.readNow(keys);
    });
  }

  /** Reads synchronously. Inside a transaction there is no lock to wait for. */
  readNow(keys: readonly ConfigKey[]): readonly StoredConfig[] {
    const { connection, namespaceId } = this.#namespace;
    return keys.map((key) => parseConfig(key, connection.row(GET, namespaceId, ...toPlace(key))));
  }

  async put(key: ConfigKey, wanted: StoredConfig, event: AuditEvent, guard: Guard): Promise<void> {
    if (wanted.limits === undefined && key.level !== "system") return;
    await this.#change(event, guard, () => {
      const stored = key.level === "system" ? mergeConfig(this.readNow([key])[0]!, wanted) : wanted;
      this.#write(key, stored);
      return true;
    });
  }

  delete(key: ConfigKey, event: AuditEvent, options: DeleteOptions): Promise<boolean> {
    return this.#change(event, options, () => {
      if (!options.keepSettings) return this.#remove(key);
      const stored = this.readNow([key])[0]!;
      if (stored.limits === undefined) return false;
      const rest = withoutLimits(stored);
      if (rest === NO_CONFIG) return this.#remove(key);
      this.#write(key, rest);
      return true;
    });
  }

  /** Makes a change, which returns whether it changed anything, together with its event. */
  async #change(event: AuditEvent, guard: Guard, change: () => boolean): Promise<boolean> {
    const { connection, transactions, namespaceId, config } = this.#namespace;
    const version = await transactions.alone(() => {
      checkRevision(this.#namespace, guard);
      if (!change()) return undefined;
      insertEvent(connection, namespaceId, event);
      return config.increment();
    });
    config.noteWritten(version);
    return version !== undefined;
  }

  #write(key: ConfigKey, { limits, inherit, settings }: StoredConfig): void {
    const { connection, namespaceId } = this.#namespace;
    const values = [
      limits === undefined ? null : formatLevel(limits, inherit),
      settings === undefined ? null : JSON.stringify(settings),
    ];
    connection.run(PUT, namespaceId, ...toPlace(key), ...values);
  }

  #remove(key: ConfigKey): boolean {
    const { connection, namespaceId } = this.#namespace;
    return connection.run(DELETE, namespaceId, ...toPlace(key)) > 0;
  }

  resourcesWithDefaults(): MaybePromise<readonly string[]> {
    return this.#resources(RESOURCES_WITH_DEFAULTS);
  }

  entitiesWithLimits(resource: string, { limit, after }: KeyPage): MaybePromise<Keyed<string>> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() => {
      const rows = connection.rows(
        ENTITIES_WITH_LIMITS,
        namespaceId,
        resource,
        after ?? "",
        limit + 1,
      );
      const ids = rows.map((row) => row["entity_id"] as string);
      return { items: ids.slice(0, limit), next: ids.length > limit ? ids[limit - 1] : undefined };
    });
  }

  resourcesWithEntityLimits(): MaybePromise<readonly string[]> {
    return this.#resources(RESOURCES_WITH_ENTITY_LIMITS);
  }

  #resources(sql: string): MaybePromise<readonly string[]> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() =>
      connection.rows(sql, namespaceId).map((row) => row["resource"] as string),
    );
  }
}

const GET =
  "SELECT limits, settings FROM limits WHERE namespace_id = ? AND resource = ? AND entity_id = ?";
const PUT = `
  INSERT INTO limits (namespace_id, resource, entity_id, limits, settings) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET limits = excluded.limits, settings = excluded.settings`;
const DELETE = "DELETE FROM limits WHERE namespace_id = ? AND resource = ? AND entity_id = ?";
const RESOURCES_WITH_DEFAULTS =
  "SELECT resource FROM limits WHERE namespace_id = ? AND entity_id = '' AND resource <> '' ORDER BY resource";
const RESOURCES_WITH_ENTITY_LIMITS =
  "SELECT DISTINCT resource FROM limits WHERE namespace_id = ? AND entity_id <> '' ORDER BY resource";
const ENTITIES_WITH_LIMITS =
  "SELECT entity_id FROM limits WHERE namespace_id = ? AND resource = ? AND entity_id > ? AND entity_id <> '' ORDER BY entity_id LIMIT ?";

/** The resource and entity of a key. No identifier is empty, so "" marks the weaker levels. */
function toPlace(key: ConfigKey): readonly [string, string] {
  if (key.level === "system") return ["", ""];
  return [key.resource, key.level === "entity" ? key.entityId : ""];
}

function parseConfig(key: ConfigKey, row: Row | undefined): StoredConfig {
  const text = row?.["limits"];
  const level = typeof text === "string" ? parseLevel(text) : { limits: undefined };
  const settings = row?.["settings"];
  if (key.level !== "system" || typeof settings !== "string") return level;
  return {
    ...level,
    settings: { ...NO_SETTINGS, ...(JSON.parse(settings) as Partial<SystemSettings>) },
  };
}
