import { describe, expect, it } from "vitest";
import { InfrastructureError } from "zae-limiter";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import { named } from "../../../../../test/support/scripted-table.ts";
import {
  bucketItem,
  countedOf,
  StreamedTable,
  writesByKind,
} from "../../../../../test/support/streamed-table.ts";
import { USAGE_WINDOWS } from "../../../../core/usage.ts";
import { Connection } from "../../table/connection.ts";
import { translated } from "../../table/table-errors.ts";
import { numberOf, stringOf } from "../../transport/attribute-values.ts";
import { StreamAggregator } from "../aggregator.ts";
import type { RunnerProblem } from "./problem.ts";
import { StreamRunner, type RunnerProgress, type RunnerReport } from "./stream-runner.ts";
import type { StreamRecord } from "../stream-record.ts";

interface Started {
  readonly progress: RunnerProgress[];
  readonly problems: RunnerProblem[];
  readonly batches: (readonly StreamRecord[])[];
  /** Ends it as a signal does. */
  stop(): void;
  /** Ends it as `kill -9` does: nothing that it sends is answered any more. */
  kill(): void;
  readonly ended: Promise<RunnerReport>;
  /** What became of it; undefined while it runs. */
  report: RunnerReport | undefined;
}

interface Setup {
  readonly once?: boolean;
  /** Called with each batch before it is processed; what it throws fails the batch. */
  readonly onBatch?: (records: readonly StreamRecord[]) => Promise<void> | void;
  /** Records that fail. */
  readonly fails?: (record: StreamRecord) => boolean;
}

let runners = 0;

function start(table: StreamedTable, clock: ManualClock, setup: Setup = {}): Started {
  let isDead = false;
  const never = new Promise<never>(() => {});
  const alive = async <T>(call: Promise<T>): Promise<T> => (isDead ? never : call);
  const translating = async <T>(call: Promise<T>): Promise<T> =>
    alive(call).catch((error: unknown) => {
      throw translated(error, { tableName: "table", operation: "a call" });
    });
  const connection = new Connection({
    transport: {
      call: async (operation, input) => alive(table.call(operation, input)),
      close: () => {},
    },
    tableName: "table",
    clock,
    random: seededRandom(1),
    requestTimeoutMs: 600_000,
    maxAttempts: 1,
  });
  const inner = new StreamAggregator({
    connection,
    windows: USAGE_WINDOWS,
    archive: undefined,
    maxShards: 1,
  });
  const progress: RunnerProgress[] = [];
  const problems: RunnerProblem[] = [];
  const batches: (readonly StreamRecord[])[] = [];
  const controller = new AbortController();
  runners += 1;
  const runner = new StreamRunner({
    connection,
    aggregator: {
      heartbeat: inner.heartbeat,
      pulse: () => inner.pulse(),
      process: async (records) => {
        batches.push(records);
        await setup.onBatch?.(records);
        const failed = records.filter((record) => setup.fails?.(record) === true);
        const report = await inner.process(records.filter((record) => !failed.includes(record)));
        const failures = failed.map(({ sequenceNumber }) => ({
          sequenceNumber,
          error: new Error("it fails"),
        }));
        return { ...report, failures };
      },
    },
    stream: {
      label: table.label,
      shards: async () => translating(table.shards()),
      iterator: async (shardId, after) => translating(table.iterator(shardId, after)),
      read: async (iterator) => translating(table.read(iterator)),
    },
    runnerId: `runner-${runners}`,
    once: setup.once ?? false,
    onProgress: (next) => progress.push(next),
    onProblem: (problem) => problems.push(problem),
  });
  const started: Started = {
    progress,
    problems,
    batches,
    stop: () => controller.abort(),
    kill: () => (isDead = true),
    ended: runner.run(controller.signal),
    report: undefined,
  };
  started.ended.then(
    (report) => (started.report = report),
    () => {},
  );
  return started;
}

function stateOf(table: StreamedTable, shardId = "shard-1") {
  const item = table.system(`#STREAM#${shardId}`);
  return {
    owner: stringOf(item?.["owner"]),
    checkpoint: stringOf(item?.["sequence_number"]),
    finished: item?.["finished"] !== undefined,
  };
}

