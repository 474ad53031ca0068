import { describe, expect, it } from "vitest";
import { WrittenTable } from "../../../../../test/support/bucket-changes.ts";
import { numbersIn } from "../../../../../test/support/proxied-table.ts";
import {
  createError,
  scriptedProcess,
  type ScriptedProcess,
} from "../../../../../test/support/scripted-table.ts";
import { NOW_MS, shardItem, type StoredShard } from "../../../../../test/support/shard-images.ts";
import { Limit } from "../../../../core/limit.ts";
import { configItem } from "../../items/config-item.ts";
import type { StreamRecord } from "../stream-record.ts";
import { CalmMerger } from "./calm-merger.ts";

const LARGE = [Limit.perMinute("tpm", 600_000)];
const MINUTE_MS = 60_000;
const HALVES: readonly StoredShard[] = [0, 1].map((shard) => ({ shard, divisor: 2 }));

/** An aggregator on a table with the given shards of one bucket. */
interface Merging extends ScriptedProcess {
  readonly table: WrittenTable;
  readonly merger: CalmMerger;
  /** The divisors of the shards that there are. */
  readonly divisors: () => readonly (number | undefined)[];
}

function start(shards: readonly StoredShard[]): Merging {
  const table = new WrittenTable();
  for (const stored of shards) table.put(shardItem({ limits: LARGE, ...stored }));
  const process = scriptedProcess({ table });
  const merger = new CalmMerger({ connection: process.connection, ttlMultiplier: 7 });
  return { ...process, table, merger, divisors: () => numbersIn(table.shards(), "shard_count") };
}

describe("a bucket that has become calm", () => {
  it("is merged after five calm minutes, as by clients, and not one earlier", async () => {
    const { table, clock, merger, divisors } = start(HALVES);
    for (let minute = 0; minute <= 6; minute += 1) {
      expect(divisors()).toEqual([2, 2]);
      clock.set(NOW_MS + minute * MINUTE_MS);
      await merger.look([table.write(1, 100, clock.now()), table.write(0, 100, clock.now())]);
    }
    expect(divisors()).toEqual([1]);
  });

  it("gets the limits that are stored where its shards have different ones, and no ttl if they are its own", async () => {
    const shared = [Limit.perMinute("tpm", 900_000)];
    for (const key of [
      { level: "system" },
      { level: "entity", entityId: "e", resource: "r" },
    ] as const) {
      const other = [Limit.perMinute("tpm", 800_000)];
      const { table, clock, merger } = start([
        { divisor: 2 },
        { shard: 1, divisor: 2, limits: other },
      ]);
      table.put(configItem("ns", key, { limits: shared }));
      for (let minute = 0; minute <= 6; minute += 1) {
        clock.set(NOW_MS + minute * MINUTE_MS);
        await merger.look([table.write(0, 1, clock.now())]);
      }
      const [merged, ...others] = table.shards();
      expect(others).toEqual([]);
      expect(numbersIn([merged!], "b_tpm_cp")).toEqual([900_000_000]);
      expect(merged!["ttl"] === undefined).toBe(key.level === "entity");
    }
  });

  it("that is busy, or whole, is not even looked at", async () => {
    for (const shards of [HALVES, [{}]]) {
      const { table, clock, merger } = start(shards);
      for (let minute = 0; minute <= 20; minute += 1) {
        clock.set(NOW_MS + minute * MINUTE_MS);
        await merger.look([table.write(0, shards === HALVES ? 13_000 : 1, clock.now())]);
      }
      expect(table.operations).toEqual([]);
    }
  });

  it("that cannot be merged fails no record, and is merged by a later look", async () => {
    const { table, clock, merger, divisors } = start(HALVES);
    for (let minute = 0; minute <= 8; minute += 1) {
      clock.set(NOW_MS + minute * MINUTE_MS);
      table.faults.length = 0;
      if (minute === 6) table.faults.push({ instead: createError("AccessDeniedException") });
      await merger.look([table.write(0, 1, clock.now())]);
      if (minute === 6) expect(divisors()).toEqual([2, 2]);
    }
    expect(divisors()).toEqual([1]);
  });
});

describe("the report about shards", () => {
  it("has the largest count among the last images of a batch, and 0 without buckets [W-29]", async () => {
    const { table, merger } = start([{}]);
    const record = (divisor: number, entityId = "e"): StreamRecord =>
      table.records.get(shardItem({ entityId }), shardItem({ divisor, entityId }), 0);
    const merged = table.records.get(shardItem({ divisor: 8 }), shardItem({ divisor: 1 }), NOW_MS);
    const removed = table.records.get(shardItem({ divisor: 8 }), undefined, NOW_MS);
    expect(await merger.look([record(8), merged, record(2, "f")])).toMatchObject({ shards: 2 });
    expect(await merger.look([removed])).toMatchObject({ shards: 0 });
    const key = { PK: { S: "ns/ENTITY#e" }, SK: { S: "#META" } };
    expect(await merger.look([table.records.get(undefined, key, NOW_MS)])).toEqual({
      splits: 0,
      merges: 0,
      shards: 0,
    });
  });

  it("has the splits and merges of the batch, and takes no new bucket for one", async () => {
    const { table, merger } = start([{}]);
    const change = (before: number | undefined, after: number | undefined): StreamRecord => {
      const [old, next] = [before, after].map((divisor) => divisor && shardItem({ divisor }));
      return table.records.get(old || undefined, next || undefined, NOW_MS);
    };
    const batch = [
      change(1, 2),
      change(undefined, 2),
      change(2, 4),
      change(4, 2),
      change(4, undefined),
    ];
    expect(await merger.look(batch)).toMatchObject({ splits: 2, merges: 1 });
    const before = { ...shardItem({ divisor: 4 }), cr: { S: "another bucket" } };
    const replaced = table.records.get(before, shardItem({ divisor: 1 }), NOW_MS);
    expect(await merger.look([replaced])).toMatchObject({ splits: 0, merges: 0 });
  });
});
