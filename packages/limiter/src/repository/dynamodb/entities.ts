import type { AuditEvent } from "../../core/audit.ts";
import type { Entity, EntityChange } from "../../core/entity.ts";
import { EntityExistsError, EntityNotFoundError, ValidationError } from "../../core/errors.ts";
import type { EntityStore, Guard, Keyed, KeyPage } from "../store.ts";
import { absent, Aliases, exists } from "./table/aliases.ts";
import { ExpressionBuilder } from "./table/update-expression.ts";
import { contention } from "./table/table-errors.ts";
import {
  getBoolean,
  marshalItem,
  getString,
  unmarshal,
  unmarshalItem,
  type AttributeMap,
} from "./transport/attribute-values.ts";
import type { DynamoAudit } from "./audit.ts";
import { batchGet, batchWrite, getKey, marshalKey, queryAll } from "./table/batch.ts";
import type { Connection, TransactItem } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import { transactGuarded } from "./items/transact-guarded.ts";
import { isEntityKey, parseBucketPartition, parseEntityPartition } from "./items/key-parsers.ts";
import {
  childKeys,
  childrenPartition,
  configPrefix,
  entitiesPrefix,
  entityBucketsPrefix,
  entityKey,
  entityPartition,
  namespaceIndexKeys,
} from "./items/keys.ts";
import type { ItemKey } from "./table/batch.ts";
import type { KeyQuery } from "./table/key-query.ts";

/** The most attempts at a change of an entity that others change at the same time. */
const MAX_UPDATES = 8;

/** What takes several steps cannot depend on a revision as a whole. */
const UNGUARDED: Guard = { ifRevision: undefined };

