import type { AuditEvent } from "../../core/audit.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import type { ConfigKey } from "../../core/bucket/policy.ts";
import {
  mergeConfig,
  NO_CONFIG,
  withoutLimits,
  type DeleteOptions,
  type Guard,
  type Keyed,
  type KeyPage,
  type LimitStore,
  type StoredConfig,
} from "../store.ts";
import { Aliases, absent, exists } from "./table/aliases.ts";
import {
  marshalItem,
  getNumber,
  getString,
  type AttributeMap,
} from "./transport/attribute-values.ts";
import type { DynamoAudit } from "./audit.ts";
import { getKey, marshalKey, queryAll } from "./table/batch.ts";
import { configItem, parseConfig } from "./items/config-item.ts";
import { transactGuarded } from "./items/transact-guarded.ts";
import type { Connection, TransactItem } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import { parseConfigKey, parseEntityConfigIndex } from "./items/key-parsers.ts";
import {
  configKey,
  entityConfigIndexKeys,
  entityConfigPartition,
  entityConfigsPrefix,
  resourcesPrefix,
} from "./items/keys.ts";
import type { KeyQuery } from "./table/key-query.ts";
import { resolveRetention, type Retention } from "./cache/retention.ts";

/**
 * Sorts after every GSI4 key of the same resource and before those of the next: '$' follows '#',
 * and no identifier holds either.
 */
const AFTER_RESOURCE = "$";

/**
 * The most resources that a listing of entity limits returns: a bound for the loop, far beyond real
 * use.
 */
const MAX_RESOURCES = 100_000;

/** The most attempts at a change of system defaults that others change at the same time. */
const MAX_CHANGES = 8;

/**
 * Limits of the four levels, one item each. The indexes show which levels exist, so there is no
 * registry to contend on.
 */
