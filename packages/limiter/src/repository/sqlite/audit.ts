import type { AuditEvent } from "../../core/audit.ts";
import { DAY_MS } from "../../core/usage.ts";
import type { MaybePromise } from "../port.ts";
import type { PurgeOptions } from "../repository.ts";
import type { AuditStore, Keyed, KeyPage } from "../store.ts";
import type { Connection, Row } from "./database/connection.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";
import { removeRows } from "./transactions/remove-rows.ts";
import { retentionDays, SWEPT_PER_ROW } from "./transactions/usage-hours.ts";

/** The audit events of a namespace. */
export class SqliteAudit implements AuditStore {
  readonly #namespace: SqliteNamespace;

  constructor(namespace: SqliteNamespace) {
    this.#namespace = namespace;
  }

  async add(event: AuditEvent): Promise<void> {
    const { connection, transactions, namespaceId } = this.#namespace;
    await transactions.alone(() => insertEvent(connection, namespaceId, event));
  }

  erase(entityId: string, options: PurgeOptions): Promise<number> {
    const { namespaceId } = this.#namespace;
    const where = "namespace_id = ? AND entity_id = ?";
    const rows = { table: "audit", key: "event_id", where, values: [namespaceId, entityId] };
    return removeRows(this.#namespace, rows, options);
  }

  events(entityId: string, { limit, after }: KeyPage): MaybePromise<Keyed<AuditEvent>> {
    const { connection, transactions, namespaceId, nowMs } = this.#namespace;
    return transactions.read(() => {
      const oldestMs = oldestKeptMs(connection, namespaceId, nowMs());
      const rows = connection
        .rows(EVENTS, namespaceId, entityId, after ?? AFTER_EVERY_ID, oldestMs, limit + 1)
        .map(parseEvent);
      return {
        items: rows.slice(0, limit),
        next: rows.length > limit ? rows[limit - 1]!.eventId : undefined,
      };
    });
  }
}

/** Writes an event in the transaction of its change, and removes a few expired events. */
export function insertEvent(connection: Connection, namespaceId: string, event: AuditEvent): void {
  const { entityId, eventId, action, principal = null, resource = null } = event;
  const timeMs = event.timestamp.getTime();
  const details = JSON.stringify(event.details);
  connection.run(
    INSERT,
    namespaceId,
    entityId,
    eventId,
    timeMs,
    action,
    principal,
    resource,
    details,
  );
  connection.run(
    DROP_OLD,
    namespaceId,
    namespaceId,
    oldestKeptMs(connection, namespaceId, timeMs),
    SWEPT_PER_ROW,
  );
}

/** Sorts after every ULID. */
const AFTER_EVERY_ID = "~";

const INSERT = `
  INSERT INTO audit (namespace_id, entity_id, event_id, time_ms, action, principal, resource, details) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

const EVENTS = `
  SELECT * FROM audit WHERE namespace_id = ? AND entity_id = ? AND event_id < ? AND time_ms >= ? ORDER BY event_id DESC LIMIT ?`;

const DROP_OLD = `
  DELETE FROM audit WHERE namespace_id = ? AND (entity_id, event_id) IN
    (SELECT entity_id, event_id FROM audit WHERE namespace_id = ? AND time_ms < ? LIMIT ?)`;

function oldestKeptMs(connection: Connection, namespaceId: string, nowMs: number): number {
  return nowMs - retentionDays(connection, namespaceId, "auditRetentionDays") * DAY_MS;
}

function parseEvent(row: Row): AuditEvent {
  return {
    eventId: row["event_id"] as string,
    timestamp: new Date(row["time_ms"] as number),
    entityId: row["entity_id"] as string,
    action: row["action"] as string,
    principal: (row["principal"] as string | null) ?? undefined,
    resource: (row["resource"] as string | null) ?? undefined,
    details: JSON.parse(row["details"] as string) as Readonly<Record<string, unknown>>,
  };
}
