import { getAmount, type Amounts } from "../../../core/amounts.ts";
import { DAY_MS, DEFAULT_RETENTION_DAYS, windowStartMs } from "../../../core/usage.ts";
import type { Connection, SqlValue } from "../database/connection.ts";

/** Requests, and whole tokens by limit. */
interface Tally {
  requests: number;
  readonly counters: Record<string, number>;
}

/** What one entity used of one resource in one hour: all that was charged to it. */
export interface HourOfUsage extends Tally {
  readonly hourMs: number;
  /** How much of it came by cascade. Only parents have it. */
  cascaded?: Tally;
}

/** How a change is counted. */
export interface Counted {
  readonly requests: number;
  /** Whether it came to a parent by cascade. */
  readonly isCascaded: boolean;
}

/**
 * Adds a change to an hour, in place, because every call adds to its hour, and an hour has one
 * owner. What came by cascade is counted once more, by itself.
 */
export function addToHour(
  hour: HourOfUsage,
  amounts: Amounts,
  { requests, isCascaded }: Counted,
): void {
  addTally(hour, { requests, counters: amounts });
  if (!isCascaded) return;
  hour.cascaded ??= { requests: 0, counters: {} };
  addTally(hour.cascaded, { requests, counters: amounts });
}

/** The entity and resource that usage belongs to. */
export interface UsageOwner {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

/**
 * Adds to the stored usage of an hour. Days and months are summed from hours when they are queried,
 * because writing three rows for every change would cost more than the change. Hours are therefore
 * kept for as long as their month.
 */
export function addUsage(
  connection: Connection,
  owner: UsageOwner,
  hour: HourOfUsage,
  nowMs: number,
): void {
  if (!isUsed(hour)) return;
  const { namespaceId, entityId, resource } = owner;
  const stored = connection.row(READ_HOUR, namespaceId, entityId, resource, hour.hourMs);
  const all = parseTally(stored?.["requests"], stored?.["counters"]);
  const cascaded = parseTally(stored?.["cascaded_requests"], stored?.["cascaded_counters"]);
  addTally(all, hour);
  if (hour.cascaded !== undefined) addTally(cascaded, hour.cascaded);
  connection.run(
    WRITE_HOUR,
    namespaceId,
    entityId,
    resource,
    hour.hourMs,
    all.requests,
    JSON.stringify(all.counters),
    cascaded.requests,
    JSON.stringify(cascaded.counters),
  );
  dropOldUsage(connection, namespaceId, nowMs);
}

/** How many days a namespace keeps its usage or its audit events. */
export function retentionDays(
  connection: Connection,
  namespaceId: string,
  kind: "usageRetentionDays" | "auditRetentionDays",
): number {
  const text = connection.row(READ_SETTINGS, namespaceId)?.["settings"];
  const settings =
    typeof text === "string"
      ? (JSON.parse(text) as Readonly<Record<string, number | undefined>>)
      : {};
  return settings[kind] ?? DEFAULT_RETENTION_DAYS;
}

/** A parent's own calls and a give-back by cascade may add up to nothing, and still count. */
function isUsed({ requests, counters, cascaded }: HourOfUsage): boolean {
  return requests !== 0 || Object.keys(counters).length > 0 || (cascaded?.requests ?? 0) !== 0;
}

function parseTally(requests: SqlValue = 0, counters: SqlValue = "{}"): Tally {
  return {
    requests: Number(requests),
    counters: JSON.parse(String(counters)) as Record<string, number>,
  };
}

function addTally(
  held: Tally,
  { requests, counters }: { readonly requests: number; readonly counters: Amounts },
): void {
  held.requests += requests;
  for (const name in counters)
    held.counters[name] = getAmount(held.counters, name) + counters[name]!;
}

/**
 * How many expired rows each new row removes: more than one, so that removal outpaces growth, and
 * few, so that it takes no noticeable time.
 */
export const SWEPT_PER_ROW = 4;

function dropOldUsage(connection: Connection, namespaceId: string, nowMs: number): void {
  const oldestMs = nowMs - retentionDays(connection, namespaceId, "usageRetentionDays") * DAY_MS;
  connection.run(
    DROP_OLD,
    namespaceId,
    namespaceId,
    windowStartMs("monthly", oldestMs),
    SWEPT_PER_ROW,
  );
}

const READ_HOUR =
  "SELECT requests, counters, cascaded_requests, cascaded_counters FROM usage WHERE namespace_id = ? AND entity_id = ? AND resource = ? AND hour_ms = ?";

const WRITE_HOUR = `
  INSERT INTO usage
    (namespace_id, entity_id, resource, hour_ms, requests, counters, cascaded_requests, cascaded_counters)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET requests = excluded.requests, counters = excluded.counters,
    cascaded_requests = excluded.cascaded_requests, cascaded_counters = excluded.cascaded_counters`;

const READ_SETTINGS =
  "SELECT settings FROM limits WHERE namespace_id = ? AND resource = '' AND entity_id = ''";

const DROP_OLD = `
  DELETE FROM usage WHERE namespace_id = ? AND (entity_id, resource, hour_ms) IN
    (SELECT entity_id, resource, hour_ms FROM usage WHERE namespace_id = ? AND hour_ms < ? LIMIT ?)`;
