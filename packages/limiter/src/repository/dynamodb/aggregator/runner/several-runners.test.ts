import { describe, expect, it } from "vitest";
import { named } from "../../../../../test/support/scripted-table.ts";
import {
  clockAt,
  startRunner,
  storedState,
  until,
} from "../../../../../test/support/started-runner.ts";
import {
  bucketItem,
  countedOf,
  StreamedTable,
} from "../../../../../test/support/streamed-table.ts";
import { numberOf, stringOf } from "../../transport/attribute-values.ts";

describe("several runners", () => {
  it("share the shards, also when one comes later or goes", async () => {
    const clock = clockAt();
    const shards = ["s1", "s2", "s3", "s4"];
    const table = new StreamedTable(clock, shards);
    table.shardOf = (PK) => shards[Number(/#e(\d)#/.exec(PK)?.[1] ?? 1) - 1]!;
    const first = startRunner(table, clock);
    await until(clock, () => first.progress.at(-1)?.shardsHeld === 4);
    const second = startRunner(table, clock);
    await until(clock, () => second.progress.at(-1)?.shardsHeld === 2);
    expect(first.progress.at(-1)?.shardsHeld).toBe(2);
    for (let tokens = 1; tokens <= 12; tokens += 1)
      for (let entity = 1; entity <= 4; entity += 1) table.put(bucketItem(`e${entity}`, tokens));
    await until(clock, () => [1, 2, 3, 4].every((n) => countedOf(table, `e${n}`)[0] === 12));
    first.stop();
    await until(clock, () => second.progress.at(-1)?.shardsHeld === 4);
    expect([...table.items.keys()].filter((key) => key.includes("#RUNNER#"))).toEqual([]);
    await second.end();
  });

  it("take over from one that died within 20 s, and count nothing twice", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    table.consume("a", 1, 25);
    const dying = startRunner(table, clock);
    // It has counted two pages, and stored the checkpoint of one.
    await until(clock, () => dying.batches.length === 2);
    dying.kill();
    const next = startRunner(table, clock);
    await clock.advance(20_000);
    expect(next.progress.at(-1)?.shardsHeld).toBe(1);
    await until(clock, () => countedOf(table, "a")[0] === 25);
    expect(countedOf(table, "a")).toEqual([25, 25, 25]);
    await next.end();
  });

  it("stop reading a shard whose lease another has taken", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const runner = startRunner(table, clock);
    await until(clock, () => storedState(table).owner !== undefined);
    const item = table.system("#STREAM#shard-1")!;
    const untilMs = numberOf(item["lease_until_ms"])! + 600_000;
    table.put({ ...item, owner: { S: "thief" }, lease_until_ms: { N: String(untilMs) } });
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 0);
    const reads = table.reads.get("shard-1");
    table.put(bucketItem("a", 1));
    await clock.advance(30_000);
    expect(table.reads.get("shard-1")).toBe(reads);
    const checkpoint = stringOf(item["sequence_number"]);
    expect(storedState(table)).toMatchObject({ owner: "thief", checkpoint });
    await runner.end();
  });

  it("stop reading when they cannot renew their leases, and begin again when they can", async () => {
    const clock = clockAt();
    const table = new StreamedTable(clock);
    const runner = startRunner(table, clock);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 1);
    for (let count = 0; count < 20; count += 1)
      table.faults.push({ operation: "UpdateItem", error: named("InternalServerError") });
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 0);
    await until(clock, () => runner.progress.at(-1)?.shardsHeld === 1, 600_000);
    table.consume("a", 1, 5);
    await until(clock, () => countedOf(table, "a")[0] === 5);
    await runner.end();
  });
});
