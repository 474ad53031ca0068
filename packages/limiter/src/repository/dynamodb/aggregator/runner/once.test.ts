import { describe, expect, it } from "vitest";
import {
  clockAt,
  startRunner,
  storedState,
  until,
} from "../../../../../test/support/started-runner.ts";
import {
  bucketItem,
  getCounted,
  StreamedTable,
  writesByKind,
} from "../../../../../test/support/streamed-table.ts";
import { getNumber } from "../../transport/attribute-values.ts";

describe("once", () => {
  it("ends when everything of its start is counted, while others write on", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 25);
    const startMs = clock.now();
    const runner = startRunner(table, clock, { once: true });
    for (let tokens = 1; runner.report === undefined; tokens += 1) {
      table.put(bucketItem("busy", tokens));
      await clock.advance(400);
      expect(tokens).toBeLessThan(100);
    }
    expect(runner.report.ended).toBe("counted");
    expect(getCounted(table, "a")).toEqual([25, 25, 25]);
    expect(storedState(table).owner).toBeUndefined();
    const countedUntilMs = getNumber(table.system("#AGGREGATOR")?.["counted_until_ms"]);
    expect(countedUntilMs).toBeGreaterThanOrEqual(startMs);
    expect(writesByKind(table.written)).not.toHaveProperty("PULSE");
  });

  it("says of an empty stream that it is counted", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const startMs = clock.now();
    const runner = startRunner(table, clock, { once: true });
    await until(clock, () => runner.report !== undefined);
    expect(runner.report).toMatchObject({ ended: "counted", counted: 0 });
    expect(getNumber(table.system("#AGGREGATOR")?.["counted_until_ms"])).toBe(startMs);
  });

  it("does not take empty pages for the end, and none at all of a shard that is closed", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["parent"]);
    table.consume("a", 1, 5);
    table.emptyReplies = 6;
    const first = startRunner(table, clock, { once: true });
    await until(clock, () => first.report !== undefined);
    expect(getCounted(table, "a")).toEqual([5, 5, 5]);
    table.put(bucketItem("a", 6));
    table.closeShard("parent");
    table.addShard("child", "parent");
    table.put(bucketItem("a", 7));
    table.emptyReplies = 60;
    const second = startRunner(table, clock, { once: true });
    await until(clock, () => second.report !== undefined);
    expect(getCounted(table, "a")).toEqual([7, 7, 7]);
  });

  it("waits for what another runner has read and not counted", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    let isStuck = true;
    const holder = startRunner(table, clock, {
      fails: ({ after }) => isStuck && after?.["b_rpm_tc"] !== undefined,
    });
    await clock.advance(60_000);
    table.consume("a", 1, 25);
    const runner = startRunner(table, clock, { once: true });
    await clock.advance(60_000);
    expect(runner.report).toBeUndefined();
    isStuck = false;
    await until(clock, () => runner.report !== undefined);
    expect(getCounted(table, "a")).toEqual([25, 25, 25]);
    expect(runner.report).toMatchObject({ ended: "counted", counted: 0 });
    expect(storedState(table).owner).toBeDefined();
    await holder.end();
  });
});
