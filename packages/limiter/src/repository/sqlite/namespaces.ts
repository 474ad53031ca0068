import { NamespaceNotFoundError, NamespaceStateError } from "../../core/errors.ts";
import type { NamespaceInfo, NamespaceStatus } from "../../core/namespace.ts";
import type { MaybePromise } from "../port.ts";
import type { PurgeOptions } from "../repository.ts";
import type { NamespaceNote, NamespaceStore } from "../store.ts";
import { insertEvent } from "./audit.ts";
import type { Connection, Row } from "./database/connection.ts";
import { removeRows } from "./transactions/remove-rows.ts";
import type { Transactions } from "./transactions/transactions.ts";

/** Namespaces by id. A unique index allows one active namespace for each name. */
export class SqliteNamespaces implements NamespaceStore {
  readonly filesNotes = true;
  readonly #connection: Connection;
  readonly #transactions: Transactions;

  constructor(connection: Connection, transactions: Transactions) {
    this.#connection = connection;
    this.#transactions = transactions;
  }

  async register(
    name: string,
    newId: () => string,
    nowMs: number,
    note?: NamespaceNote,
  ): Promise<{ readonly namespaceId: string; readonly created: boolean }> {
    const held = await this.byName(name);
    if (held !== undefined) return { namespaceId: held.namespaceId, created: false };
    return this.#transactions.alone(() => {
      const row = this.#connection.row(BY_NAME, name);
      if (row !== undefined) return { namespaceId: parseInfo(row).namespaceId, created: false };
      let namespaceId = newId();
      while (this.#connection.row(BY_ID, namespaceId) !== undefined) namespaceId = newId();
      this.#connection.run(INSERT, namespaceId, name, nowMs);
      this.#file(note, name, namespaceId);
      return { namespaceId, created: true };
    });
  }

  byName(name: string): MaybePromise<NamespaceInfo | undefined> {
    return this.#transactions.read(() => optionalInfo(this.#connection.row(BY_NAME, name)));
  }

  byId(namespaceId: string): MaybePromise<NamespaceInfo | undefined> {
    return this.#transactions.read(() => optionalInfo(this.#connection.row(BY_ID, namespaceId)));
  }

  list(): MaybePromise<readonly NamespaceInfo[]> {
    return this.#transactions.read(() => this.#connection.rows(LIST).map(parseInfo));
  }

  async delete(name: string, nowMs: number, note?: NamespaceNote): Promise<string | undefined> {
    return this.#transactions.alone(() => {
      const row = this.#connection.row(BY_NAME, name);
      if (row === undefined) return undefined;
      const { namespaceId } = parseInfo(row);
      this.#connection.run(SET_STATUS, "deleted", nowMs, namespaceId);
      this.#file(note, name, namespaceId);
      return namespaceId;
    });
  }

  async recover(namespaceId: string, note?: NamespaceNote): Promise<string> {
    return this.#transactions.alone(() => {
      const info = optionalInfo(this.#connection.row(BY_ID, namespaceId));
      if (info === undefined) throw new NamespaceNotFoundError(namespaceId);
      if (info.status !== "deleted")
        throw new NamespaceStateError(
          info.name,
          info.status,
          "only a deleted namespace can be recovered",
        );
      if (this.#connection.row(BY_NAME, info.name) !== undefined)
        throw new NamespaceStateError(
          info.name,
          "active",
          "the name was registered again; delete that namespace first",
        );
      this.#connection.run(SET_STATUS, "active", null, namespaceId);
      this.#file(note, info.name, namespaceId);
      return info.name;
    });
  }

  async purge(
    namespaceId: string,
    { onProgress, signal }: PurgeOptions,
    note?: NamespaceNote,
  ): Promise<boolean> {
    signal?.throwIfAborted();
    const name = await this.#transactions.alone(() => this.#beginPurge(namespaceId));
    let deleted = 0;
    const place = { connection: this.#connection, transactions: this.#transactions };
    for (const table of TABLES_OF_A_NAMESPACE) {
      const rows = { ...table, where: "namespace_id = ?", values: [namespaceId] };
      const before = deleted;
      deleted += await removeRows(place, rows, {
        ...(signal !== undefined && { signal }),
        onProgress: (count) => onProgress?.(before + count),
      });
    }
    // Another process may have been about to write when the namespace was purged before.
    if (name === undefined && deleted === 0) return false;
    await this.#transactions.alone(() => {
      this.#connection.run(DELETE, namespaceId);
      this.#file(note, name, namespaceId);
    });
    onProgress?.(deleted);
    return true;
  }

  /** Marks a namespace as being purged and returns its name; undefined if there is none. */
  #beginPurge(namespaceId: string): string | undefined {
    const info = optionalInfo(this.#connection.row(BY_ID, namespaceId));
    if (info === undefined) return undefined;
    if (info.status === "active")
      throw new NamespaceStateError(info.name, "active", "delete it before you purge it");
    this.#connection.run(SET_STATUS, "purging", info.deletedAt?.getTime() ?? null, namespaceId);
    return info.name;
  }

  /** Writes the event of a change in the transaction of the change. */
  #file(note: NamespaceNote | undefined, name: string | undefined, namespaceId: string): void {
    if (note !== undefined)
      insertEvent(this.#connection, note.filedIn, note.event({ name, namespaceId }));
  }
}

const BY_NAME = "SELECT * FROM namespaces WHERE name = ? AND status = 'active'";
const BY_ID = "SELECT * FROM namespaces WHERE namespace_id = ?";
const LIST = "SELECT * FROM namespaces ORDER BY name, namespace_id";
const INSERT =
  "INSERT INTO namespaces (namespace_id, name, status, created_at_ms) VALUES (?, ?, 'active', ?)";
const SET_STATUS = "UPDATE namespaces SET status = ?, deleted_at_ms = ? WHERE namespace_id = ?";
const DELETE = "DELETE FROM namespaces WHERE namespace_id = ?";

/** The tables with data of a namespace, and the columns that identify a row. */
const TABLES_OF_A_NAMESPACE = [
  { table: "buckets", key: "id" },
  { table: "usage", key: "entity_id, resource, hour_ms" },
  { table: "audit", key: "entity_id, event_id" },
  { table: "limits", key: "resource, entity_id" },
  { table: "entities", key: "entity_id" },
  { table: "provisioner", key: "namespace_id" },
] as const;

function optionalInfo(row: Row | undefined): NamespaceInfo | undefined {
  return row === undefined ? undefined : parseInfo(row);
}

function parseInfo(row: Row): NamespaceInfo {
  const deletedAtMs = row["deleted_at_ms"] as number | null;
  return {
    name: row["name"] as string,
    namespaceId: row["namespace_id"] as string,
    status: row["status"] as NamespaceStatus,
    createdAt: new Date(row["created_at_ms"] as number),
    deletedAt: deletedAtMs === null ? undefined : new Date(deletedAtMs),
  };
}
