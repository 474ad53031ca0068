import { expect, it } from "vitest";
import {
  Limit,
  NamespaceNotFoundError,
  RateLimiter,
  RateLimitExceeded,
  ValidationError,
} from "zae-limiter";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import type { ProxiedRequest } from "../../support/fault-proxy.ts";
import { buildBucket, listKeys } from "../../support/proxied-table.ts";
import { sum, useShards, type ShardProcess } from "../../support/shard-processes.ts";

const rpm = Limit.perMinute("rpm", 60);

describeWithEngine("a bucket with shards, from its first split to its end", (engine) => {
  const { open, openSplit, items, table, clock } = useShards(engine);

  /** Leaves shards of a bucket that is gone: what a deletion that did not see them would leave. */
  async function orphan(): Promise<void> {
    for (const item of await items()) {
      if (buildBucket(item)!.shard === 0)
        await table.raw("DeleteItem", { Key: { PK: item["PK"], SK: item["SK"] } });
      else await table.raw("PutItem", { Item: { ...item, cr: { S: "gone.0001" } } });
    }
  }

  it("a split bucket is listed shard by shard, and counts as one for capacity and what is available", async () => {
    const { limiter, repository } = await openSplit(rpm, { shards: 16, home: 0 });
    await take(limiter, { rpm: 1 });
    const buckets = await repository.getBuckets("e");
    expect(buckets.map(({ shard }) => shard)).toEqual(
      Array.from({ length: 16 }, (_, shard) => shard),
    );
    expect(sum(buckets.map(({ capacityMilli }) => capacityMilli))).toBe(60_000);
    expect(sum(buckets.map(({ tokensMilli }) => tokensMilli))).toBe(59_000);
    expect(await repository.getResourceCapacity("r", "rpm")).toMatchObject({
      totalCapacity: 60,
      totalAvailable: 59,
    });
    expect(await limiter.available("e", "r")).toEqual({ rpm: 59 });
  });

  it("a split by hand goes only as far as it can, and writes nothing otherwise", async () => {
    const process = await openSplit(rpm, { shards: 2, home: 0 });
    const { repository, limiter } = process;
    const before = await items();
    for (const shards of [0, 3, 1.5, -2, Number.NaN, Infinity, 64])
      await expect(repository.splitBucket!("e", "r", { shards }), String(shards)).rejects.toThrow(
        ValidationError,
      );
    await expect(repository.splitBucket!("missing", "r", { shards: 2 })).rejects.toThrow(
      /has no bucket for r yet/,
    );
    await expect(repository.splitBucket!("a#b", "r", { shards: 2 })).rejects.toThrow(
      ValidationError,
    );
    await repository.setLimits("small", [Limit.perMinute("rpm", 3)]);
    await take(limiter, { rpm: 1 }, "small");
    await expect(repository.splitBucket!("small", "r", { shards: 4 })).rejects.toThrow(
      /shares below one token/,
    );
    expect(await buildShards(process, "small")).toEqual([0]);
    expect(await items()).toEqual(before);
    expect(await repository.splitBucket!("small", "r", { shards: 2 })).toBe(2);
    expect(await repository.splitBucket!("e", "r", { shards: 1 })).toBe(2);
    expect(repository.getStatistics().splits).toBe(2);
  });

  it("a process that allows fewer shards splits no further, and serves those that are there", async () => {
    await openSplit(rpm, { shards: 2, home: 0 });
    const repository = await table.open("app", { clock, maxShards: 1 });
    await expect(repository.splitBucket!("e", "r", { shards: 4 })).rejects.toThrow(ValidationError);
    await take(new RateLimiter({ repository }), { rpm: 60 });
  });

  it("shards that a deleted bucket left are neither listed nor counted nor taken from", async () => {
    const process = await openSplit(rpm, { shards: 4, home: 0 });
    await orphan();
    expect(await items()).toHaveLength(3);
    expect(await buildShards(process)).toEqual([]);
    expect(await process.repository.getResourceCapacity("r", "rpm")).toMatchObject({
      totalCapacity: 0,
      totalAvailable: 0,
    });
    const fresh = await open(1);
    expect(await fresh.limiter.available("e", "r")).toEqual({ rpm: 60 });
    await take(fresh.limiter, { rpm: 50 });
    expect(await items()).toHaveLength(4);
    expect(await buildShards(fresh)).toEqual([0]);
    expect(await fresh.repository.getResourceCapacity("r", "rpm")).toMatchObject({
      totalCapacity: 60,
      totalAvailable: 10,
    });
    await fresh.repository.splitBucket!("e", "r", { shards: 2 });
    expect(await buildShards(fresh)).toEqual([0, 1]);
    expect(await fresh.limiter.available("e", "r")).toEqual({ rpm: 10 });
    await take(fresh.limiter, { rpm: 10 });
    await expect(take(fresh.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("the deletion of an entity takes all shards, and what earlier buckets left", async () => {
    const { repository } = await openSplit(rpm, { shards: 4, home: 0 });
    await repository.createEntity("e");
    await orphan();
    await take((await open(1)).limiter, { rpm: 1 });
    await repository.deleteEntity("e");
    expect(listKeys(await items())).toEqual([]);
  });

  it("shard 0 is deleted first, so that a deletion that fails halfway leaves a bucket or none", async () => {
    const { repository } = await openSplit(rpm, { shards: 4, home: 0 });
    await repository.createEntity("e");
    const sent = await table.sentDuring(() => repository.deleteEntity("e"));
    const deletions = sent.filter(({ operation }) => operation === "BatchWriteItem");
    expect(deletions.map(shardsIn)).toEqual([[0], [1, 2, 3]]);
  });

  it("the purge of a namespace takes all shards, and what earlier buckets left", async () => {
    const { repository, limiter } = await openSplit(rpm, { shards: 4, home: 0 });
    await orphan();
    const namespaces = await repository.listNamespaces();
    const { namespaceId } = namespaces.find(({ name }) => name === "app")!;
    await repository.deleteNamespace("app");
    await expect(limiter.acquire(call({ rpm: 1 }))).rejects.toThrow(NamespaceNotFoundError);
    await repository.purgeNamespace(namespaceId);
    expect(await items()).toEqual([]);
  });

  it("a bucket that another process deleted begins anew, however this one remembers it", async () => {
    const process = await openSplit(rpm, { shards: 4, home: 0 });
    await process.repository.createEntity("e");
    const [spread, exhausted] = [await open(1), await open(2, { refusalMemoryMs: 0 })];
    await take(spread.limiter, { rpm: 1 });
    await take(process.limiter, { rpm: 59 });
    await expect(take(exhausted.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
    await process.repository.deleteEntity("e");
    // More than a share: no shard that it remembers would hold it alone.
    await take(spread.limiter, { rpm: 20 });
    await take(exhausted.limiter, { rpm: 40 });
    expect(await buildShards(process)).toEqual([0]);
    for (const { limiter } of [spread, exhausted])
      await expect(take(limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });
});

async function buildShards(
  { repository }: ShardProcess,
  entityId = "e",
): Promise<readonly number[]> {
  return (await repository.getBuckets(entityId)).map(({ shard }) => shard);
}

/** The shards of a batch of deletions, in order. */
function shardsIn({ input }: ProxiedRequest): readonly number[] {
  return [...JSON.stringify(input).matchAll(/BUCKET#e#r#(\d+)"/g)]
    .map(([, shard]) => Number(shard))
    .toSorted((left, right) => left - right);
}
