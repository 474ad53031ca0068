import { MILLI, type Amounts } from "../../src/core/amounts.ts";
import type { UsageRow } from "../../src/core/usage.ts";
import {
  heartbeatKey,
  usageIndexKeys,
  usageKey,
  windowText,
} from "../../src/repository/dynamodb/items/keys.ts";
import {
  CASCADED_PREFIX,
  CASCADED_REQUESTS_ATTRIBUTE,
  CONSUMED_PREFIX,
  REQUESTS_ATTRIBUTE,
} from "../../src/repository/dynamodb/items/usage-item.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";

/** The item of a usage snapshot, as the aggregator writes it; `ttl` is in seconds since 1970. */
export function usageItem(
  namespaceId: string,
  row: Omit<UsageRow, "cascaded" | "cascadedRequests"> & Partial<UsageRow>,
  ttl: number,
): AttributeMap {
  const { entityId, resource, window, windowStartMs: startMs, cascaded, cascadedRequests } = row;
  const name = { entityId, resource, window, startMs };
  return marshalItem({
    ...usageKey(namespaceId, name),
    ...usageIndexKeys(namespaceId, name),
    entity_id: entityId,
    resource,
    window,
    window_start: windowText(startMs),
    ...inMillitokens(CONSUMED_PREFIX, row.counters),
    [REQUESTS_ATTRIBUTE]: row.requests,
    ...inMillitokens(CASCADED_PREFIX, cascaded ?? {}),
    ...(cascadedRequests !== undefined && { [CASCADED_REQUESTS_ATTRIBUTE]: cascadedRequests }),
    ttl,
  });
}

/** The item of a table's heartbeat, as an aggregator writes it. */
export function heartbeatItem(countedUntilMs: number): AttributeMap {
  return marshalItem({
    ...heartbeatKey(),
    counted_until_ms: countedUntilMs,
    seen_ms: countedUntilMs,
    written_by: "test",
  });
}

function inMillitokens(prefix: string, amounts: Amounts): Record<string, number> {
  const attributes = Object.entries(amounts).map(([name, tokens]) => [
    prefix + name,
    Math.round(tokens * MILLI),
  ]);
  return Object.fromEntries(attributes) as Record<string, number>;
}