function bucketRecords({ batches }: Started): readonly StreamRecord[] {
  return batches.flat().filter(({ after }) => after?.["b_rpm_tc"] !== undefined);
}

/** Moves time until something holds, in steps that are shorter than any pause. */
async function until(clock: ManualClock, condition: () => boolean, mostMs = 120_000) {
  for (let passed = 0; !condition(); passed += 200) {
    if (passed > mostMs) throw new Error(`Not within ${mostMs} ms`);
    await clock.advance(200);
  }
}

const clockAt = () => new ManualClock(Date.UTC(2026, 0, 4, 12, 30));

describe("a runner", () => {
  it("counts what is in the stream, and stores how far it is", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 25; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock);
    await until(clock, () => (runner.progress.at(-1)?.counted ?? 0) === 25);
    expect(countedOf(table, "a")).toEqual([25, 25, 25]);
    await clock.advance(1000);
    expect(Number(stateOf(table).checkpoint)).toBeGreaterThanOrEqual(25 * 5);
    expect(runner.progress.at(-1)).toMatchObject({ shardsHeld: 1, shardsSeen: 1 });
    runner.stop();
    await clock.advance(1000);
    expect(await runner.ended).toMatchObject({ ended: "stopped", counted: 25 });
    expect(stateOf(table).owner).toBeUndefined();
  });

  it("reads a shard at most four times a second", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 300; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock);
    await clock.advance(5000);
    expect(table.reads.get("shard-1")).toBeGreaterThan(10);
    expect(table.reads.get("shard-1")).toBeLessThanOrEqual(21);
    runner.stop();
    await clock.advance(1000);
  });

  it("that is idle writes leases and pulses, and no more the longer it runs", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.put(bucketItem("a", 1));
    const runner = start(table, clock);
    await clock.advance(60_000);
    table.written.length = 0;
    await clock.advance(120_000);
    const early = writesByKind(table.written);
    // A pulse every 30 s comes back and moves heartbeat and checkpoint; renewals come every 4 s.
    expect(early["PULSE"]).toBeLessThanOrEqual(4);
    expect(early["AGGREGATOR"]).toBeLessThanOrEqual(4);
    expect(early["STREAM"]).toBeLessThanOrEqual(30 + 4);
    expect(Object.keys(early).sort()).toEqual(["AGGREGATOR", "PULSE", "STREAM"]);
    await clock.advance(600_000);
    table.written.length = 0;
    await clock.advance(120_000);
    expect(writesByKind(table.written)).toEqual(early);
    runner.stop();
    await clock.advance(1000);
  });

  it("reads children when their parent is finished, and their checkpoints are their own", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["parent"]);
    for (let tokens = 1; tokens <= 25; tokens += 1) table.put(bucketItem("a", tokens));
    table.closeShard("parent");
    table.addShard("left", "parent");
    table.addShard("right", "parent");
    table.shardOf = (PK) => (PK.includes("#a#") ? "left" : "right");
    for (let tokens = 26; tokens <= 50; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock);
    await until(clock, () => countedOf(table, "a")[0] === 50);
    const order = bucketRecords(runner).map(({ position }) => position);
    expect(order).toHaveLength(50);
    expect(order).toEqual(order.toSorted());
    expect(stateOf(table, "parent")).toMatchObject({ finished: true, owner: undefined });
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 2);
    expect(runner.progress.at(-1)).toMatchObject({ shardsSeen: 2 });
    runner.stop();
    await clock.advance(1000);
  });
});

