import { MILLI, type Amounts } from "../../core/amounts.ts";
import { DAY_MS, windowEndMs, type UsageRow, type UsageWindow } from "../../core/usage.ts";
import type { PurgeOptions } from "../repository.ts";
import type { Keyed, KeyPage, UsageRange, UsageStore } from "../store.ts";
import { marshalItem, getNumber, type AttributeMap } from "./transport/attribute-values.ts";
import { batchGet, getKey, queryAll } from "./table/batch.ts";
import { deleteMatching } from "./table/delete-matching.ts";
import type { Connection } from "./table/connection.ts";
import { parseUsageKey } from "./items/key-parsers.ts";
import {
  entityPartition,
  resourcePartition,
  resourceUsagePrefix,
  usageIndexKeys,
  usageKey,
  usagePrefix,
  usageSortKeys,
  windowText,
  type UsageName,
} from "./items/keys.ts";
import type { ItemKey } from "./table/batch.ts";
import type { KeyQuery } from "./table/key-query.ts";
import {
  CASCADED_PREFIX,
  CASCADED_REQUESTS_ATTRIBUTE,
  CONSUMED_PREFIX,
  REQUESTS_ATTRIBUTE,
} from "./items/usage-item.ts";
import type { LastHeartbeat } from "./cache/last-heartbeat.ts";
import type { Retention } from "./cache/retention.ts";

/** Keys write years with four digits. */
const LAST_TIME_MS = Date.UTC(9999, 11, 31);

const BIG_MILLI = BigInt(MILLI);

/** Usage snapshots of one namespace, as the aggregator wrote them. */
export class DynamoUsage implements UsageStore {
  readonly #connection: Connection;
  readonly #namespaceId: string;
  readonly #retention: Retention;
  readonly #heartbeat: LastHeartbeat;

  constructor(options: {
    readonly connection: Connection;
    readonly namespaceId: string;
    readonly retention: Retention;
    readonly heartbeat: LastHeartbeat;
  }) {
    this.#connection = options.connection;
    this.#namespaceId = options.namespaceId;
    this.#retention = options.retention;
    this.#heartbeat = options.heartbeat;
  }

  async getCountedUntilMs(): Promise<number | undefined> {
    return (await this.#heartbeat.read())?.countedUntilMs;
  }

  /** Of every window, also those of a length that only a later version knows. */
  async erase(entityId: string, options: PurgeOptions): Promise<number> {
    const partition = entityPartition(this.#namespaceId, entityId);
    const query = { partition, range: { beginsWith: usageSortKeys } };
    return deleteMatching(this.#connection, query, options);
  }

  async rows(range: UsageRange, { limit, after }: KeyPage): Promise<Keyed<UsageRow>> {
    const oldestMs =
      this.#connection.clock.now() - (await this.#retention.get(this.#namespaceId)).usage * DAY_MS;
    const names: UsageName[] = [];
    for await (const item of queryAll(
      this.#connection,
      usageQuery(this.#namespaceId, range, { limit: limit + 1, after }),
    )) {
      const name = parseUsageKey(getKey(item));
      if (name !== undefined && isWanted(name, range, oldestMs)) names.push(name);
      if (names.length > limit) break;
    }
    const page = names.slice(0, limit);
    const items = await batchGet(
      this.#connection,
      page.map((name): ItemKey => usageKey(this.#namespaceId, name)),
    );
    return {
      items: items.flatMap((item) => (item === undefined ? [] : parseRow(item))),
      next: names.length > limit ? buildCursor(page.at(-1)!) : undefined,
    };
  }
}

/**
 * The keys of snapshots in order of their start: of one entity from the table, of one resource from
 * its index.
 */
function usageQuery(
  namespaceId: string,
  { entityId, resource, window, startMs, endMs }: UsageRange,
  { limit, after }: { readonly limit: number; readonly after: string | undefined },
): KeyQuery {
  const prefix = entityId === undefined ? resourceUsagePrefix(window) : usagePrefix(window);
  // Real keys go on after the start of their window, so the upper end is not part of the range.
  const from = prefix + (startMs === undefined ? "" : formatBound(startMs));
  const to = prefix + (endMs === undefined ? "~" : formatBound(endMs));
  // DynamoDB refuses a range that ends before it starts. From a start to itself there is nothing.
  const range = { from, to: to < from ? from : to };
  const name = after === undefined ? undefined : parseCursor(after, window);
  const key = name && usageKey(namespaceId, name);
  if (entityId !== undefined)
    return {
      partition: entityPartition(namespaceId, entityId),
      range,
      limit,
      after: key && marshalItem({ ...key }),
    };
  const { GSI2PK, GSI2SK } =
    name === undefined ? { GSI2PK: "", GSI2SK: "" } : usageIndexKeys(namespaceId, name);
  return {
    index: "GSI2",
    partition: resourcePartition(namespaceId, resource ?? ""),
    range,
    limit,
    after: key && marshalItem({ ...key, GSI2PK, GSI2SK }),
  };
}

function parseRow(item: AttributeMap): readonly UsageRow[] {
  const name = parseUsageKey(getKey(item));
  if (name === undefined) return [];
  return [
    {
      entityId: name.entityId,
      resource: name.resource,
      window: name.window,
      windowStartMs: name.startMs,
      counters: readTokens(item, CONSUMED_PREFIX),
      requests: getNumber(item[REQUESTS_ATTRIBUTE]) ?? 0,
      cascaded: readTokens(item, CASCADED_PREFIX),
      cascadedRequests: getNumber(item[CASCADED_REQUESTS_ATTRIBUTE]) ?? 0,
    },
  ];
}

/** The counters whose attributes begin with a prefix, by limit. Attributes come in any order. */
function readTokens(item: AttributeMap, prefix: string): Amounts {
  const counters = Object.entries(item).flatMap(
    ([attribute, value]): readonly (readonly [string, number])[] =>
      attribute.startsWith(prefix) && "N" in value
        ? [[attribute.slice(prefix.length), inTokens(value.N)]]
        : [],
  );
  return Object.fromEntries(counters.sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** Millitokens in tokens. Beyond 2^53 no number holds their thousandths: whole tokens are left. */
function inTokens(millitokens: string): number {
  const number = Number(millitokens);
  return Number.isSafeInteger(number) ? number / MILLI : Number(BigInt(millitokens) / BIG_MILLI);
}

/** Hides snapshots whose retention is over, but which DynamoDB has not deleted yet. */
function isWanted(
  name: UsageName,
  { entityId, resource, window }: UsageRange,
  oldestMs: number,
): boolean {
  const isOfBoth =
    (entityId ?? name.entityId) === name.entityId && (resource ?? name.resource) === name.resource;
  return isOfBoth && windowEndMs(window, name.startMs) > oldestMs;
}

/** The first start of a window at or after a time; windows start at whole seconds. */
function formatBound(timeMs: number): string {
  return windowText(Math.min(Math.max(0, Math.ceil(timeMs / 1000) * 1000), LAST_TIME_MS));
}

function buildCursor({ startMs, entityId, resource }: UsageName): string {
  return `${windowText(startMs)}#${entityId}#${resource}`;
}

function parseCursor(cursor: string, window: UsageWindow): UsageName | undefined {
  const [start = "", entityId, resource] = cursor.split("#");
  const startMs = Date.parse(start);
  return entityId === undefined || resource === undefined || Number.isNaN(startMs)
    ? undefined
    : { startMs, entityId, resource, window };
}
