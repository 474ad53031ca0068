import { seededRandom } from "zae-limiter/testing";
import { USAGE_WINDOWS, type UsageWindow } from "../../src/core/usage.ts";
import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import { UsageCounter } from "../../src/repository/dynamodb/aggregator/usage/usage-counter.ts";
import { Expiring } from "../../src/repository/dynamodb/cache/expiring.ts";
import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { getKey } from "../../src/repository/dynamodb/table/batch.ts";
import {
  marshalItem,
  unmarshalItem,
  type AttributeMap,
  type Value,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { ScriptedTable, SkippingClock } from "./scripted-table.ts";

/** Days that these processes keep usage for. */
export const USAGE_DAYS = 30;

/** A counter of usage on a table in memory. */
export interface UsageProcess {
  readonly table: ScriptedTable;
  readonly connection: Connection;
  readonly clock: SkippingClock;
  readonly counter: UsageCounter;
}

/** Starts a process; several may share a table. */
export function usageProcess({
  table = new ScriptedTable(),
  transport = table,
  windows = USAGE_WINDOWS,
  random = seededRandom(1),
}: {
  readonly table?: ScriptedTable;
  /** What lies between the process and the table. */
  readonly transport?: DynamoTransport;
  readonly windows?: readonly UsageWindow[];
  readonly random?: () => number;
} = {}): UsageProcess {
  const clock = new SkippingClock();
  const connection = new Connection({
    transport,
    tableName: "table",
    clock,
    random,
    requestTimeoutMs: 60_000,
    maxAttempts: 3,
  });
  const retention = new Expiring({
    read: async () => ({ audit: 1, usage: USAGE_DAYS }),
    clock,
    ttlMs: 60_000,
  });
  const counter = new UsageCounter({ connection, windows, retention });
  return { table, connection, clock, counter };
}

/** An item of a bucket: its totals, and whatever else a test says. */
export function bucketItem(
  attributes: Readonly<Record<string, Value | undefined>>,
  shard = 0,
): AttributeMap {
  return marshalItem({ PK: `ns/BUCKET#e#r#${shard}`, SK: "#STATE", cr: "w.0001", ...attributes });
}

/** The records of an item that is written again and again, the first write creates it. */
export function listRecords(
  items: readonly (AttributeMap | undefined)[],
  { atMs = 0, first = 1 }: { readonly atMs?: number; readonly first?: number } = {},
): readonly StreamRecord[] {
  return items.map((after, index) =>
    buildRecord({ before: items[index - 1], after, atMs, number: first + index }),
  );
}

/** One record. */
export function buildRecord({
  before,
  after,
  atMs,
  number,
}: {
  readonly before?: AttributeMap | undefined;
  readonly after?: AttributeMap | undefined;
  readonly atMs: number;
  readonly number: number;
}): StreamRecord {
  return {
    kind: before === undefined ? "insert" : after === undefined ? "remove" : "modify",
    atMs,
    sequenceNumber: String(number),
    position: positionText(number),
    before,
    after,
    isExpiry: false,
  };
}

/** The position of the record with that number. */
export function positionText(number: number): string {
  return `2026#${String(number).padStart(40, "0")}`;
}

/** What the snapshots of a table count, by their sort keys. */
export function countersIn({
  items,
}: ScriptedTable): Readonly<Record<string, Readonly<Record<string, Value>>>> {
  const snapshots = [...items.values()].filter(({ SK }) => JSON.stringify(SK).includes("#USAGE#"));
  return Object.fromEntries(
    snapshots.map((item) => {
      const counters = Object.entries(unmarshalItem(item)).filter(([name]) =>
        /^([uc]_.*|(cascaded_)?requests)$/.test(name),
      );
      return [getKey(item).SK, Object.fromEntries(counters)];
    }),
  );
}
