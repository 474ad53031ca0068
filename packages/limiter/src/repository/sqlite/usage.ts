import { addAmounts, type Amounts } from "../../core/amounts.ts";
import { DAY_MS, windowStartMs, type UsageRow, type UsageWindow } from "../../core/usage.ts";
import type { MaybePromise } from "../port.ts";
import type { PurgeOptions } from "../repository.ts";
import type { Keyed, KeyPage, UsageRange, UsageStore } from "../store.ts";
import type { Row } from "./database/connection.ts";
import type { SqliteNamespace } from "./sqlite-namespace.ts";
import { removeRows } from "./transactions/remove-rows.ts";
import { retentionDays } from "./transactions/usage-hours.ts";

/**
 * The usage of a namespace. Windows are summed from the stored hours and the current hour of each
 * bucket.
 */
export class SqliteUsage implements UsageStore {
  readonly #namespace: SqliteNamespace;
  readonly #isRecorded: boolean;

  constructor(namespace: SqliteNamespace, isRecorded: boolean) {
    this.#namespace = namespace;
    this.#isRecorded = isRecorded;
  }

  rows(range: UsageRange, { limit, after }: KeyPage): MaybePromise<Keyed<UsageRow>> {
    const { connection, transactions, namespaceId, nowMs } = this.#namespace;
    const { entityId = null, resource = null, window, startMs, endMs } = range;
    const [afterStart = -1, afterEntity = "", afterResource = ""] = after?.split("#") ?? [];
    return transactions.read(() => {
      const oldestMs =
        nowMs() - retentionDays(connection, namespaceId, "usageRetentionDays") * DAY_MS;
      const firstMs = Math.max(startMs ?? 0, windowStartMs(window, oldestMs));
      const lastMs = endMs ?? Number.MAX_SAFE_INTEGER;
      const owner = [namespaceId, entityId, entityId, resource, resource];
      const key = [Number(afterStart), afterEntity, afterResource];
      const rows = connection
        .rows(SUM[window], ...owner, firstMs, firstMs, lastMs, ...key, limit + 1)
        .map((row) => usageRow(window, row));
      return {
        items: rows.slice(0, limit),
        next: rows.length > limit ? toKey(rows[limit - 1]!) : undefined,
      };
    });
  }

  erase(entityId: string, options: PurgeOptions): Promise<number> {
    const { namespaceId } = this.#namespace;
    const where = "namespace_id = ? AND entity_id = ?";
    const rows = {
      table: "usage",
      key: "resource, hour_ms",
      where,
      values: [namespaceId, entityId],
    };
    return removeRows(this.#namespace, rows, options);
  }

  getCountedUntilMs(): number | undefined {
    return this.#isRecorded ? Infinity : undefined;
  }
}

/** The start of the window that an hour belongs to. */
const START: Readonly<Record<UsageWindow, string>> = {
  hourly: "hour_ms",
  daily: `hour_ms - hour_ms % ${DAY_MS}`,
  monthly: "CAST(strftime('%s', hour_ms / 1000, 'unixepoch', 'start of month') AS INTEGER) * 1000",
};

const SUM = { hourly: sumBy("hourly"), daily: sumBy("daily"), monthly: sumBy("monthly") };

function sumBy(window: UsageWindow): string {
  return `
    SELECT ${START[window]} AS start_ms, entity_id, resource, SUM(requests) AS requests, json_group_array(counters) AS counters,
      SUM(cascaded_requests) AS cascaded_requests, json_group_array(cascaded_counters) AS cascaded_counters
    FROM (
      SELECT namespace_id, entity_id, resource, hour_ms, requests, counters, cascaded_requests, cascaded_counters FROM usage
      UNION ALL
      SELECT namespace_id, entity_id, resource, hour ->> '$.hourMs', hour ->> '$.requests', hour -> '$.counters',
        COALESCE(hour ->> '$.cascaded.requests', 0), COALESCE(hour -> '$.cascaded.counters', '{}') FROM buckets
      WHERE hour IS NOT NULL
    )
    WHERE namespace_id = ? AND (entity_id = ? OR ? IS NULL) AND (resource = ? OR ? IS NULL) AND hour_ms >= ?
    GROUP BY start_ms, entity_id, resource
    HAVING start_ms >= ? AND start_ms < ? AND (start_ms, entity_id, resource) > (?, ?, ?)
    ORDER BY start_ms, entity_id, resource LIMIT ?`;
}

function usageRow(window: UsageWindow, row: Row): UsageRow {
  return {
    entityId: row["entity_id"] as string,
    resource: row["resource"] as string,
    window,
    windowStartMs: row["start_ms"] as number,
    counters: addHours(row["counters"] as string),
    requests: row["requests"] as number,
    cascaded: addHours(row["cascaded_counters"] as string),
    cascadedRequests: row["cascaded_requests"] as number,
  };
}

/** Adds up the counters of several hours: a JSON array of JSON texts. */
function addHours(hours: string): Amounts {
  const texts = JSON.parse(hours) as readonly string[];
  return texts.map((text) => JSON.parse(text) as Amounts).reduce(addAmounts);
}

function toKey({ windowStartMs: startMs, entityId, resource }: UsageRow): string {
  return `${startMs}#${entityId}#${resource}`;
}
