import { describe, expect, it } from "vitest";
import { createError } from "../../../../test/support/scripted-table.ts";
import {
  bucketItem,
  buildRecord,
  usageProcess,
  type UsageProcess,
} from "../../../../test/support/usage-process.ts";
import { parseHeartbeat } from "../items/heartbeat-item.ts";
import { heartbeatKey, pulseKey, streamLeaseKey, usageKey } from "../items/keys.ts";
import { getKey, type ItemKey } from "../table/batch.ts";
import { marshalItem, unmarshalItem, type AttributeMap } from "../transport/attribute-values.ts";
import { Heartbeat } from "./heartbeat.ts";
import type { StreamRecord } from "./stream-record.ts";

const AT_MS = Date.UTC(2026, 2, 4, 17, 40, 5);

function start(): UsageProcess & { readonly heartbeat: Heartbeat } {
  const process = usageProcess();
  return { ...process, heartbeat: new Heartbeat(process.connection) };
}

function readStored({ table }: UsageProcess, key: ItemKey): AttributeMap | undefined {
  return [...table.items.values()].find((item) => {
    const { PK, SK } = getKey(item);
    return PK === key.PK && SK === key.SK;
  });
}

function countedUntil(process: UsageProcess): number | undefined {
  return parseHeartbeat(readStored(process, heartbeatKey()))?.countedUntilMs;
}

function bucketRecord(atMs: number): StreamRecord {
  return buildRecord({ after: bucketItem({ b_rpm_tc: 1 }), atMs, number: 1 });
}

function recordOfKey(key: ItemKey, atMs: number): StreamRecord {
  return buildRecord({ after: marshalItem({ ...key }), atMs, number: 2 });
}

describe("the heartbeat of an aggregator", () => {
  it("is moved to the newest bucket or pulse of a batch, with the writer and its clock", async () => {
    const process = start();
    const records = [bucketRecord(AT_MS + 1000), bucketRecord(AT_MS)];
    const own = recordOfKey(heartbeatKey(), AT_MS + 9000);
    await process.heartbeat.note([...records, own]);
    expect(unmarshalItem(readStored(process, heartbeatKey())!)).toEqual({
      ...heartbeatKey(),
      GSI4PK: "_",
      GSI4SK: "_/SYSTEM#",
      counted_until_ms: AT_MS + 1000,
      seen_ms: process.clock.now(),
      written_by: expect.any(String),
    });
    await process.heartbeat.note([recordOfKey(pulseKey(), AT_MS + 5000)]);
    expect(countedUntil(process)).toBe(AT_MS + 5000);
  });

  it("never goes back", async () => {
    const process = start();
    await process.heartbeat.storeCountedUntil(AT_MS);
    await process.heartbeat.storeCountedUntil(AT_MS - 1);
    await process.heartbeat.note([recordOfKey(pulseKey(), AT_MS - 5000)]);
    expect(countedUntil(process)).toBe(AT_MS);
  });

  it("is written for buckets at most once in ten seconds, and for every pulse", async () => {
    const process = start();
    const { heartbeat, clock, table } = process;
    await heartbeat.note([bucketRecord(AT_MS)]);
    await clock.advance(9_999);
    await heartbeat.note([bucketRecord(AT_MS + 1000)]);
    expect(table.operations).toHaveLength(1);
    await clock.advance(1);
    await heartbeat.note([bucketRecord(AT_MS + 2000)]);
    expect(countedUntil(process)).toBe(AT_MS + 2000);
    await heartbeat.note([bucketRecord(AT_MS + 3000), recordOfKey(pulseKey(), AT_MS + 3000)]);
    expect(countedUntil(process)).toBe(AT_MS + 3000);
    // The clock is set back by a day.
    clock.set(clock.now() - 86_400_000);
    await heartbeat.note([bucketRecord(AT_MS + 4000)]);
    expect(countedUntil(process)).toBe(AT_MS + 4000);
  });

  it("is not written for what aggregators write themselves, nor for nothing", async () => {
    const { heartbeat, table } = start();
    const name = { entityId: "e", resource: "r", window: "hourly", startMs: 0 } as const;
    const keys = [heartbeatKey(), streamLeaseKey(), usageKey("ns", name)];
    await heartbeat.note(keys.map((key) => recordOfKey(key, AT_MS)));
    await heartbeat.note([]);
    expect(table.operations).toEqual([]);
  });

  it("leaves it to the next batch when the table is unavailable, and reports other errors", async () => {
    const process = start();
    const { heartbeat, table } = process;
    const throttled = { instead: createError("ThrottlingException") };
    table.faults.push(throttled, throttled, throttled);
    await heartbeat.note([bucketRecord(AT_MS)]);
    expect(countedUntil(process)).toBeUndefined();
    await heartbeat.note([bucketRecord(AT_MS)]);
    expect(countedUntil(process)).toBe(AT_MS);
    table.faults.push({ instead: createError("AccessDeniedException") });
    await expect(heartbeat.note([recordOfKey(pulseKey(), AT_MS)])).rejects.toThrow("AccessDenied");
  });

  it("has a pulse that changes its item each time, also at the same moment", async () => {
    const process = start();
    await process.heartbeat.pulse();
    const first = readStored(process, pulseKey());
    await process.heartbeat.pulse();
    expect(readStored(process, pulseKey())).not.toEqual(first);
    expect(unmarshalItem(first!)).toMatchObject({ pulse_ms: process.clock.now(), GSI4PK: "_" });
  });
});
