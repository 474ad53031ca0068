import { describe, expect, it } from "vitest";
import { openAggregator, type AggregatorOptions } from "zae-limiter/aggregator";
import { removal } from "../../../../test/support/audit-records.ts";
import {
  createError,
  ScriptedTable,
  SkippingClock,
} from "../../../../test/support/scripted-table.ts";
import { bucketItem, listRecords } from "../../../../test/support/usage-process.ts";
import { heartbeatKey, pulseKey } from "../items/keys.ts";
import { getKey } from "../table/batch.ts";
import { marshalItem } from "../transport/attribute-values.ts";

const clock = new SkippingClock();
const records = listRecords([bucketItem({ b_rpm_tc: 1 }), bucketItem({ b_rpm_tc: 3 })], {
  atMs: clock.now() - 5000,
});

function open(table: ScriptedTable, options: AggregatorOptions = {}) {
  return openAggregator({ transport: table, stack: "table", clock, ...options });
}

function sortKeysIn({ items }: ScriptedTable): readonly string[] {
  return [...items.values()].map((item) => getKey(item).SK.split("#").slice(0, 3).join("#"));
}

describe("an aggregator", () => {
  it("counts a batch in all windows, and says how far it is", async () => {
    const table = new ScriptedTable();
    const report = await (await open(table)).process(records);
    expect(report).toMatchObject({
      records: 2,
      counted: 2,
      skipped: 0,
      snapshotWrites: 3,
      lagMs: 5000,
      failures: [],
    });
    expect(sortKeysIn(table)).toEqual([
      "#USAGE#hourly",
      "#USAGE#daily",
      "#USAGE#monthly",
      heartbeatKey().SK,
    ]);
  });

  it("names each record that failed once, in order, and does not say that it was counted", async () => {
    const table = new ScriptedTable();
    const refused = { instead: createError("ValidationException") };
    table.faults.push(refused, refused, refused);
    const { failures } = await (await open(table)).process(records);
    expect(failures.map(({ sequenceNumber }) => sequenceNumber)).toEqual(["1", "2"]);
    expect(table.items.size).toBe(0);
  });

  it("begins nothing after its time, and names what is left as failed", async () => {
    const table = new ScriptedTable();
    const stored: string[] = [];
    const archive = { store: async (name: string) => void stored.push(name) };
    const aggregator = await open(table, { archive });
    const batch = [...records, { ...removal({ eventId: "01A" }), sequenceNumber: "3" }];
    const late = await aggregator.process(batch, { withinMs: 0 });
    expect(late.failures.map(({ sequenceNumber }) => sequenceNumber)).toEqual(["1", "2", "3"]);
    expect([late.snapshotWrites, late.archived, table.operations, stored]).toEqual([0, 0, [], []]);
    const again = await aggregator.process(batch, { withinMs: 60_000 });
    expect([again.failures, again.snapshotWrites, stored.length]).toEqual([[], 3, 1]);
  });

  it("reports nothing of an empty batch", async () => {
    const table = new ScriptedTable();
    expect(await (await open(table)).process([])).toMatchObject({ records: 0, lagMs: 0 });
    expect(table.operations).toEqual([]);
  });

  it("sees its own pulse come back", async () => {
    const table = new ScriptedTable();
    const aggregator = await open(table);
    await aggregator.pulse();
    const { PK, SK } = pulseKey();
    await aggregator.process(listRecords([marshalItem({ PK, SK })], { atMs: clock.now() }));
    expect(sortKeysIn(table)).toEqual([SK, heartbeatKey().SK]);
    aggregator.close();
  });

  it("keeps usage for as long as the namespace says", async () => {
    const table = new ScriptedTable();
    const PK = "ns/SYSTEM#";
    // The limits are of a kind that this release does not know; they do not matter here.
    const limits = { l_rpm_cp: 1, l_rpm_kd: "of a newer release" };
    table.put(marshalItem({ PK, SK: "#CONFIG", usage_retention_days: 1, ...limits }));
    await (await open(table, { windows: ["daily"] })).process(records);
    const day = [...table.items.values()][1]!;
    expect(day["ttl"]).toEqual({ N: String(Date.UTC(2026, 0, 6) / 1000) });
  });

  it("keeps usage for as long as its option says where the namespace says nothing", async () => {
    const table = new ScriptedTable();
    await (await open(table, { windows: ["daily"], usageRetentionDays: 1 })).process(records);
    const day = [...table.items.values()][0]!;
    expect(day["ttl"]).toEqual({ N: String(Date.UTC(2026, 0, 6) / 1000) });
    await expect(open(table, { usageRetentionDays: 0 })).rejects.toThrow(
      "Invalid usageRetentionDays: must be a whole number of at least 1",
    );
  });

  it("has windows that it knows, and each of them once", async () => {
    const table = new ScriptedTable();
    await (await open(table, { windows: ["daily", "daily"] })).process(records);
    expect(table.operations.filter((operation) => operation === "UpdateItem")).toHaveLength(2);
    for (const windows of [[], ["weekly"], "daily", [undefined]])
      await expect(open(table, { windows: windows as never })).rejects.toThrow(
        "Invalid windows: must be a list of at least one of hourly, daily, monthly",
      );
  });

  it("refuses options that it does not know, and an archive that is none", async () => {
    const table = new ScriptedTable();
    await expect(open(table, { window: ["daily"] } as never)).rejects.toThrow(
      "did you mean windows",
    );
    await expect(open(table, { archive: "s3://events" as never })).rejects.toThrow(
      "Invalid archive: must have a function store",
    );
  });
});
