import { amountOf, type Amounts } from "../../../core/amounts.ts";
import { DAY_MS, DEFAULT_RETENTION_DAYS, windowStartMs } from "../../../core/usage.ts";
import type { Connection } from "../database/connection.ts";

/** What one entity used of one resource in one hour. */
export interface HourOfUsage {
  readonly hourMs: number;
  requests: number;
  /** Whole tokens by limit. */
  readonly counters: Record<string, number>;
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
  if (hour.requests === 0 && Object.keys(hour.counters).length === 0) return;
  const { namespaceId, entityId, resource } = owner;
  const stored = connection.row(READ_HOUR, namespaceId, entityId, resource, hour.hourMs);
  const counters = JSON.parse((stored?.["counters"] as string | undefined) ?? "{}") as Record<
    string,
    number
  >;
  addAmountsTo(counters, hour.counters);
  const requests = Number(stored?.["requests"] ?? 0) + hour.requests;
  connection.run(
    WRITE_HOUR,
    namespaceId,
    entityId,
    resource,
    hour.hourMs,
    requests,
    JSON.stringify(counters),
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

/** Adds in place, because every call adds to its hour, and an hour has one owner. */
export function addAmountsTo(counters: Record<string, number>, amounts: Amounts): void {
  for (const name in amounts) counters[name] = amountOf(counters, name) + amounts[name]!;
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
  "SELECT requests, counters FROM usage WHERE namespace_id = ? AND entity_id = ? AND resource = ? AND hour_ms = ?";

const WRITE_HOUR = `
  INSERT INTO usage (namespace_id, entity_id, resource, hour_ms, requests, counters) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET requests = excluded.requests, counters = excluded.counters`;

const READ_SETTINGS =
  "SELECT settings FROM limits WHERE namespace_id = ? AND resource = '' AND entity_id = ''";

const DROP_OLD = `
  DELETE FROM usage WHERE namespace_id = ? AND (entity_id, resource, hour_ms) IN
    (SELECT entity_id, resource, hour_ms FROM usage WHERE namespace_id = ? AND hour_ms < ? LIMIT ?)`;
