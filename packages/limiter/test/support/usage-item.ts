import type { UsageRow } from "../../src/core/usage.ts";
import { usageIndexKeys, usageKey, windowText } from "../../src/repository/dynamodb/items/keys.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";

/** The item of a usage snapshot, as the aggregator writes it; `ttl` is in seconds since 1970. */
export function usageItem(
  namespaceId: string,
  row: Omit<UsageRow, "cascaded" | "cascadedRequests">,
  ttl: number,
): AttributeMap {
  const { entityId, resource, window, windowStartMs: startMs } = row;
  const name = { entityId, resource, window, startMs };
  const counters = Object.entries(row.counters).map(([limitName, tokens]) => [
    `u_${limitName}`,
    tokens,
  ]);
  return marshalItem({
    ...usageKey(namespaceId, name),
    ...usageIndexKeys(namespaceId, name),
    entity_id: entityId,
    resource,
    window,
    window_start: windowText(startMs),
    ...Object.fromEntries(counters),
    requests: row.requests,
    ttl,
  });
}
