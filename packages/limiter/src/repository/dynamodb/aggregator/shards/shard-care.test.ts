import { describe, expect, it } from "vitest";
import { WrittenTable } from "../../../../../test/support/bucket-changes.ts";
import { numbersIn } from "../../../../../test/support/proxied-table.ts";
import {
  named,
  scriptedProcess,
  type ScriptedProcess,
} from "../../../../../test/support/scripted-table.ts";
import { NOW_MS, shardItem, type StoredShard } from "../../../../../test/support/shard-images.ts";
import { Limit } from "../../../../core/limit.ts";
import { imageOf } from "../../items/bucket-item.ts";
import { configItem } from "../../items/config-item.ts";
import type { StreamRecord } from "../stream-record.ts";
import { ShardCare } from "./shard-care.ts";

const LARGE = [Limit.perMinute("tpm", 600_000)];
const MINUTE_MS = 60_000;
const IMAGES_A_SECOND = 20;

/** An aggregator on a table with the given shards of one bucket. */
interface Caring extends ScriptedProcess {
  readonly table: WrittenTable;
  readonly care: ShardCare;
  /** The transactions that were sent. */
  readonly transactions: () => number;
  /** The divisors of the shards that there are. */
  readonly divisors: () => readonly (number | undefined)[];
}

function caring(
  shards: readonly StoredShard[] = [{}],
  { maxShards = 32 }: { readonly maxShards?: number } = {},
): Caring {
  const table = new WrittenTable();
  for (const stored of shards) table.put(shardItem({ limits: LARGE, ...stored }));
  const process = scriptedProcess({ table });
  const { connection } = process;
  return {
    ...process,
    table,
    care: new ShardCare({ connection, maxShards, ttlMultiplier: 7 }),
    transactions: () => table.operations.filter((name) => name === "TransactWriteItems").length,
    divisors: () => numbersIn(table.shards(), "shard_count"),
  };
}

/**
 * Seconds of load, of which each shard gets the part of its class. Each second is a batch, which
 * begins with what the last one has caused.
 */
async function load(
  { table, clock, care }: Caring,
  unitsPerSecond: number,
  seconds: number,
): Promise<number> {
  let splits = 0;
  for (let second = 0; second < seconds; second += 1) {
    const startMs = clock.now();
    const shards = table.shards().map((item) => imageOf(item));
    const batch = [...table.transactedAt(startMs)];
    for (let atMs = startMs + 25; atMs < startMs + 1000; atMs += 1000 / IMAGES_A_SECOND)
      for (const { shard, divisor } of shards)
        batch.push(table.write(shard, unitsPerSecond / divisor / IMAGES_A_SECOND, atMs));
    clock.set(startMs + 1000);
    const report = await care.care(batch);
    expect(report.failures).toEqual([]);
    splits += report.splits;
  }
  return splits;
}

/** A hot shard 0 in one batch: 1000 units a second for some seconds that end now. */
function hotBatch({ table, clock }: Caring, seconds = 3, shard = 0): readonly StreamRecord[] {
  return Array.from({ length: seconds + 1 }, (_, second) =>
    table.write(shard, 1000, clock.now() - (seconds - second) * 1000),
  );
}