/** Entities of one namespace. */
export class DynamoEntities implements EntityStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #reader: ItemReader;
  readonly #audit: DynamoAudit;
  readonly #onChange: (entityId: string) => void;

  constructor(options: {
    readonly connection: Connection;
    readonly namespaceId: string;
    readonly reader: ItemReader;
    readonly audit: DynamoAudit;
    /**
     * Called for every entity that this process has created, changed or deleted, so that caches can
     * forget it.
     */
    readonly onChange: (entityId: string) => void;
  }) {
    this.#connection = options.connection;
    this.#namespaceId = options.namespaceId;
    this.#reader = options.reader;
    this.#audit = options.audit;
    this.#onChange = options.onChange;
  }

  async create(entity: Entity, event: AuditEvent, guard: Guard): Promise<void> {
    const { id, parentId } = entity;
    const writes = createEntity(this.#namespaceId, entity);
    const outcome = await this.#audit.transact(writes, event, guard);
    if (outcome.applied) return this.#onChange(id);
    if (outcome.reasons[0]?.code === "ConditionalCheckFailed") throw new EntityExistsError(id);
    throw new EntityNotFoundError(parentId ?? id);
  }

  /**
   * Writes only the fields that change, over the values that the event names as the old ones: the
   * event is true, and nothing that others write meanwhile is lost.
   */
  async update(
    entityId: string,
    change: EntityChange,
    buildEvent: (before: Entity) => AuditEvent,
    guard: Guard,
  ): Promise<Entity> {
    for (let attempt = 0; attempt < MAX_UPDATES; attempt += 1) {
      const item = await this.#reader.get(entityKey(this.#namespaceId, entityId));
      if (item === undefined) {
        await transactGuarded(this.#connection, this.#namespaceId, [], guard);
        throw new EntityNotFoundError(entityId);
      }
      const before = parseEntity(item);
      const update = { Update: updateEntity(this.#namespaceId, item, change) };
      const { applied } = await this.#audit.transact([update], buildEvent(before), guard);
      if (!applied) continue;
      this.#onChange(entityId);
      return { ...before, ...change };
    }
    throw contention(`an update of entity ${entityId}`, this.#connection.tableName);
  }

  async get(entityId: string): Promise<Entity | undefined> {
    const item = await this.#reader.get(entityKey(this.#namespaceId, entityId));
    return item === undefined ? undefined : parseEntity(item);
  }

  async children(parentId: string): Promise<readonly Entity[]> {
    const children: Entity[] = [];
    for await (const item of queryAll(this.#connection, childrenQuery(this.#namespaceId, parentId)))
      children.push(parseEntity(item));
    return children;
  }

  async list({ limit, after }: KeyPage): Promise<Keyed<Entity>> {
    const keys: ItemKey[] = [];
    for await (const item of queryAll(
      this.#connection,
      entitiesQuery(this.#namespaceId, { limit: limit + 1, after }),
    )) {
      if (isEntityKey(getKey(item))) keys.push(getKey(item));
      if (keys.length > limit) break;
    }
    const items = await batchGet(this.#connection, keys.slice(0, limit));
    const last =
      keys.length > limit ? parseEntityPartition(keys[limit - 1]!.PK)?.entityId : undefined;
    // The index may still list what was deleted a moment ago.
    return {
      items: items.flatMap((item) => (item === undefined ? [] : parseEntity(item))),
      next: last,
    };
  }

  /**
   * Deletes limits and buckets first and the record last, together with the event: after a crash,
   * the record is still there and the deletion can be repeated. Usage and audit events stay until
   * their own retention is over.
   */
  async delete(entityId: string, event: AuditEvent): Promise<number> {
    const [record, children, belongings] = await Promise.all([
      this.get(entityId),
      this.#keys(childrenQuery(this.#namespaceId, entityId)),
      this.#belongings(entityId),
    ]);
    if (children.length > 0)
      throw new ValidationError(
        "entityId",
        entityId,
        `has ${children.length} children; delete them first`,
      );
    const recordsDeleted = belongings.length + (record === undefined ? 0 : 1);
    if (recordsDeleted === 0) throw new EntityNotFoundError(entityId);
    // Shard 0 of each bucket first: the other shards do not count without it, whereas a bucket with
    // a missing shard could never be decided again.
    for (const part of [
      belongings.filter((key) => !isFurtherShard(key)),
      belongings.filter(isFurtherShard),
    ])
      await batchWrite(
        this.#connection,
        part.map((key) => ({ delete: key })),
      );
    const writes =
      record === undefined ? [] : [{ Delete: deleteEntity(this.#namespaceId, entityId) }];
    const { applied } = await this.#audit.transact(
      writes,
      { ...event, details: { ...event.details, recordsDeleted } },
      UNGUARDED,
    );
    this.#onChange(entityId);
    // Another process has deleted it meanwhile, and recorded that.
    if (!applied) throw new EntityNotFoundError(entityId);
    return recordsDeleted;
  }

  /** The keys of an entity's limits and of its buckets, all shards. */
  async #belongings(entityId: string): Promise<readonly ItemKey[]> {
    const partition = entityPartition(this.#namespaceId, entityId);
    const [limits, buckets] = await Promise.all([
      this.#keys({ partition, range: { beginsWith: configPrefix } }),
      this.#keys({ index: "GSI3", partition, range: { beginsWith: entityBucketsPrefix() } }),
    ]);
    return [...limits, ...buckets];
  }

  async #keys(query: KeyQuery): Promise<readonly ItemKey[]> {
    const keys: ItemKey[] = [];
    for await (const item of queryAll(this.#connection, query)) keys.push(getKey(item));
    return keys;
  }
}

function isFurtherShard({ PK }: ItemKey): boolean {
  return (parseBucketPartition(PK)?.shard ?? 0) > 0;
}

/** Creates an entity, if there is none of that id and its parent exists; the entity first. */
export function createEntity(namespaceId: string, entity: Entity): readonly TransactItem[] {
  const own = new Aliases();
  const put = {
    Put: {
      Item: entityItem(namespaceId, entity),
      ConditionExpression: absent(own),
      ...own.fields(),
    },
  };
  if (entity.parentId === undefined) return [put];
  const parents = new Aliases();
  const key = marshalKey(entityKey(namespaceId, entity.parentId));
  return [
    put,
    { ConditionCheck: { Key: key, ConditionExpression: exists(parents), ...parents.fields() } },
  ];
}

/** Changes attributes of an entity's record, if they still have the values that were read. */
function updateEntity(namespaceId: string, read: AttributeMap, change: EntityChange): object {
  const update = new ExpressionBuilder();
  const key = entityKey(namespaceId, parseEntity(read).id);
  update.require(`attribute_exists(${update.name("PK")})`);
  for (const [attribute, value] of Object.entries(change)) {
    const seen = read[attribute];
    if (seen === undefined) update.require(`attribute_not_exists(${update.name(attribute)})`);
    else update.requireEqual(attribute, unmarshal(seen));
    update.set(attribute, value);
  }
  return { Key: marshalKey(key), ...update.build() };
}

/** Deletes an entity's record, if it is still there. */
function deleteEntity(namespaceId: string, entityId: string): object {
  const alias = new Aliases();
  return {
    Key: marshalKey(entityKey(namespaceId, entityId)),
    ConditionExpression: exists(alias),
    ...alias.fields(),
  };
}

/** The children of an entity, in order. */
function childrenQuery(namespaceId: string, parentId: string): KeyQuery {
  return {
    index: "GSI1",
    partition: childrenPartition(namespaceId, parentId),
    range: { beginsWith: "CHILD#" },
  };
}

/** The keys of all entities, in order. */
function entitiesQuery(
  namespaceId: string,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): KeyQuery {
  return {
    index: "GSI4",
    partition: namespaceId,
    range: { beginsWith: entitiesPrefix(namespaceId) },
    limit,
    after:
      after === undefined
        ? undefined
        : marshalItem({
            ...entityKey(namespaceId, after),
            ...namespaceIndexKeys(namespaceId, entityKey(namespaceId, after)),
          }),
  };
}

/** The item of an entity. */
function entityItem(namespaceId: string, entity: Entity): AttributeMap {
  const key = entityKey(namespaceId, entity.id);
  return marshalItem({
    ...key,
    ...namespaceIndexKeys(namespaceId, key),
    ...(entity.parentId !== undefined && childKeys(namespaceId, entity.parentId, entity.id)),
    entity_id: entity.id,
    name: entity.name,
    parent_id: entity.parentId ?? null,
    cascade: entity.cascade,
    metadata: entity.metadata,
    created_at: entity.createdAt.toISOString(),
  });
}

/** The entity of an item. */
function parseEntity(item: AttributeMap): Entity {
  const id = parseEntityPartition(getKey(item).PK)?.entityId ?? "";
  const metadata = item["metadata"];
  return {
    id,
    name: getString(item["name"]) ?? id,
    parentId: getString(item["parent_id"]),
    cascade: getBoolean(item["cascade"]) ?? false,
    metadata: metadata !== undefined && "M" in metadata ? toTexts(metadata.M) : {},
    createdAt: new Date(getString(item["created_at"]) ?? 0),
  };
}

/**
 * Metadata values are strings; numbers and lists that other clients stored are read as JSON text.
 */
function toTexts(map: AttributeMap): Readonly<Record<string, string>> {
  const texts = Object.entries(unmarshalItem(map)).map(([name, value]) => [
    name,
    typeof value === "string" ? value : JSON.stringify(value),
  ]);
  return Object.fromEntries(texts) as Readonly<Record<string, string>>;
}