export class DynamoLimits implements LimitStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #reader: ItemReader;
  readonly #audit: DynamoAudit;
  readonly #retention: Retention;

  constructor(options: {
    readonly connection: Connection;
    readonly namespaceId: string;
    readonly reader: ItemReader;
    readonly audit: DynamoAudit;
    readonly retention: Retention;
  }) {
    this.#connection = options.connection;
    this.#namespaceId = options.namespaceId;
    this.#reader = options.reader;
    this.#audit = options.audit;
    this.#retention = options.retention;
  }

  async read(keys: readonly ConfigKey[]): Promise<readonly StoredConfig[]> {
    return readConfigs(this.#reader, this.#namespaceId, keys);
  }

  async put(key: ConfigKey, config: StoredConfig, event: AuditEvent, guard: Guard): Promise<void> {
    if (key.level === "system")
      await this.#changeSystem((stored) => mergeConfig(stored, config), event, guard);
    else {
      const put = { Put: { Item: configItem(this.#namespaceId, key, config) } };
      await this.#audit.transact([put], event, guard);
    }
  }

  /**
   * Reads, changes, and writes only over what was read: options that others set meanwhile are not
   * lost. A change that returns undefined finds nothing to do. Returns whether it was made.
   */
  async #changeSystem(
    change: (stored: StoredConfig) => StoredConfig | undefined,
    event: AuditEvent,
    guard: Guard,
  ): Promise<boolean> {
    const key: ConfigKey = { level: "system" };
    for (let attempt = 0; attempt < MAX_CHANGES; attempt += 1) {
      const item = await this.#reader.get(configKey(this.#namespaceId, key));
      const config = change(parseConfig(key, item));
      if (config === undefined) {
        await transactGuarded(this.#connection, this.#namespaceId, [], guard);
        return false;
      }
      const write = systemWrite(this.#namespaceId, config, item);
      const { applied } = await this.#audit.transact([write], event, guard);
      if (!applied) continue;
      this.#retention.learn(this.#namespaceId, resolveRetention(config.settings));
      return true;
    }
    throw new RateLimiterUnavailable(
      `Too much contention: other processes changed the system defaults ${MAX_CHANGES} times ` +
        "in a row. Try again.",
    );
  }

  async delete(key: ConfigKey, event: AuditEvent, options: DeleteOptions): Promise<boolean> {
    if (options.keepSettings)
      return this.#changeSystem(
        (stored) => (stored.limits === undefined ? undefined : withoutLimits(stored)),
        event,
        options,
      );
    const write = { Delete: deleteConfig(this.#namespaceId, key) };
    const { applied } = await this.#audit.transact([write], event, options);
    if (key.level === "system")
      this.#retention.learn(this.#namespaceId, resolveRetention(undefined));
    return applied;
  }

  async resourcesWithDefaults(): Promise<readonly string[]> {
    const resources: string[] = [];
    const range = { beginsWith: resourcesPrefix(this.#namespaceId) };
    for await (const item of queryAll(this.#connection, {
      index: "GSI4",
      partition: this.#namespaceId,
      range,
    })) {
      const key = parseConfigKey(getKey(item));
      if (key?.level === "resource") resources.push(key.resource);
    }
    return resources.sort();
  }

  async entitiesWithLimits(resource: string, { limit, after }: KeyPage): Promise<Keyed<string>> {
    const query = entitiesWithLimitsQuery(this.#namespaceId, resource, { limit: limit + 1, after });
    const entityIds: string[] = [];
    for await (const item of queryAll(this.#connection, query)) {
      entityIds.push(getString(item["GSI3SK"]) ?? "");
      if (entityIds.length > limit) break;
    }
    return {
      items: entityIds.slice(0, limit),
      next: entityIds.length > limit ? entityIds[limit - 1] : undefined,
    };
  }

  /** Jumps from resource to resource: one small query for each, however many entities it has. */
  async resourcesWithEntityLimits(): Promise<readonly string[]> {
    const resources: string[] = [];
    let from = entityConfigsPrefix;
    while (resources.length < MAX_RESOURCES) {
      const query = nextResourceQuery(this.#namespaceId, from);
      const first = await queryAll(this.#connection, query).next();
      const item: AttributeMap | undefined = first.done === true ? undefined : first.value;
      const found = parseEntityConfigIndex(getString(item?.["GSI4SK"]) ?? "");
      if (found === undefined) break;
      resources.push(found.resource);
      from = entityConfigsPrefix + found.resource + AFTER_RESOURCE;
    }
    return resources.sort();
  }
}

/** Reads what is stored at some levels of a namespace, in the order of the keys. */
export async function readConfigs(
  reader: ItemReader,
  namespaceId: string,
  keys: readonly ConfigKey[],
): Promise<readonly StoredConfig[]> {
  const items = await Promise.all(keys.map((key) => reader.get(configKey(namespaceId, key))));
  return keys.map((key, index) => parseConfig(key, items[index]));
}

/**
 * Writes the system level's new item, or deletes it if nothing is left, if the stored item is still
 * the one that was read.
 */
function systemWrite(
  namespaceId: string,
  config: StoredConfig,
  seen: AttributeMap | undefined,
): TransactItem {
  const key: ConfigKey = { level: "system" };
  const alias = new Aliases();
  const version = getNumber(seen?.["config_version"]);
  const condition = {
    ConditionExpression: seen === undefined ? absent(alias) : hasVersion(alias, version),
    ...alias.fields(),
  };
  if (config === NO_CONFIG)
    return { Delete: { Key: marshalKey(configKey(namespaceId, key)), ...condition } };
  const Item = {
    ...configItem(namespaceId, key, config),
    ...marshalItem({ config_version: (version ?? 0) + 1 }),
  };
  return { Put: { Item, ...condition } };
}

/** Items that other clients wrote may have no version. */
function hasVersion(alias: Aliases, version: number | undefined): string {
  const name = alias.name("config_version");
  return version === undefined
    ? `attribute_not_exists(${name})`
    : `${name} = ${alias.value(version)}`;
}

/** Deletes what a level stores, if it stores anything. */
export function deleteConfig(namespaceId: string, key: ConfigKey): object {
  const alias = new Aliases();
  return {
    Key: marshalKey(configKey(namespaceId, key)),
    ConditionExpression: exists(alias),
    ...alias.fields(),
  };
}

/** The entities that have limits of their own for a resource, in order. */
function entitiesWithLimitsQuery(
  namespaceId: string,
  resource: string,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): KeyQuery {
  return {
    index: "GSI3",
    partition: entityConfigPartition(namespaceId, resource),
    range: { from: " ", to: "~" },
    limit,
    after: after === undefined ? undefined : indexStart(namespaceId, after, resource),
  };
}

/** The first of the entities' limits at or after a GSI4 sort key. */
export function nextResourceQuery(namespaceId: string, from: string): KeyQuery {
  return {
    index: "GSI4",
    partition: namespaceId,
    range: { from, to: entityConfigsPrefix.slice(0, -1) + AFTER_RESOURCE },
    limit: 1,
  };
}

function indexStart(
  namespaceId: string,
  entityId: string,
  resource: string,
): ReturnType<typeof marshalKey> {
  const { GSI3PK, GSI3SK } = entityConfigIndexKeys(namespaceId, entityId, resource);
  return {
    ...marshalKey(configKey(namespaceId, { level: "entity", entityId, resource })),
    GSI3PK: { S: GSI3PK },
    GSI3SK: { S: GSI3SK },
  };
}