describe("what goes wrong", () => {
  it("a record that fails stops the checkpoint before it, and is tried again with pauses", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 8; tokens += 1) table.put(bucketItem(`e${tokens}`, tokens));
    let isBroken = true;
    const runner = start(table, clock, {
      fails: ({ sequenceNumber }) => isBroken && sequenceNumber === "20",
    });
    await until(clock, () => runner.problems.length >= 5);
    expect(stateOf(table).checkpoint).toBe("15");
    const pauses = runner.problems.map((problem) => problem.kind === "retry" && problem.retryInMs);
    expect(pauses.slice(0, 5)).toEqual([500, 1000, 2000, 4000, 8000]);
    expect(runner.problems[0]).toMatchObject({
      shardId: "shard-1",
      error: expect.objectContaining({ message: "it fails" }),
    });
    isBroken = false;
    await until(clock, () => Number(stateOf(table).checkpoint) >= 40);
    expect(countedOf(table, "e4")).toEqual([4, 4, 4]);
    expect(countedOf(table, "e8")).toEqual([8, 8, 8]);
    runner.stop();
    await clock.advance(1000);
  });

  it("a table and a stream that do not answer are tried again, and nothing is skipped", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 25; tokens += 1) table.put(bucketItem("a", tokens));
    for (const operation of ["DescribeStream", "GetShardIterator", "GetRecords", "Query"])
      table.faults.push({ operation, error: named("LimitExceededException") });
    for (let count = 0; count < 3; count += 1)
      table.faults.push({ operation: "UpdateItem", error: named("InternalServerError") });
    const runner = start(table, clock);
    await until(clock, () => countedOf(table, "a")[0] === 25);
    expect(runner.problems.length).toBeGreaterThanOrEqual(5);
    runner.stop();
    await clock.advance(1000);
  });

  it("an iterator that expired is replaced, and each record is still counted once", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 15; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock, { onBatch: () => table.expireIterators() });
    await until(clock, () => countedOf(table, "a")[0] === 15);
    expect(bucketRecords(runner)).toHaveLength(15);
    expect(runner.problems).toEqual([]);
    runner.stop();
    await clock.advance(1000);
  });

  it("records that the stream has dropped are reported, and the rest is counted", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 5; tokens += 1) table.put(bucketItem("a", tokens));
    const first = start(table, clock);
    await until(clock, () => Number(stateOf(table).checkpoint) >= 25);
    first.stop();
    await clock.advance(1000);
    for (let tokens = 6; tokens <= 9; tokens += 1) table.put(bucketItem("a", tokens));
    table.trim("shard-1", table.sequenceNumbers("shard-1").length - 1);
    const second = start(table, clock);
    await until(clock, () => countedOf(table, "a")[0] === 6);
    expect(second.problems).toEqual([{ kind: "records-lost", shardId: "shard-1" }]);
    second.stop();
    await clock.advance(1000);
  });

  it("a shard that has left the stream is finished", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["old", "new"]);
    const runner = start(table, clock);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 2);
    table.drop("old");
    await until(clock, () => stateOf(table, "old").finished);
    runner.stop();
    await clock.advance(1000);
  });

  it("what a retry cannot remove ends the runner, which gives its leases back", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["shard-1", "shard-2"]);
    const denied = new InfrastructureError("ERR_LIMITER_PERMISSION_DENIED", "denied");
    const runner = start(table, clock);
    const outcome = runner.ended.catch((error: unknown) => error);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 2);
    table.faults.push({ operation: "GetRecords", error: denied });
    await clock.advance(10_000);
    expect(await outcome).toBe(denied);
    expect(stateOf(table, "shard-2").owner).toBeUndefined();
  });
});

describe("several runners", () => {
  it("share the shards, also when one comes later or goes", async () => {
    const clock = clockAt();
    const shards = ["s1", "s2", "s3", "s4"];
    const table = new StreamedTable(clock, shards);
    table.shardOf = (PK) => shards[Number(/#e(\d)#/.exec(PK)?.[1] ?? 1) - 1]!;
    const first = start(table, clock);
    await until(clock, () => first.progress.at(-1)?.shardsHeld === 4);
    const second = start(table, clock);
    await until(clock, () => second.progress.at(-1)?.shardsHeld === 2);
    expect(first.progress.at(-1)?.shardsHeld).toBe(2);
    for (let tokens = 1; tokens <= 12; tokens += 1)
      for (let entity = 1; entity <= 4; entity += 1) table.put(bucketItem(`e${entity}`, tokens));
    await until(clock, () => [1, 2, 3, 4].every((n) => countedOf(table, `e${n}`)[0] === 12));
    first.stop();
    await until(clock, () => second.progress.at(-1)?.shardsHeld === 4);
    expect([...table.items.keys()].filter((key) => key.includes("#RUNNER#"))).toEqual([]);
    second.stop();
    await clock.advance(1000);
  });

  it("take over from one that died within 20 s, and count nothing twice", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 25; tokens += 1) table.put(bucketItem("a", tokens));
    const dying = start(table, clock);
    // It has counted two pages, and stored the checkpoint of one.
    await until(clock, () => dying.batches.length === 2);
    dying.kill();
    const next = start(table, clock);
    await clock.advance(20_000);
    expect(next.progress.at(-1)?.shardsHeld).toBe(1);
    await until(clock, () => countedOf(table, "a")[0] === 25);
    expect(countedOf(table, "a")).toEqual([25, 25, 25]);
    next.stop();
    await clock.advance(1000);
  });

  it("stop reading a shard whose lease another has taken", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const runner = start(table, clock);
    await until(clock, () => stateOf(table).owner !== undefined);
    const item = table.system("#STREAM#shard-1")!;
    const untilMs = numberOf(item["lease_until_ms"])! + 600_000;
    table.put({ ...item, owner: { S: "thief" }, lease_until_ms: { N: String(untilMs) } });
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 0);
    const reads = table.reads.get("shard-1");
    table.put(bucketItem("a", 1));
    await clock.advance(30_000);
    expect(table.reads.get("shard-1")).toBe(reads);
    const checkpoint = stringOf(item["sequence_number"]);
    expect(stateOf(table)).toMatchObject({ owner: "thief", checkpoint });
    runner.stop();
    await clock.advance(1000);
  });
});