describe("the pressure that the stream shows", () => {
  it("one request a second is no pressure: 1100 of them leave one shard, and ask for nothing [W-02]", async () => {
    const caringFor = caring();
    const { table, clock, care } = caringFor;
    for (let second = 1; second <= 1100; second += 1) {
      clock.set(NOW_MS + second * 1000);
      await care.care([table.write(0, 1, clock.now())]);
    }
    expect(table.operations).toEqual([]);
    expect(caringFor.divisors()).toEqual([1]);
  });

  it("900 writes a second for a minute double a bucket once, and no later batch does again [W-02]", async () => {
    const caringFor = caring();
    expect(await load(caringFor, 790, 10)).toBe(0);
    expect(await load(caringFor, 900, 4)).toBe(1);
    expect(await load(caringFor, 900, 56)).toBe(0);
    expect(caringFor.divisors()).toEqual([2, 2]);
  });

  it("3000 writes a second settle at 4 shards, and more than can be helped at the most there may be", async () => {
    const caringFor = caring();
    expect(await load(caringFor, 3000, 30)).toBe(3);
    expect(caringFor.divisors()).toEqual([4, 4, 4, 4]);
    const bounded = caring([{}], { maxShards: 4 });
    expect(await load(bounded, 60_000, 30)).toBe(3);
  });

  it("is measured over two seconds at least: images of one second, or across its end, are no rate", async () => {
    const caringFor = caring();
    const { table, clock, care } = caringFor;
    const endMs = NOW_MS + 1000;
    clock.set(endMs);
    // 1500 units within 20 ms, and hardly anything after them.
    await care.care([
      table.write(0, 1, endMs - 30),
      table.write(0, 700, endMs - 10),
      table.write(0, 800, endMs),
    ]);
    await care.care([table.write(0, 1, endMs + 900), table.write(0, 1, endMs + 1000)]);
    expect(table.operations).toEqual([]);
  });

  it("is that of now: records that are older than a minute split nothing", async () => {
    const caringFor = caring();
    const batch = hotBatch(caringFor);
    caringFor.clock.set(NOW_MS + MINUTE_MS + 1);
    await caringFor.care.care(batch);
    expect(caringFor.table.operations).toEqual([]);
  });

  it("is that of the end of a batch: what was hot in its first seconds only is left alone [W-29]", async () => {
    const caringFor = caring();
    const { table, clock, care } = caringFor;
    const hot = hotBatch(caringFor);
    const calm = [1, 2, 3].map((second) => table.write(0, 1, NOW_MS + second * 1000));
    clock.set(NOW_MS + 3000);
    await care.care([...hot, ...calm]);
    expect(table.operations).toEqual([]);
  });

  it("counts for the shard that was measured: not after a split that the batch does not show [W-29]", async () => {
    const caringFor = caring();
    const { table, care } = caringFor;
    const batch = hotBatch(caringFor);
    table.put(shardItem({ limits: LARGE, divisor: 2, version: 6, writes: 9000 }));
    table.put(shardItem({ limits: LARGE, shard: 1, divisor: 2, version: 6 }));
    expect(await care.care(batch)).toMatchObject({ splits: 0, failures: [] });
    expect(caringFor.transactions()).toBe(0);
  });

  it("is not doubled by records that come twice, nor turned round by records that come late", async () => {
    const caringFor = caring();
    const { clock, care, table } = caringFor;
    const batch = hotBatch(caringFor);
    // The bucket stays as it is, so that nothing but the records speaks against another doubling.
    const stored = table.shard(0)!;
    expect((await care.care(batch)).splits).toBe(1);
    for (let times = 1; times <= 3; times += 1) {
      table.put(stored);
      clock.set(NOW_MS + times * 5000);
      for (const again of [batch, batch.toReversed(), batch.slice(-2)])
        expect((await care.care(again)).splits).toBe(0);
    }
  });

  it("of any shard doubles the bucket, from shard 0, whose record then completes it", async () => {
    const caringFor = caring([0, 1].map((shard) => ({ shard, divisor: 2 })));
    const { table, care } = caringFor;
    const before = table.shard(0)!;
    expect(await care.care(hotBatch(caringFor, 3, 1))).toMatchObject({ splits: 1, shards: 2 });
    expect(caringFor.divisors()).toEqual([4, 2, 4]);
    const record = table.records.of(before, table.shard(0), NOW_MS);
    expect(await care.care([record])).toMatchObject({ splits: 1, shards: 4 });
    expect(caringFor.divisors()).toEqual([4, 4, 4, 4]);
  });

  it("splits no bucket whose shards would hold fewer than four calls of the usual size", async () => {
    const caringFor = caring([{ limits: [Limit.perMinute("tpm", 60)], requests: 1 }]);
    const { table } = caringFor;
    table.rewrite({ b_tpm_tc: { N: "8000" } });
    await caringFor.care.care(hotBatch(caringFor));
    expect(caringFor.transactions()).toBe(0);
  });

  it("that cannot be relieved is no failure, and is tried again when it is next measured", async () => {
    const caringFor = caring();
    const { table, clock, care } = caringFor;
    table.faults.push({ instead: named("AccessDeniedException") });
    expect(await care.care(hotBatch(caringFor))).toMatchObject({ splits: 0, failures: [] });
    clock.set(NOW_MS + 4000);
    expect(await care.care(hotBatch(caringFor))).toMatchObject({ splits: 1, failures: [] });
  });

  it("of a bucket that is gone, or has limits of an unknown kind, is left alone", async () => {
    for (const kept of [[], [{ ...shardItem(), b_tpm_kd: { S: "calendar" } }]]) {
      const caringFor = caring();
      const batch = hotBatch(caringFor);
      caringFor.table.items.clear();
      for (const item of kept) caringFor.table.put(item);
      expect(await caringFor.care.care(batch)).toMatchObject({ splits: 0, failures: [] });
      expect(caringFor.transactions()).toBe(0);
    }
  });

  it("needs nothing of buckets that are merely empty: their own writes refill them [W-23]", async () => {
    const caringFor = caring([{ tokens: { tpm: 0 }, refilledAtMs: NOW_MS - MINUTE_MS }]);
    const { table, care } = caringFor;
    await care.care([0, 1, 2, 3].map((second) => table.write(0, 10, NOW_MS - second)));
    expect(table.operations).toEqual([]);
  });
});

