import { describe, expect, it } from "vitest";
import { InfrastructureError } from "zae-limiter";
import { createError } from "../../../../../test/support/scripted-table.ts";
import {
  bucketRecords,
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

describe("a runner", () => {
  it("counts what is in the stream, and stores how far it is", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 25);
    const runner = startRunner(table, clock);
    await until(clock, () => (runner.progress.at(-1)?.counted ?? 0) === 25);
    expect(getCounted(table, "a")).toEqual([25, 25, 25]);
    await clock.advance(4000);
    expect(Number(storedState(table).checkpoint)).toBeGreaterThanOrEqual(25 * 5);
    expect(runner.progress.at(-1)).toMatchObject({ shardsHeld: 1, shardsSeen: 1 });
    await runner.end();
    expect(await runner.ended).toMatchObject({ ended: "stopped", counted: 25 });
    expect(storedState(table).owner).toBeUndefined();
  });

  it("reads a shard at most four times a second", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 300);
    const runner = startRunner(table, clock);
    await clock.advance(5000);
    expect(table.reads.get("shard-1")).toBeGreaterThan(10);
    expect(table.reads.get("shard-1")).toBeLessThanOrEqual(21);
    await runner.end();
  });

  it("that is idle writes leases and heartbeats, and no more the longer it runs", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.put(bucketItem("a", 1));
    const runner = startRunner(table, clock);
    await clock.advance(60_000);
    table.written.length = 0;
    await clock.advance(120_000);
    const early = writesByKind(table.written);
    // Heartbeats come every 30 s, renewals every 4 s.
    expect(early["AGGREGATOR"]).toBeLessThanOrEqual(4);
    expect(early["STREAM"]).toBeLessThanOrEqual(30);
    expect(Object.keys(early).sort()).toEqual(["AGGREGATOR", "STREAM"]);
    const { checkpoint } = storedState(table);
    await clock.advance(600_000);
    table.written.length = 0;
    await clock.advance(120_000);
    expect(writesByKind(table.written)).toEqual(early);
    // Renewals carry it on, so that it does not leave the stream, which keeps records for a day.
    expect(Number(storedState(table).checkpoint)).toBeGreaterThan(Number(checkpoint) + 100);
    await runner.end();
  });

  it("reads children when their parent is finished, and their checkpoints are their own", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["parent"]);
    table.consume("a", 1, 25);
    table.closeShard("parent");
    table.addShard("left", "parent");
    table.addShard("right", "parent");
    table.findShard = (PK) => (PK.includes("#a#") ? "left" : "right");
    table.consume("a", 26, 50);
    const runner = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 50);
    const order = bucketRecords(runner).map(({ position }) => position);
    expect(order).toHaveLength(50);
    expect(order).toEqual(order.toSorted());
    expect(storedState(table, "parent").finished).toBe(true);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 2);
    expect(runner.progress.at(-1)).toMatchObject({ shardsSeen: 2 });
    await runner.end();
  });
});

