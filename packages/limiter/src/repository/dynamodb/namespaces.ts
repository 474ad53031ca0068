import { NamespaceNotFoundError, NamespaceStateError } from "../../core/errors.ts";
import type { NamespaceInfo } from "../../core/namespace.ts";
import type { NamespaceStore } from "../store.ts";
import type { AttributeMap } from "./transport/attribute-values.ts";
import { queryAll } from "./table/batch.ts";
import { deleteMatching } from "./table/delete-matching.ts";
import { contention } from "./table/table-errors.ts";
import type { Connection } from "./table/connection.ts";
import type { ItemReader } from "./table/item-reader.ts";
import {
  namespaceIdKey,
  namespaceIdPrefix,
  namespaceNameKey,
  namespaceNamePrefix,
  systemPartition,
  TABLE_NAMESPACE,
} from "./items/keys.ts";
import {
  beginPurge,
  deleteWrites,
  endPurge,
  parseNamespace,
  recoverWrites,
  registerWrites,
} from "./items/namespace-items.ts";
import type { KeyQuery } from "./table/key-query.ts";

/**
 * The most decisions on one change: it is decided again when another process changed the namespace
 * first.
 */
const MAX_DECISIONS = 5;

interface PurgeOptions {
  readonly onProgress?: (deletedItems: number) => void;
  readonly signal?: AbortSignal;
}

/** Namespaces of one table. */
export class DynamoNamespaces implements NamespaceStore {
  readonly #connection: Connection;
  readonly #reader: ItemReader;
  readonly #recordVersion: (nowMs: number) => Promise<void>;
  readonly #onChange: (namespaceId: string) => void;

  constructor(
    connection: Connection,
    reader: ItemReader,
    observers: {
      /** Called before a namespace is registered: a table that has one has a version record. */
      readonly recordVersion: (nowMs: number) => Promise<void>;
      /** Called for every namespace whose state this process has changed. */
      readonly onChange: (namespaceId: string) => void;
    },
  ) {
    this.#connection = connection;
    this.#reader = reader;
    this.#recordVersion = observers.recordVersion;
    this.#onChange = observers.onChange;
  }

  async register(
    name: string,
    newId: () => string,
    nowMs: number,
  ): Promise<{ readonly namespaceId: string; readonly created: boolean }> {
    for (let decision = 1; decision <= MAX_DECISIONS; decision += 1) {
      const held = await this.byName(name);
      if (held !== undefined) return { namespaceId: held.namespaceId, created: false };
      const namespaceId = newId();
      const info: NamespaceInfo = {
        name,
        namespaceId,
        status: "active",
        createdAt: new Date(nowMs),
        deletedAt: undefined,
      };
      await this.#recordVersion(nowMs);
      if (await this.#apply(registerWrites(info))) return { namespaceId, created: true };
    }
    throw contention(`registering namespace ${name}`, this.#connection.tableName);
  }

  async byName(name: string): Promise<NamespaceInfo | undefined> {
    return toInfo(await this.#reader.get(namespaceNameKey(name)));
  }

  async byId(namespaceId: string): Promise<NamespaceInfo | undefined> {
    return toInfo(await this.#reader.get(namespaceIdKey(namespaceId)));
  }

  async list(): Promise<readonly NamespaceInfo[]> {
    const namespaces: NamespaceInfo[] = [];
    for await (const item of queryAll(this.#connection, namespacesQuery(namespaceIdPrefix)))
      namespaces.push(parseNamespace(item));
    return namespaces.sort((left, right) => (left.name < right.name ? -1 : 1));
  }

  async delete(name: string, nowMs: number): Promise<string | undefined> {
    for (let decision = 1; decision <= MAX_DECISIONS; decision += 1) {
      const info = await this.byName(name);
      if (info === undefined) return undefined;
      if (await this.#apply(deleteWrites(info, nowMs))) {
        this.#onChange(info.namespaceId);
        return info.namespaceId;
      }
    }
    throw contention(`deleting namespace ${name}`, this.#connection.tableName);
  }

  async recover(namespaceId: string): Promise<string> {
    for (let decision = 1; decision <= MAX_DECISIONS; decision += 1) {
      const info = await this.byId(namespaceId);
      if (info === undefined) throw new NamespaceNotFoundError(namespaceId);
      if (info.status !== "deleted")
        throw new NamespaceStateError(
          info.name,
          info.status,
          "only a deleted namespace can be recovered",
        );
      if ((await this.byName(info.name)) !== undefined)
        throw new NamespaceStateError(
          info.name,
          "active",
          "the name was registered again; delete that namespace first",
        );
      if (await this.#apply(recoverWrites(info))) {
        this.#onChange(namespaceId);
        return info.name;
      }
    }
    throw contention(`recovering namespace ${namespaceId}`, this.#connection.tableName);
  }

  async purge(namespaceId: string, { onProgress, signal }: PurgeOptions): Promise<boolean> {
    // The registry itself is filed like a namespace.
    if (namespaceId === TABLE_NAMESPACE) return false;
    const info = (await this.byId(namespaceId)) ?? (await this.#findByName(namespaceId));
    if (info?.status === "active")
      throw new NamespaceStateError(info.name, "active", "delete it before you purge it");
    signal?.throwIfAborted();
    // From here on no aggregator counts for it, and no client creates a bucket in it. What was
    // under way may still arrive after everything was deleted: the purge of a namespace that is
    // gone removes that.
    if (info !== undefined && !(await this.#apply([{ Update: beginPurge(info) }])))
      throw new NamespaceStateError(
        info.name,
        "active",
        "another process has recovered or purged it meanwhile; check its state and try again",
      );
    let deletedItems = 0;
    for (let found = Infinity; found > 0; deletedItems += found) {
      // The index lags behind the table, so a pass may miss what was written last and see what it
      // has just deleted: passes are repeated until one finds nothing. A purge that was interrupted
      // continues with what is left.
      const before = deletedItems;
      found = await deleteMatching(this.#connection, itemsQuery(namespaceId), {
        signal,
        onProgress: (count) => onProgress?.(before + count),
      });
    }
    if (info !== undefined) await this.#apply([{ Delete: endPurge(info) }]);
    this.#onChange(namespaceId);
    return info !== undefined || deletedItems > 0;
  }

  /** Finds a namespace whose record by id is missing: the Python zae-limiter may have lost it. */
  async #findByName(namespaceId: string): Promise<NamespaceInfo | undefined> {
    for await (const item of queryAll(this.#connection, namespacesQuery(namespaceNamePrefix))) {
      const info = parseNamespace(item);
      if (info.namespaceId === namespaceId) return info;
    }
    return undefined;
  }

  async #apply(writes: Parameters<Connection["transact"]>[0]): Promise<boolean> {
    return (await this.#connection.transact(writes)).applied;
  }
}

/** Every namespace by its id, whatever its state, or every active one by its name. */
function namespacesQuery(beginsWith: string): KeyQuery {
  return { partition: systemPartition(TABLE_NAMESPACE), range: { beginsWith } };
}

/** The keys of all items of a namespace, of whatever kind. */
function itemsQuery(namespaceId: string): KeyQuery {
  return { index: "GSI4", partition: namespaceId, range: { from: " ", to: "~" } };
}

function toInfo(item: AttributeMap | undefined): NamespaceInfo | undefined {
  return item === undefined ? undefined : parseNamespace(item);
}
