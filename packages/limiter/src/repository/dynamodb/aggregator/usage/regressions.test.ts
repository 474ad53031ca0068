/*
 * Faults of the aggregator of the Python zae-limiter, by their numbers in docs/known-faults.md.
 * None of them may come back here.
 */
import { describe, expect, it } from "vitest";
import { createError } from "../../../../../test/support/scripted-table.ts";
import {
  bucketItem,
  countersIn,
  buildRecord,
  listRecords,
  usageProcess,
} from "../../../../../test/support/usage-process.ts";
import type { StreamRecord } from "../stream-record.ts";

const MIDNIGHT_MS = Date.UTC(2026, 2, 1);
const HOUR_MS = 3_600_000;
const HOURLY = { windows: ["hourly"] } as const;
const FIRST_HOUR = "#USAGE#hourly#2026-03-01T00:00:00Z#r";

/** Acquires on one bucket, each of which takes a token of two limits. */
function acquires(count: number, atMs = MIDNIGHT_MS): readonly StreamRecord[] {
  const items = Array.from({ length: count }, (_, index) =>
    bucketItem({ b_rpm_tc: 1000 * (index + 1), b_tpm_tc: 1000 * (index + 1), gr: index + 1 }),
  );
  return listRecords(items, { atMs });
}

describe("faults of the Python zae-limiter's aggregator", () => {
  it("a hot entity costs one write for each window of a batch, whatever it has of limits [W-18]", async () => {
    const { table, counter } = usageProcess();
    expect(await counter.count(acquires(100))).toMatchObject({ counted: 100, snapshotWrites: 3 });
    expect(table.operations).toEqual(["BatchGetItem", "UpdateItem", "UpdateItem", "UpdateItem"]);
  });

  it("the hour, the day and the month that begin together have snapshots of their own [W-20]", async () => {
    const { table, counter } = usageProcess();
    const [first, second] = [bucketItem({ b_rpm_tc: 5 }), bucketItem({ b_rpm_tc: 12 })];
    await counter.count([
      buildRecord({ after: first, atMs: MIDNIGHT_MS + 600_000, number: 1 }),
      buildRecord({ before: first, after: second, atMs: MIDNIGHT_MS + 12 * HOUR_MS, number: 2 }),
    ]);
    expect(countersIn(table)).toEqual({
      [FIRST_HOUR]: { u_rpm: 5 },
      "#USAGE#hourly#2026-03-01T12:00:00Z#r": { u_rpm: 7 },
      "#USAGE#daily#2026-03-01T00:00:00Z#r": { u_rpm: 12 },
      "#USAGE#monthly#2026-03-01T00:00:00Z#r": { u_rpm: 12 },
    });
  });

  it("consumption belongs to the time of its event, not of the last refill [W-21]", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const rf = Date.UTC(2026, 2, 1, 9);
    const items = [bucketItem({ b_rpm_tc: 1, rf }), bucketItem({ b_rpm_tc: 4, rf })];
    await counter.count(listRecords(items, { atMs: Date.UTC(2026, 2, 4, 17, 40) }));
    expect(Object.keys(countersIn(table))).toEqual(["#USAGE#hourly#2026-03-04T17:00:00Z#r"]);
  });

  it("the first consumption of a bucket counts, each time that it is created [W-22]", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const lives = ["w.0001", "w.0002", "w.0003"].map((cr) =>
      bucketItem({ b_rpm_tc: 3, gr: 1, cr }),
    );
    const records = lives.flatMap((item, life) => [
      buildRecord({ after: item, atMs: MIDNIGHT_MS, number: 2 * life + 1 }),
      buildRecord({ before: item, atMs: MIDNIGHT_MS, number: 2 * life + 2 }),
    ]);
    await counter.count(records);
    expect(countersIn(table)).toEqual({ [FIRST_HOUR]: { u_rpm: 9, requests: 3 } });
  });

  it("a throttled snapshot is a failure of its records, and delivering them again adds nothing twice [W-25]", async () => {
    const { table, counter } = usageProcess();
    const records = acquires(3);
    const throttled = { instead: createError("ProvisionedThroughputExceededException") };
    table.faults.push(...Array.from({ length: 9 }, () => throttled));
    const { failures } = await counter.count(records);
    expect(new Set(failures.map(({ sequenceNumber }) => sequenceNumber))).toEqual(
      new Set(["1", "2", "3"]),
    );
    expect(countersIn(table)).toEqual({});
    // A time-out after one of three windows was written, then the whole batch again.
    table.faults.push({}, ...Array.from({ length: 8 }, () => throttled));
    await counter.count(records);
    expect((await counter.count(records)).failures).toEqual([]);
    expect((await counter.count(records)).failures).toEqual([]);
    const counters = Object.values(countersIn(table));
    expect(counters).toEqual([1, 2, 3].map(() => ({ u_rpm: 3000, u_tpm: 3000, requests: 3 })));
  });

  it("requests are granted acquires, whatever they have of limits, windows, writes and settlements [W-27]", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const items = [
      // One write carried five acquires, the next only settles, the last gives one of them back.
      bucketItem({ b_rpm_tc: 5000, b_tpm_tc: 50_000, gr: 5 }),
      bucketItem({ b_rpm_tc: 5000, b_tpm_tc: 71_000, gr: 5 }),
      bucketItem({ b_rpm_tc: 4000, b_tpm_tc: 61_000, gr: 4 }),
    ];
    await counter.count(listRecords(items, { atMs: MIDNIGHT_MS }));
    expect(countersIn(table)).toEqual({
      [FIRST_HOUR]: { u_rpm: 4000, u_tpm: 61_000, requests: 4 },
    });
  });

  it("a limit may be named as an attribute of a snapshot is [W-28]", async () => {
    const { table, counter } = usageProcess(HOURLY);
    const names = ["ttl", "window", "resource", "requests", "entity_id", "PK", "seq_0"];
    const totals = names.map((name) => [`b_${name}_tc`, 1000] as const);
    const { failures } = await counter.count(
      listRecords([bucketItem(Object.fromEntries(totals))], { atMs: MIDNIGHT_MS }),
    );
    expect(failures).toEqual([]);
    expect(countersIn(table)).toEqual({
      [FIRST_HOUR]: Object.fromEntries(names.map((name) => [`u_${name}`, 1000])),
    });
  });
});