describe("once", () => {
  it("ends when everything of its start is counted, while others write on", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    for (let tokens = 1; tokens <= 25; tokens += 1) table.put(bucketItem("a", tokens));
    const startMs = clock.now();
    const runner = start(table, clock, { once: true });
    for (let tokens = 1; runner.report === undefined; tokens += 1) {
      table.put(bucketItem("busy", tokens));
      await clock.advance(400);
      expect(tokens).toBeLessThan(100);
    }
    expect(runner.report.ended).toBe("counted");
    expect(countedOf(table, "a")).toEqual([25, 25, 25]);
    expect(stateOf(table).owner).toBeUndefined();
    const until = numberOf(table.system("#AGGREGATOR")?.["counted_until_ms"]);
    expect(until).toBeGreaterThanOrEqual(startMs);
    expect(writesByKind(table.written)).not.toHaveProperty("PULSE");
  });

  it("says of an empty stream that it is counted", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const startMs = clock.now();
    const runner = start(table, clock, { once: true });
    await until(clock, () => runner.report !== undefined);
    expect(runner.report).toMatchObject({ ended: "counted", counted: 0 });
    expect(numberOf(table.system("#AGGREGATOR")?.["counted_until_ms"])).toBe(startMs);
  });

  it("reads parents to their end and their children too", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock, ["parent"]);
    for (let tokens = 1; tokens <= 35; tokens += 1) table.put(bucketItem("a", tokens));
    table.closeShard("parent");
    table.addShard("child", "parent");
    for (let tokens = 36; tokens <= 40; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock, { once: true });
    await until(clock, () => runner.report !== undefined);
    expect(countedOf(table, "a")).toEqual([40, 40, 40]);
    expect(stateOf(table, "parent").finished).toBe(true);
  });

  it("waits for what another runner holds and has not counted", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    let release: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const holder = start(table, clock, { onBatch: async () => held });
    await until(clock, () => stateOf(table).owner !== undefined);
    for (let tokens = 1; tokens <= 25; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock, { once: true });
    await clock.advance(60_000);
    expect(runner.report).toBeUndefined();
    release!();
    await until(clock, () => runner.report !== undefined);
    expect(countedOf(table, "a")).toEqual([25, 25, 25]);
    expect(runner.report).toMatchObject({ ended: "counted", counted: 0 });
    expect(stateOf(table).owner).toBeDefined();
    holder.stop();
    await clock.advance(1000);
  });

  it("counts itself what a runner held that dies", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const holder = start(table, clock, { onBatch: async () => new Promise(() => {}) });
    await until(clock, () => stateOf(table).owner !== undefined);
    for (let tokens = 1; tokens <= 5; tokens += 1) table.put(bucketItem("a", tokens));
    const runner = start(table, clock, { once: true });
    await clock.advance(8000);
    expect(runner.report).toBeUndefined();
    holder.kill();
    await until(clock, () => runner.report !== undefined);
    expect(runner.report).toMatchObject({ ended: "counted", counted: 5 });
  });
});
