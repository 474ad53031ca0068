import { describe, expect, it } from "vitest";
import { clockAt, startRunner, until } from "../../../../../test/support/started-runner.ts";
import { bucketItem, StreamedTable } from "../../../../../test/support/streamed-table.ts";
import { getNumber, getString } from "../../transport/attribute-values.ts";
import { CountedTime } from "./counted-time.ts";

describe("until when a shard is counted", () => {
  it("is the time of its last record, and never goes back", () => {
    const time = new CountedTime();
    expect(time.untilMs).toBeUndefined();
    time.note({ records: [record(5000), record(7000)] }, 100_000);
    expect(time.untilMs).toBe(7000);
    time.note({ records: [record(6000)] }, 100_000);
    expect(time.untilMs).toBe(7000);
  });

  it("is ten seconds ago when many replies in a row were empty, and not after a few", () => {
    const time = new CountedTime();
    noteEmpty(time, 7, 100_000);
    expect(time.untilMs).toBeUndefined();
    time.note({ records: [record(5000)] }, 100_000);
    noteEmpty(time, 7, 100_000);
    expect(time.untilMs).toBe(5000);
    noteEmpty(time, 1, 100_000);
    expect(time.untilMs).toBe(90_000);
  });
});

describe("the heartbeat of a runner", () => {
  it("is there a few seconds after the first start, and moves on while the table is idle", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["s1", "s2"]);
    table.findShard = () => "s1";
    const runner = startRunner(table, clock);
    await clock.advance(10_000);
    expect(readCountedUntil(table)).toBeGreaterThan(0);
    await clock.advance(120_000);
    expect(readCountedUntil(table)).toBeGreaterThan(clock.now() - 60_000);
    await runner.end();
  });

  it("waits for the shard that is furthest behind, as long as that takes", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["s1", "s2"]);
    table.findShard = (PK) => (PK.includes("#stuck#") ? "s2" : "s1");
    let isStuck = true;
    const runner = startRunner(table, clock, {
      fails: ({ after }) => isStuck && getString(after?.["PK"])?.includes("#stuck#") === true,
    });
    await clock.advance(60_000);
    table.put(bucketItem("stuck", 1));
    const stuckAtMs = clock.now();
    for (let minute = 0; minute < 5; minute += 1) {
      table.put(bucketItem("other", minute + 1));
      await clock.advance(60_000);
    }
    expect(runner.problems.length).toBeGreaterThan(0);
    expect(readCountedUntil(table)).toBeLessThanOrEqual(stuckAtMs);
    isStuck = false;
    await until(clock, () => readCountedUntil(table) > stuckAtMs + 240_000);
    await runner.end();
  });
});

function record(atMs: number): Parameters<CountedTime["note"]>[0]["records"][number] {
  return {
    kind: "modify",
    atMs,
    sequenceNumber: "1",
    position: "1",
    before: undefined,
    after: undefined,
    isExpiry: false,
  };
}

function noteEmpty(time: CountedTime, times: number, beganAtMs: number): void {
  for (let reply = 0; reply < times; reply += 1) time.note({ records: [] }, beganAtMs);
}

function readCountedUntil(table: StreamedTable): number {
  return getNumber(table.system("#AGGREGATOR")?.["counted_until_ms"]) ?? 0;
}