describe("what goes wrong", () => {
  it("a record that fails stops the checkpoint before it, and is tried again with pauses", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 8; tokens += 1) table.put(bucketItem(`e${tokens}`, tokens));
    let isBroken = true;
    const runner = startRunner(table, clock, {
      fails: ({ sequenceNumber }) => isBroken && sequenceNumber === "20",
    });
    await until(clock, () => runner.problems.length >= 5);
    expect(storedState(table).checkpoint).toBe("15");
    const pauses = runner.problems.map((problem) => problem.kind === "retry" && problem.retryInMs);
    expect(pauses.slice(0, 5)).toEqual([500, 1000, 2000, 4000, 8000]);
    expect(runner.problems[0]).toMatchObject({
      shardId: "shard-1",
      error: expect.objectContaining({ message: "it fails" }),
    });
    isBroken = false;
    await until(clock, () => Number(storedState(table).checkpoint) >= 40);
    expect(getCounted(table, "e4")).toEqual([4, 4, 4]);
    expect(getCounted(table, "e8")).toEqual([8, 8, 8]);
    await runner.end();
  });

  it("a table and a stream that do not answer are tried again, and nothing is skipped", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 25);
    for (const operation of ["DescribeStream", "GetShardIterator", "GetRecords", "Query"])
      table.faults.push({ operation, error: createError("LimitExceededException") });
    for (let count = 0; count < 3; count += 1)
      table.faults.push({ operation: "UpdateItem", error: createError("InternalServerError") });
    const runner = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 25);
    expect(runner.problems.length).toBeGreaterThanOrEqual(5);
    await runner.end();
  });

  it("an iterator that expired is replaced, and each record is still counted once", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 15);
    const runner = startRunner(table, clock, { onBatch: () => table.expireIterators() });
    await until(clock, () => getCounted(table, "a")[0] === 15);
    expect(bucketRecords(runner)).toHaveLength(15);
    expect(runner.problems).toEqual([]);
    await runner.end();
  });

  it("records that the stream has dropped are reported, and the rest is counted", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 5);
    const first = startRunner(table, clock);
    await until(clock, () => Number(storedState(table).checkpoint) >= 25);
    await first.end();
    table.consume("a", 6, 9);
    table.trim("shard-1", table.sequenceNumbers("shard-1").length - 1);
    // Also when the stream does not answer just then.
    table.faults.push({ operation: "GetRecords", error: createError("InternalServerError") });
    const second = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 6);
    expect(second.problems.filter(({ kind }) => kind !== "retry")).toEqual([
      { kind: "records-lost", shardId: "shard-1" },
    ]);
    await second.end();
  });

  it("a shard that left the stream while no runner worked is reported, once", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["old", "other"]);
    table.findShard = () => "old";
    table.consume("a", 1, 5);
    const first = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 5);
    await first.end();
    table.drop("old");
    table.addShard("new", "old");
    table.findShard = () => "new";
    table.consume("a", 6, 9);
    await clock.advance(2 * 24 * 3_600_000);
    const second = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 9);
    await second.end();
    const third = startRunner(table, clock);
    await until(clock, () => third.progress.at(-1)?.shardsHeld === 2);
    await third.end();
    const problems = [second.problems, third.problems];
    expect(problems).toEqual([[{ kind: "records-lost", shardId: "old" }], []]);
  });

  it("what is stored of a shard of an earlier stream is not taken for one of this stream", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.put({
      PK: { S: "_/SYSTEM#" },
      SK: { S: "#STREAM" },
      stream: { S: "2025-12-31T00:00:00.000" },
      shards: { M: { "shard-1": { M: { finished: { BOOL: true } } } } },
    });
    table.consume("a", 1, 5);
    const runner = startRunner(table, clock);
    await until(clock, () => getCounted(table, "a")[0] === 5);
    await runner.end();
    expect(storedState(table).finished).toBe(false);
  });

  it("what a caller's function throws ends the runner, and no batch is repeated for it", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 5);
    const thrown = new Error("the caller's");
    const runner = startRunner(table, clock, {
      onProgress: ({ counted }) => {
        if (counted > 0) throw thrown;
      },
    });
    const outcome = runner.ended.catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(await outcome).toBe(thrown);
    expect([runner.batches.length, runner.problems]).toEqual([1, []]);
    expect(storedState(table).owner).toBeUndefined();
  });

  it("a table that does not answer when the runner is stopped does not fail it: the lease ends", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const runner = startRunner(table, clock);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 1);
    table.faults.push({ operation: "UpdateItem", error: createError("InternalServerError") });
    await runner.end();
    expect(runner.report).toMatchObject({ ended: "stopped" });
  });

  it("what a retry cannot remove ends the runner, which gives its lease back", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["shard-1", "shard-2"]);
    const denied = new InfrastructureError("ERR_LIMITER_PERMISSION_DENIED", "denied");
    const runner = startRunner(table, clock);
    const outcome = runner.ended.catch((error: unknown) => error);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 2);
    table.faults.push({ operation: "GetRecords", error: denied });
    await clock.advance(10_000);
    expect(await outcome).toBe(denied);
    expect(storedState(table).owner).toBeUndefined();
  });
});
