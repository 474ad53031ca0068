import type { AuditEvent } from "../../core/audit.ts";
import type { Entity, EntityChange } from "../../core/entity.ts";
import { EntityExistsError, EntityNotFoundError, ValidationError } from "../../core/errors.ts";
import type { MaybePromise } from "../port.ts";
import type { EntityStore, Guard, Keyed, KeyPage } from "../store.ts";
import { insertEvent } from "./audit.ts";
import { deleteBuckets } from "./buckets.ts";
import type { Row } from "./database/connection.ts";
import { checkRevision } from "./records.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";

/** The entities of a namespace. */
export class SqliteEntities implements EntityStore {
  readonly #namespace: SqliteNamespace;

  constructor(namespace: SqliteNamespace) {
    this.#namespace = namespace;
  }

  async create(entity: Entity, event: AuditEvent, guard: Guard): Promise<void> {
    const { connection, transactions, namespaceId } = this.#namespace;
    const { id, name, parentId, cascade, metadata, createdAt } = entity;
    await transactions.alone(() => {
      checkRevision(this.#namespace, guard);
      if (connection.row(GET, namespaceId, id) !== undefined) throw new EntityExistsError(id);
      if (parentId !== undefined && connection.row(GET, namespaceId, parentId) === undefined)
        throw new EntityNotFoundError(parentId);
      const values = [
        name,
        parentId ?? null,
        cascade ? 1 : 0,
        JSON.stringify(metadata),
        createdAt.getTime(),
      ];
      connection.run(INSERT, namespaceId, id, ...values);
      insertEvent(connection, namespaceId, event);
    });
  }

  update(
    entityId: string,
    change: EntityChange,
    buildEvent: (before: Entity) => AuditEvent,
    guard: Guard,
  ): Promise<Entity> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.alone(() => {
      checkRevision(this.#namespace, guard);
      const row = connection.row(GET, namespaceId, entityId);
      if (row === undefined) throw new EntityNotFoundError(entityId);
      const before = parseEntity(row);
      const event = buildEvent(before);
      const after = { ...before, ...change };
      const values = [after.name, after.cascade ? 1 : 0, JSON.stringify(after.metadata)];
      connection.run(UPDATE, ...values, namespaceId, entityId);
      insertEvent(connection, namespaceId, event);
      return after;
    });
  }

  get(entityId: string): MaybePromise<Entity | undefined> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() => {
      const row = connection.row(GET, namespaceId, entityId);
      return row === undefined ? undefined : parseEntity(row);
    });
  }

  children(parentId: string): MaybePromise<readonly Entity[]> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() =>
      connection.rows(CHILDREN, namespaceId, parentId).map(parseEntity),
    );
  }

  list({ limit, after }: KeyPage): MaybePromise<Keyed<Entity>> {
    const { connection, transactions, namespaceId } = this.#namespace;
    return transactions.read(() => {
      const entities = connection.rows(LIST, namespaceId, after ?? "", limit + 1).map(parseEntity);
      return {
        items: entities.slice(0, limit),
        next: entities.length > limit ? entities[limit - 1]!.id : undefined,
      };
    });
  }

  async delete(entityId: string, event: AuditEvent): Promise<number> {
    const { connection, transactions, namespaceId, config, nowMs } = this.#namespace;
    const { version, recordsDeleted } = await transactions.alone(() => {
      const children = connection.rows(CHILDREN, namespaceId, entityId).length;
      if (children > 0)
        throw new ValidationError(
          "entityId",
          entityId,
          `has ${children} children; delete them first`,
        );
      const limits = connection.run(DELETE_LIMITS, namespaceId, entityId);
      const deleted =
        connection.run(DELETE, namespaceId, entityId) +
        limits +
        deleteBuckets(connection, namespaceId, entityId, nowMs());
      if (deleted === 0) throw new EntityNotFoundError(entityId);
      insertEvent(connection, namespaceId, {
        ...event,
        details: { ...event.details, recordsDeleted: deleted },
      });
      return { version: limits > 0 ? config.increment() : undefined, recordsDeleted: deleted };
    });
    config.noteWritten(version);
    return recordsDeleted;
  }
}

const GET = "SELECT * FROM entities WHERE namespace_id = ? AND entity_id = ?";
const CHILDREN =
  "SELECT * FROM entities WHERE namespace_id = ? AND parent_id = ? ORDER BY entity_id";
const LIST =
  "SELECT * FROM entities WHERE namespace_id = ? AND entity_id > ? ORDER BY entity_id LIMIT ?";
const INSERT = `
  INSERT INTO entities (namespace_id, entity_id, name, parent_id, cascades, metadata, created_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`;
const UPDATE =
  "UPDATE entities SET name = ?, cascades = ?, metadata = ? WHERE namespace_id = ? AND entity_id = ?";
const DELETE = "DELETE FROM entities WHERE namespace_id = ? AND entity_id = ?";
const DELETE_LIMITS = "DELETE FROM limits WHERE namespace_id = ? AND entity_id = ?";

function parseEntity(row: Row): Entity {
  return {
    id: row["entity_id"] as string,
    name: row["name"] as string,
    parentId: (row["parent_id"] as string | null) ?? undefined,
    cascade: row["cascades"] === 1,
    metadata: JSON.parse(row["metadata"] as string) as Readonly<Record<string, string>>,
    createdAt: new Date(row["created_at_ms"] as number),
  };
}