/** The record of the split of shard 0 from a smaller divisor. */
function announcement({ table }: Caring, from: number): StreamRecord {
  const after = table.shard(0)!;
  return table.records.of({ ...after, shard_count: { N: String(from) } }, after, NOW_MS);
}

const HALF_SPLIT: readonly StoredShard[] = [
  { divisor: 8 },
  { shard: 4, divisor: 8 },
  { shard: 2, divisor: 4 },
  { shard: 1, divisor: 2 },
];

describe("a split that was announced", () => {
  it("is completed by a batch that holds nothing else, and only once [W-14]", async () => {
    const caringFor = caring(HALF_SPLIT);
    const record = announcement(caringFor, 4);
    const report = await caringFor.care.care([record]);
    expect(report).toEqual({ failures: [], splits: 4, merges: 0, shards: 8 });
    expect(caringFor.divisors()).toEqual(Array.from({ length: 8 }, () => 8));
    const sent = caringFor.transactions();
    caringFor.clock.set(NOW_MS + 3_600_000);
    expect(await caringFor.care.care([record, record])).toMatchObject({ splits: 0 });
    expect(caringFor.transactions()).toBe(sent);
  });

  it("is completed by a later delivery when the table does not answer, however old the record is [W-14]", async () => {
    const caringFor = caring(HALF_SPLIT);
    const { table, clock, care } = caringFor;
    const record = announcement(caringFor, 4);
    const other = table.write(1, 1, NOW_MS);
    for (let times = 0; times < 6; times += 1)
      table.faults.push({ instead: named("InternalServerError") });
    const { failures } = await care.care([other, record]);
    expect(failures.map(({ sequenceNumber }) => sequenceNumber)).toEqual([record.sequenceNumber]);
    table.faults.length = 0;
    clock.set(NOW_MS + 3_600_000);
    expect((await care.care([other, record])).failures).toEqual([]);
    expect(caringFor.divisors()).toEqual(Array.from({ length: 8 }, () => 8));
  });

  it("is left alone when the bucket was merged meanwhile, is gone, or is of an unknown kind", async () => {
    const merged = [{ divisor: 2 }, { shard: 1, divisor: 2 }].map((stored) => shardItem(stored));
    const unknown = HALF_SPLIT.map((stored) => ({
      ...shardItem(stored),
      b_tpm_kd: { S: "calendar" },
    }));
    for (const kept of [merged, [], unknown]) {
      const caringFor = caring(HALF_SPLIT);
      const record = announcement(caringFor, 4);
      caringFor.table.items.clear();
      for (const item of kept) caringFor.table.put(item);
      expect(await caringFor.care.care([record])).toMatchObject({ failures: [], splits: 0 });
      expect(caringFor.transactions()).toBe(0);
    }
  });

  it("goes as far as the bucket can be split, which is no failure", async () => {
    const small = { limits: [Limit.perMinute("tpm", 7)] };
    const tooSmall = caring(HALF_SPLIT.map((stored) => ({ ...stored, ...small })));
    expect(await tooSmall.care.care([announcement(tooSmall, 4)])).toMatchObject({
      failures: [],
      splits: 1,
    });
    expect(tooSmall.divisors()).toEqual([8, 4, 4, 4, 8]);
    const bounded = caring(HALF_SPLIT, { maxShards: 4 });
    expect(await bounded.care.care([announcement(bounded, 4)])).toMatchObject({ splits: 1 });
  });

  it("is no pressure and no merge: only a larger divisor of shard 0 announces shards", async () => {
    const caringFor = caring(HALF_SPLIT);
    const { table, care } = caringFor;
    const [first, second] = [table.shard(0)!, table.shard(1)!];
    await care.care([
      table.records.of(first, first, NOW_MS),
      table.records.of({ ...first, shard_count: { N: "16" } }, first, NOW_MS),
      table.records.of({ ...second, shard_count: { N: "1" } }, second, NOW_MS),
      table.records.of(first, undefined, NOW_MS),
    ]);
    expect(table.operations).toEqual([]);
  });
});

