import { ulidTime, type AuditEvent } from "../../core/audit.ts";
import { DAY_MS } from "../../core/usage.ts";
import type { PurgeOptions } from "../repository.ts";
import type { AuditStore, Guard, Keyed, KeyPage } from "../store.ts";
import {
  marshalItem,
  getNumber,
  getString,
  unmarshalItem,
  type AttributeMap,
  type Value,
} from "./transport/attribute-values.ts";
import { getKey, marshalKey, queryAll } from "./table/batch.ts";
import { deleteMatching } from "./table/delete-matching.ts";
import type { Connection, Transacted, TransactItem } from "./table/connection.ts";
import { transactGuarded } from "./items/transact-guarded.ts";
import { parseAuditPartition, parseEventId } from "./items/key-parsers.ts";
import {
  archiveFolder,
  auditKey,
  auditPartition,
  auditPrefix,
  namespaceIndexKeys,
} from "./items/keys.ts";
import type { KeyQuery } from "./table/key-query.ts";
import type { Retention } from "./cache/retention.ts";

/**
 * Audit events of one namespace. DynamoDB deletes them when their time to live is over; until it
 * does, reads hide them.
 */
export class DynamoAudit implements AuditStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #retention: Retention;

  constructor(connection: Connection, namespaceId: string, retention: Retention) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
    this.#retention = retention;
  }

  async events(entityId: string, { limit, after }: KeyPage): Promise<Keyed<AuditEvent>> {
    const nowMs = this.#connection.clock.now();
    const query = eventsQuery(this.#namespaceId, entityId, {
      oldestMs: nowMs - (await this.#retention.get(this.#namespaceId)).audit * DAY_MS,
      limit: limit + 1,
      after,
    });
    const items: AuditEvent[] = [];
    for await (const item of queryAll(this.#connection, query)) {
      if ((getNumber(item["ttl"]) ?? Infinity) * 1000 > nowMs) items.push(parseEvent(item));
      if (items.length > limit) break;
    }
    return {
      items: items.slice(0, limit),
      next: items.length > limit ? items[limit - 1]!.eventId : undefined,
    };
  }

  async add(event: AuditEvent): Promise<void> {
    await this.#connection.repeat("PutItem", await this.#put(event));
  }

  async erase(entityId: string, options: PurgeOptions): Promise<number> {
    const partition = auditPartition(this.#namespaceId, entityId);
    const query = { partition, range: { beginsWith: auditPrefix } };
    return deleteMatching(this.#connection, query, options);
  }

  archivedUnder(namespaceName: string): string {
    return archiveFolder(namespaceName);
  }

  /**
   * Makes a change together with its event, if the guard holds; otherwise throws
   * `ApplyConflictError`. The reasons of a cancelled transaction begin with those of the writes.
   */
  async transact(
    writes: readonly TransactItem[],
    event: AuditEvent,
    guard: Guard,
  ): Promise<Transacted> {
    const items = [...writes, { Put: await this.#put(event) }];
    return transactGuarded(this.#connection, this.#namespaceId, items, guard);
  }

  async #put(event: AuditEvent): Promise<{ readonly Item: AttributeMap }> {
    const { audit } = await this.#retention.get(this.#namespaceId);
    return { Item: eventItem(this.#namespaceId, event, audit) };
  }
}

/** Finds events, newest first, not older than `oldestMs`: event ids begin with their time. */
function eventsQuery(
  namespaceId: string,
  entityId: string,
  options: {
    readonly oldestMs: number;
    readonly limit: number;
    readonly after: string | undefined;
  },
): KeyQuery {
  return {
    partition: auditPartition(namespaceId, entityId),
    range: { from: auditPrefix + ulidTime(Math.floor(options.oldestMs)), to: `${auditPrefix}~` },
    newestFirst: true,
    limit: options.limit,
    after:
      options.after === undefined
        ? undefined
        : marshalKey(auditKey(namespaceId, entityId, options.after)),
  };
}

/** The item of an event that is kept for a number of days. */
function eventItem(namespaceId: string, event: AuditEvent, retentionDays: number): AttributeMap {
  const key = auditKey(namespaceId, event.entityId, event.eventId);
  return marshalItem({
    ...key,
    ...namespaceIndexKeys(namespaceId, key),
    entity_id: event.entityId,
    event_id: event.eventId,
    timestamp: event.timestamp.toISOString(),
    action: event.action,
    principal: event.principal ?? null,
    resource: event.resource ?? null,
    details: event.details as { readonly [name: string]: Value },
    ttl: Math.ceil(event.timestamp.getTime() / 1000) + (retentionDays * DAY_MS) / 1000,
  });
}

/** The event of an item. */
export function parseEvent(item: AttributeMap): AuditEvent {
  const { PK, SK } = getKey(item);
  const details = item["details"];
  return {
    eventId: parseEventId(SK) ?? "",
    timestamp: new Date(getString(item["timestamp"]) ?? 0),
    entityId: parseAuditPartition(PK)?.entityId ?? "",
    action: getString(item["action"]) ?? "",
    principal: getString(item["principal"]),
    resource: getString(item["resource"]),
    details: details !== undefined && "M" in details ? unmarshalItem(details.M) : {},
  };
}
