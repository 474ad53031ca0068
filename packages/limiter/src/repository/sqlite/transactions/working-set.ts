import type { Amounts } from "../../../core/amounts.ts";
import type { Bucket } from "../../../core/bucket/bucket.ts";
import { NamespaceNotFoundError } from "../../../core/errors.ts";
import { windowStartMs } from "../../../core/usage.ts";
import type { Connection, Row } from "../database/connection.ts";
import { formatBucketLimits, parseBucketLimits } from "./limit-texts.ts";
import {
  addToHour,
  addUsage,
  type Counted,
  type HourOfUsage,
  type UsageOwner,
} from "./usage-hours.ts";

/** A bucket as it is loaded in one transaction. All members of the transaction share it. */
export interface LoadedBucket {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  /** Undefined until the row is written. */
  id: number | undefined;
  bucket: Bucket;
  /**
   * The hour that is counted in the row of the bucket, which is written anyway. Earlier hours have
   * their own rows.
   */
  hour: HourOfUsage | undefined;
  changed: boolean;
}

/** What a decision on an entity and a resource needs. */
export interface BucketLookup {
  /** Undefined until the bucket exists. */
  loaded: LoadedBucket | undefined;
  /** The parent that calls of the entity also take from. */
  readonly parentId: string | undefined;
  /** The version of the namespace's limits. */
  readonly configVersion: number;
}

/**
 * What the members of one transaction have read and changed. A bucket is read once and written
 * once, however many members take from it. If the transaction fails, the changes are discarded with
 * it.
 */