describe("a bucket that has become calm", () => {
  it("is merged after five calm minutes, as by clients, and not one earlier", async () => {
    const caringFor = caring([0, 1].map((shard) => ({ shard, divisor: 2 })));
    const { table, clock, care } = caringFor;
    const merges: number[] = [];
    for (let minute = 0; minute <= 6; minute += 1) {
      clock.set(NOW_MS + minute * MINUTE_MS);
      const batch = [table.write(1, 100, clock.now()), table.write(0, 100, clock.now())];
      merges.push((await care.care(batch)).merges);
    }
    expect(merges).toEqual([0, 0, 0, 0, 0, 0, 1]);
    expect(caringFor.divisors()).toEqual([1]);
  });

  it("gets the limits that are stored where its shards have different ones, and no ttl if they are its own", async () => {
    const shared = [Limit.perMinute("tpm", 900_000)];
    for (const key of [
      { level: "system" },
      { level: "entity", entityId: "e", resource: "r" },
    ] as const) {
      const other = [Limit.perMinute("tpm", 800_000)];
      const caringFor = caring([{ divisor: 2 }, { shard: 1, divisor: 2, limits: other }]);
      const { table, clock, care } = caringFor;
      table.put(configItem("ns", key, { limits: shared }));
      for (let minute = 0; minute <= 6; minute += 1) {
        clock.set(NOW_MS + minute * MINUTE_MS);
        await care.care([table.write(0, 1, clock.now())]);
      }
      const [merged, ...others] = table.shards();
      expect(others).toEqual([]);
      expect(numbersIn([merged!], "b_tpm_cp")).toEqual([900_000_000]);
      expect(merged!["ttl"] === undefined).toBe(key.level === "entity");
    }
  });

  it("that is busy, or whose records are old, is not even looked at", async () => {
    const caringFor = caring([0, 1].map((shard) => ({ shard, divisor: 2 })));
    const { table, clock, care } = caringFor;
    for (let minute = 0; minute <= 20; minute += 1) {
      clock.set(NOW_MS + minute * MINUTE_MS);
      await care.care([table.write(0, 13_000, clock.now())]);
      await care.care([table.write(1, 1, clock.now() - MINUTE_MS - 1000)]);
    }
    expect(table.operations).toEqual([]);
  });
});

describe("the report about shards", () => {
  it("has the largest count among the last images of a batch, and 0 without buckets [W-29]", async () => {
    const { table, care } = caring();
    const record = (divisor: number, entityId = "e"): StreamRecord =>
      table.records.of(shardItem({ entityId }), shardItem({ divisor, entityId }), 0);
    const merged = table.records.of(shardItem({ divisor: 8 }), shardItem({ divisor: 1 }), NOW_MS);
    expect(await care.care([record(8), merged, record(2, "f")])).toMatchObject({ shards: 2 });
    expect(await care.care([])).toEqual({ failures: [], splits: 0, merges: 0, shards: 0 });
    const key = { PK: { S: "ns/ENTITY#e" }, SK: { S: "#META" } };
    expect(await care.care([table.records.of(undefined, key, NOW_MS)])).toMatchObject({
      shards: 0,
    });
    const removed = table.records.of(shardItem({ divisor: 8 }), undefined, NOW_MS);
    expect(await care.care([removed])).toMatchObject({ shards: 0 });
  });
});
