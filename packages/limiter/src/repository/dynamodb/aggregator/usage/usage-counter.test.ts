import { describe, expect, it } from "vitest";
import { createError, ScriptedTable } from "../../../../../test/support/scripted-table.ts";
import {
  bucketItem,
  countersIn,
  positionText,
  buildRecord,
  listRecords,
  usageProcess,
} from "../../../../../test/support/usage-process.ts";
import { marshalItem, unmarshalItem } from "../../transport/attribute-values.ts";
import type { StreamRecord } from "../stream-record.ts";

const AT_MS = Date.UTC(2026, 2, 4, 17, 40, 5);
const HOUR = "#USAGE#hourly#2026-03-04T17:00:00Z#r";
const NEXT_HOUR = "#USAGE#hourly#2026-03-04T18:00:00Z#r";
const HOURLY = { windows: ["hourly"] } as const;

/** Writes that consume these amounts, one after another. */
function consuming(amounts: readonly number[], shard = 0, first = 1): readonly StreamRecord[] {
  let total = 0;
  const items = amounts.map((amount) => bucketItem({ b_rpm_tc: (total += amount) }, shard));
  return listRecords(items, { atMs: AT_MS, first });
}

describe("counting usage", () => {
  it("adds what a batch consumed to each window, with names, keys, time to live and position", async () => {
    const { table, counter } = usageProcess();
    const records = listRecords(
      [bucketItem({ b_rpm_tc: 2000, gr: 1 }), bucketItem({ b_rpm_tc: 5000, gr: 2, gc: 1 })],
      { atMs: AT_MS },
    );
    const report = await counter.count(records);
    expect(report).toEqual({ failures: [], counted: 2, skipped: 0, snapshotWrites: 3 });
    const counters = { u_rpm: 5000, requests: 2, cascaded_requests: 1 };
    expect(countersIn(table)).toEqual({
      [HOUR]: counters,
      "#USAGE#daily#2026-03-04T00:00:00Z#r": counters,
      "#USAGE#monthly#2026-03-01T00:00:00Z#r": counters,
    });
    expect(unmarshalItem(table.item)).toEqual({
      PK: "ns/ENTITY#e",
      SK: HOUR,
      entity_id: "e",
      resource: "r",
      window: "hourly",
      window_start: "2026-03-04T17:00:00Z",
      GSI2PK: "ns/RESOURCE#r",
      GSI2SK: "USAGE#hourly#2026-03-04T17:00:00Z#e",
      GSI4PK: "ns",
      GSI4SK: "USAGE#e#hourly#2026-03-04T17:00:00Z#r",
      ttl: Date.UTC(2026, 3, 3, 18) / 1000,
      seq_0: positionText(2),
      ...counters,
    });
  });

  it("counts a batch that is delivered again once, also in other pieces", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const records = consuming([1, 2, 4, 8, 16]);
    await counter.count(records.slice(0, 1));
    await counter.count(records.slice(0, 1));
    await counter.count(records.slice(0, 3));
    const again = await counter.count(records.slice(0, 3));
    expect(again).toEqual({ failures: [], counted: 3, skipped: 0, snapshotWrites: 0 });
    await counter.count(records.slice(1, 4));
    await counter.count([...records.slice(2), ...records.slice(2)]);
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 31 } });
  });

  it("cuts each shard of a bucket to what is newer, and leaves the others whole", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const [first, second] = [consuming([1, 2], 0), consuming([4, 8, 16], 5)];
    await counter.count([first[0]!, ...second.slice(0, 2)]);
    await counter.count([...second, ...first]);
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 31 } });
    expect(table.operations.filter((operation) => operation === "UpdateItem")).toHaveLength(3);
  });

  it("reads the positions where a failed condition does not show them", async () => {
    const table = new ScriptedTable();
    const transport = {
      call: (operation: string, input: object): Promise<object> =>
        table.call(operation, input).catch((error: { readonly name: string }) => {
          throw createError(error.name);
        }),
      close: () => {},
    };
    const { counter } = usageProcess({ table, transport, ...HOURLY });
    const records = consuming([1, 2, 4]);
    await counter.count(records.slice(0, 2));
    expect(await counter.count(records)).toMatchObject({ failures: [], snapshotWrites: 1 });
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 7 } });
  });

  it("stores the position of changes that cancel each other out", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const records = consuming([5, -5, 3]);
    await counter.count(records.slice(0, 2));
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 0 } });
    // Something else between the first two failed, and delivery goes on from there.
    await counter.count(records.slice(1));
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 3 } });
  });

  it("writes nothing where nothing was consumed", async () => {
    const { table, counter } = usageProcess();
    const [idle, touched] = [
      bucketItem({ b_rpm_tc: 0, gr: 0 }),
      bucketItem({ b_rpm_tc: 0, rf: 5 }),
    ];
    const entity = marshalItem({ PK: "ns/ENTITY#e", SK: "#META", gr: 5 });
    const records = listRecords([idle, touched, undefined], { atMs: AT_MS });
    const other = buildRecord({ after: entity, atMs: AT_MS, number: 9 });
    expect(await counter.count([...records, other])).toMatchObject({ counted: 0, skipped: 0 });
    expect(table.operations).toEqual([]);
  });

  it("fails every record of a sum that cannot be written, and writes the others", async () => {
    const { table, counter } = usageProcess({ windows: ["hourly", "daily"] });
    const [created, grown] = [bucketItem({ b_rpm_tc: 1 }), bucketItem({ b_rpm_tc: 3 })];
    const records = [
      buildRecord({ after: created, atMs: AT_MS, number: 1 }),
      buildRecord({ before: created, after: grown, atMs: AT_MS + 3_600_000, number: 2 }),
    ];
    table.faults.push({ instead: createError("ValidationException") });
    const { failures, snapshotWrites } = await counter.count(records);
    // The first hour failed. The second record is in the other hour, which is counted.
    expect(failures.map(({ sequenceNumber }) => sequenceNumber)).toEqual(["1"]);
    expect(snapshotWrites).toBe(2);
    await counter.count(records.slice(0, 1));
    expect(countersIn(table)).toEqual({
      [HOUR]: { u_rpm: 1 },
      [NEXT_HOUR]: { u_rpm: 2 },
      "#USAGE#daily#2026-03-04T00:00:00Z#r": { u_rpm: 3 },
    });
  });

  it("tries a throttled write a few times, and a sum that others are ahead of as well", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const throttled = { instead: createError("ThrottlingException") };
    table.faults.push(throttled, throttled);
    expect((await counter.count(consuming([1]))).failures).toEqual([]);
    table.faults.push(throttled, throttled, throttled);
    expect((await counter.count(consuming([1, 2]))).failures).toHaveLength(2);
    const contended = createError("ConditionalCheckFailedException", { Item: {} });
    table.faults.push(...Array.from({ length: 9 }, () => ({ instead: contended })));
    const { failures } = await counter.count(consuming([1, 2]));
    expect(String(failures[0]?.error)).toContain("Too much contention: a usage snapshot");
    expect(table.faults).toEqual([]);
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 1 } });
  });

  it("skips records that cannot be read, and counts the others", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const item = bucketItem({ b_rpm_tc: 1 });
    const poison = [
      { after: { ...item, PK: { S: "ns/BUCKET#e#0" } } },
      { after: { ...item, PK: { S: "BUCKET" } } },
      { after: { ...item, b_rpm_tc: { S: "1" } } },
      { after: item, kind: "modify" },
      { after: item, before: item, kind: "insert" },
      { after: item, atMs: Number.NaN },
      { after: item, atMs: 1e15 },
      { after: item, atMs: -1 },
    ] as const;
    const records = poison.map((parts, index): StreamRecord => ({
      ...buildRecord({ atMs: AT_MS, number: index + 1 }),
      ...parts,
    }));
    const [good] = consuming([1], 0, 50);
    expect(await counter.count([...records, good!])).toEqual({
      failures: [],
      counted: 1,
      skipped: poison.length,
      snapshotWrites: 1,
    });
    expect(countersIn(table)).toEqual({ [HOUR]: { u_rpm: 1 } });
  });

  it("has at most 16 writes under way", async () => {
    let underWay = 0;
    let most = 0;
    const table = new ScriptedTable();
    const transport = {
      call: async (operation: string, input: object): Promise<object> => {
        most = Math.max(most, (underWay += 1));
        await new Promise((resolve) => setImmediate(resolve));
        underWay -= 1;
        return table.call(operation, input);
      },
      close: () => {},
    };
    const { counter } = usageProcess({ table, transport });
    const item = bucketItem({ b_rpm_tc: 1 });
    const records = Array.from({ length: 40 }, (_, index) =>
      buildRecord({
        after: { ...item, PK: { S: `ns/BUCKET#e${index}#r#0` } },
        atMs: AT_MS,
        number: 1,
      }),
    );
    expect(await counter.count(records)).toMatchObject({ snapshotWrites: 120, failures: [] });
    expect(most).toBe(16);
  });
});
