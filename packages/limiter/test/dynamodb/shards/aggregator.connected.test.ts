import { expect, it } from "vitest";
import { ShardCare } from "../../../src/repository/dynamodb/aggregator/shards/shard-care.ts";
import type { StreamRecord } from "../../../src/repository/dynamodb/aggregator/stream-record.ts";
import { imageOf } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { granted } from "../../support/bucket-process.ts";
import { ChangeRecords } from "../../support/bucket-changes.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import { request, useShardBuckets } from "../../support/shard-buckets.ts";
import { sum } from "../../support/shard-processes.ts";

const MINUTE_MS = 60_000;

describeWithEngine("an aggregator that cares for shards", (engine) => {
  const { clock, connection, open, split, splitOnly, items } = useShardBuckets(engine);
  const records = new ChangeRecords();

  function aggregator(): ShardCare {
    return new ShardCare({ connection: connection(), maxShards: 32, ttlMultiplier: 7 });
  }

  /** A bucket of which shard 0 was split into 8, and the others were not, and the last record. */
  async function halfSplit(): Promise<{ entityId: string; record: StreamRecord }> {
    const { entityId, maker } = await split(2);
    for (const rpm of [100, 37, 250]) await granted(maker, request(entityId, rpm));
    await splitOnly(entityId, 0);
    const [before] = await items(entityId, 1);
    await splitOnly(entityId, 0);
    const [after] = await items(entityId, 1);
    return { entityId, record: records.of(before, after, clock.now()) };
  }

  it("completes a split from a batch that holds nothing but its record, and nothing is won or lost [W-14]", async () => {
    const { entityId, record } = await halfSplit();
    const before = await items(entityId, 64);
    expect(numbersIn(before, "shard_count")).toEqual([8, 2, 4, 8]);
    expect(await aggregator().care([record])).toMatchObject({ failures: [], splits: 4, shards: 8 });
    const after = await items(entityId, 64);
    expect(numbersIn(after, "shard_count")).toEqual(Array.from({ length: 8 }, () => 8));
    expect(totalsOf(after)).toEqual(totalsOf(before));
  });

  it("completes it once, however many aggregators do it at the same time", async () => {
    const { entityId, record } = await halfSplit();
    const before = await items(entityId, 64);
    const reports = await Promise.all([1, 2, 3].map(async () => aggregator().care([record])));
    expect(sum(reports.map(({ splits }) => splits))).toBe(4);
    expect(reports.flatMap(({ failures }) => failures)).toEqual([]);
    const after = await items(entityId, 64);
    expect(numbersIn(after, "shard_count")).toEqual(Array.from({ length: 8 }, () => 8));
    expect(totalsOf(after)).toEqual(totalsOf(before));
  });

  it("doubles a hot bucket once, however many aggregators see that it is hot", async () => {
    const { entityId } = await split(1);
    const [item] = await items(entityId, 1);
    const batch = [0, 1000, 2000].map((ms) => {
      const writes = imageOf(item!).writes - 2000 + ms;
      const image = { ...item, b_wcu_tc: { N: String(writes) } };
      return records.of(image, image, clock.now() - 2000 + ms);
    });
    const reports = await Promise.all([1, 2, 3].map(async () => aggregator().care(batch)));
    expect(sum(reports.map(({ splits }) => splits))).toBe(1);
    const after = await items(entityId, 64);
    expect(numbersIn(after, "shard_count")).toEqual([2, 2]);
    expect(totalsOf(after)).toEqual(totalsOf([item!]));
  });

  it("merges a bucket that has been calm for five minutes, and nothing is won or lost", async () => {
    const { entityId } = await split(4);
    const care = aggregator();
    let merges = 0;
    for (let minute = 0; minute <= 6; minute += 1) {
      // Processes that live for a moment merge nothing themselves.
      await granted(open(minute % 4), request(entityId, 3));
      const all = await items(entityId, 64);
      expect(all).toHaveLength(4);
      merges += (await care.care(all.map((item) => records.of(item, item, clock.now())))).merges;
      if (minute < 6) await clock.advance(MINUTE_MS);
    }
    expect(merges).toBe(3);
    const [merged, ...others] = await items(entityId, 64);
    expect(others).toEqual([]);
    expect(numbersIn([merged!], "shard_count")).toEqual([1]);
    // Whole again, the bucket may expire; all that was taken in the last minute is still missing.
    expect(merged).toHaveProperty("ttl");
    expect(totalsOf([merged!])).toMatchObject({ consumed: 21_000, requests: 8, tokens: 957_000 });
  });
});

/** What all shards of a bucket have, together. */
function totalsOf(items: readonly AttributeMap[]): object {
  return {
    tokens: sum(numbersIn(items, "b_rpm_tk")),
    consumed: sum(numbersIn(items, "b_rpm_tc")),
    requests: sum(numbersIn(items, "gr")),
  };
}
