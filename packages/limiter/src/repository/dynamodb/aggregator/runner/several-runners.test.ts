import { describe, expect, it } from "vitest";
import { createError } from "../../../../../test/support/scripted-table.ts";
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
} from "../../../../../test/support/streamed-table.ts";

describe("several runners", () => {
  it("one reads all shards; the other does nothing until the first gives the lease back", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["s1", "s2"]);
    table.findShard = (PK) => (PK.includes("#e1#") ? "s1" : "s2");
    const first = startRunner(table, clock);
    await until(clock, () => first.progress.at(-1)?.shardsHeld === 2);
    const second = startRunner(table, clock);
    for (const entity of ["e1", "e2"]) table.consume(entity, 1, 12);
    await until(clock, () => ["e1", "e2"].every((each) => getCounted(table, each)[0] === 12));
    await clock.advance(60_000);
    expect(second.progress.at(-1)).toMatchObject({ shardsHeld: 0, shardsSeen: 2 });
    expect([second.batches, second.problems]).toEqual([[], []]);
    first.stop();
    await until(clock, () => second.progress.at(-1)?.shardsHeld === 2, 5000);
    await second.end();
  });

  it("the next takes over from one that died within 20 s, and counts nothing twice", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 25);
    const dying = startRunner(table, clock);
    // It has counted two pages, and stored no checkpoint.
    await until(clock, () => dying.batches.length === 2);
    dying.kill();
    const next = startRunner(table, clock);
    await clock.advance(20_000);
    expect(next.progress.at(-1)?.shardsHeld).toBe(1);
    await until(clock, () => getCounted(table, "a")[0] === 25);
    expect(getCounted(table, "a")).toEqual([25, 25, 25]);
    await next.end();
  });

  it("one that was paused in the middle of a batch counts nothing twice, and stands by", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 25);
    const paused = startRunner(table, clock, {
      onBatch: () => {
        if (paused.batches.length === 2) paused.pause();
      },
    });
    await until(clock, () => paused.batches.length === 2);
    const next = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 25);
    await clock.advance(10_000);
    const { owner, checkpoint } = storedState(table);
    paused.goOn();
    table.consume("a", 26, 30);
    await clock.advance(30_000);
    expect(getCounted(table, "a")).toEqual([30, 30, 30]);
    expect(paused.batches).toHaveLength(2);
    expect(storedState(table).owner).toBe(owner);
    expect(Number(storedState(table).checkpoint)).toBeGreaterThan(Number(checkpoint));
    await next.end();
    await paused.end();
  });

  it("one that cannot renew its lease stops reading, and begins again when it can", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const runner = startRunner(table, clock);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 1);
    for (let count = 0; count < 20; count += 1)
      table.faults.push({ operation: "UpdateItem", error: createError("InternalServerError") });
    await clock.advance(30_000);
    const reads = table.reads.get("shard-1");
    table.put(bucketItem("a", 1));
    await clock.advance(20_000);
    expect(table.reads.get("shard-1")).toBe(reads);
    await until(clock, () => getCounted(table, "a")[0] === 1, 600_000);
    await runner.end();
  });
});