export class WorkingSet {
  readonly #connection: Connection;
  readonly #found = new Map<string, BucketLookup>();
  readonly #byId = new Map<number, LoadedBucket | undefined>();
  readonly #changed: LoadedBucket[] = [];
  readonly #closedHours: {
    readonly loaded: LoadedBucket;
    readonly hour: HourOfUsage;
    readonly nowMs: number;
  }[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Finds the bucket of an entity and a resource, and what else a decision needs. Throws if the
   * namespace is no longer active.
   */
  find(namespaceId: string, entityId: string, resource: string): BucketLookup {
    const key = `${namespaceId}#${entityId}#${resource}`;
    const held = this.#found.get(key);
    if (held !== undefined) return held;
    const row = this.#connection.row(FIND, entityId, entityId, resource, namespaceId);
    const configVersion = row?.["config_version"];
    if (row === undefined || typeof configVersion !== "number") throw this.#notActive(namespaceId);
    const loaded =
      row["id"] === null
        ? undefined
        : this.#sameBucket(parseBucket(row, { namespaceId, entityId, resource }));
    const found: BucketLookup = {
      loaded,
      parentId: (row["parent_id"] as string | null) ?? undefined,
      configVersion,
    };
    this.#found.set(key, found);
    return found;
  }

  /** The bucket that a lease took from; undefined if it was deleted meanwhile. */
  findById(id: number): LoadedBucket | undefined {
    if (this.#byId.has(id)) return this.#byId.get(id);
    const row = this.#connection.row(FIND_BY_ID, id);
    const loaded = row === undefined ? undefined : parseLoadedBucket(row);
    this.#byId.set(id, loaded);
    return loaded;
  }

  /** Creates a bucket that did not exist when it was looked up. */
  create(found: BucketLookup, owner: UsageOwner, bucket: Bucket): LoadedBucket {
    const { namespaceId, entityId, resource } = owner;
    found.loaded = {
      namespaceId,
      entityId,
      resource,
      id: undefined,
      bucket,
      hour: undefined,
      changed: false,
    };
    return found.loaded;
  }

  /** Changes a bucket. */
  put(loaded: LoadedBucket, bucket: Bucket): void {
    loaded.bucket = bucket;
    if (!loaded.changed) this.#changed.push(loaded);
    loaded.changed = true;
  }

  /** Counts a change in the hour in which it is written. A give-back counts negative. */
  record(loaded: LoadedBucket, amounts: Amounts, counted: Counted, nowMs: number): void {
    const hourMs = windowStartMs("hourly", nowMs);
    if (loaded.hour !== undefined && loaded.hour.hourMs !== hourMs)
      this.#closedHours.push({ loaded, hour: loaded.hour, nowMs });
    if (loaded.hour?.hourMs !== hourMs) loaded.hour = { hourMs, requests: 0, counters: {} };
    addToHour(loaded.hour, amounts, counted);
  }

  /** Writes the changes, and returns the number of changed buckets. */
  write(): number {
    for (const { loaded, hour, nowMs } of this.#closedHours)
      addUsage(this.#connection, loaded, hour, nowMs);
    for (const loaded of this.#changed) this.#writeBucket(loaded);
    return this.#changed.length;
  }

  #writeBucket(loaded: LoadedBucket): void {
    const { limits, balances, refilledAtMs } = loaded.bucket;
    const hour = loaded.hour === undefined ? null : JSON.stringify(loaded.hour);
    const values = [formatBucketLimits(limits), JSON.stringify(balances), refilledAtMs, hour];
    if (loaded.id === undefined)
      loaded.id = this.#connection.insert(
        INSERT,
        ...values,
        loaded.namespaceId,
        loaded.entityId,
        loaded.resource,
      );
    else this.#connection.run(UPDATE, ...values, loaded.id);
  }

  /** The bucket that a settlement has found by its id and may have changed, or else the new one. */
  #sameBucket(loaded: LoadedBucket): LoadedBucket {
    const held = this.#byId.get(loaded.id!) ?? loaded;
    this.#byId.set(loaded.id!, held);
    return held;
  }

  #notActive(namespaceId: string): NamespaceNotFoundError {
    return new NamespaceNotFoundError(
      String(this.#connection.row(READ_NAME, namespaceId)?.["name"] ?? namespaceId),
    );
  }
}

/**
 * Reads everything that a decision on one bucket needs in one statement, and no column more: a
 * statement costs 3 µs, and with libsql each column another 0.4.
 */
const FIND = `
  SELECT b.id, b.limits, b.balances, b.refilled_at_ms, b.hour,
    CASE WHEN e.cascades THEN e.parent_id END AS parent_id,
    CASE n.status WHEN 'active' THEN n.config_version END AS config_version
  FROM namespaces n
  LEFT JOIN entities e ON e.namespace_id = n.namespace_id AND e.entity_id = ?
  LEFT JOIN buckets b ON b.namespace_id = n.namespace_id AND b.entity_id = ? AND b.resource = ?
  WHERE n.namespace_id = ?`;

const FIND_BY_ID = "SELECT * FROM buckets WHERE id = ?";

const READ_NAME = "SELECT name FROM namespaces WHERE namespace_id = ?";

const INSERT = `
  INSERT INTO buckets (limits, balances, refilled_at_ms, hour, namespace_id, entity_id, resource) VALUES (?, ?, ?, ?, ?, ?, ?)`;

const UPDATE =
  "UPDATE buckets SET limits = ?, balances = ?, refilled_at_ms = ?, hour = ? WHERE id = ?";

/** Converts a complete row. */
export function parseLoadedBucket(row: Row): LoadedBucket {
  return parseBucket(row, {
    namespaceId: row["namespace_id"] as string,
    entityId: row["entity_id"] as string,
    resource: row["resource"] as string,
  });
}

function parseBucket(row: Row, { namespaceId, entityId, resource }: UsageOwner): LoadedBucket {
  const { id, limits, balances, refilled_at_ms: refilledAtMs, hour } = row as unknown as BucketRow;
  const bucket = {
    limits: parseBucketLimits(limits),
    refilledAtMs,
    balances: JSON.parse(balances) as readonly number[],
  };
  const counted = hour === null ? undefined : (JSON.parse(hour) as HourOfUsage);
  return { namespaceId, entityId, resource, id, bucket, hour: counted, changed: false };
}

/** The columns of a bucket's row, without its key. */
interface BucketRow {
  readonly id: number;
  readonly limits: string;
  readonly balances: string;
  readonly refilled_at_ms: number;
  readonly hour: string | null;
}
