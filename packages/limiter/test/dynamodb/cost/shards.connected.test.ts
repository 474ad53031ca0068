import { expect, it } from "vitest";
import { imageOf } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import { granted } from "../../support/bucket-process.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { CAPACITY, keyOf, request, useShardBuckets } from "../../support/shard-buckets.ts";

describeWithEngine("what a bucket with shards costs", (engine) => {
  const { clock, open, items, split, splitOnly } = useShardBuckets(engine);

  it("a warm call is one write, whichever shard is home", async () => {
    const { entityId } = await split(32);
    for (const home of [0, 1, 13, 31, 32, 77]) {
      const process = open(home);
      await granted(process, request(entityId, 1));
      for (const pauseMs of [0, 50, 700]) {
        await clock.advance(pauseMs);
        expect(await process.requestsOf(() => granted(process, request(entityId, 1)))).toEqual([
          "UpdateItem",
        ]);
      }
      const image = (await items(entityId, 32))[home % 32]!;
      expect(Number((image["gr"] as { readonly N: string }).N)).toBeGreaterThanOrEqual(4);
    }
  });

  it("the first call of a process takes three round trips, and two more when its home is not there yet", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const [settled, settler] = [open(2), open(3)];
    expect(await settled.requestsOf(() => granted(settled, request(entityId, 1)))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "UpdateItem",
    ]);
    expect(await settler.requestsOf(() => granted(settler, request(entityId, 1)))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "TransactWriteItems",
      "BatchGetItem",
      "UpdateItem",
    ]);
    expect(await settler.requestsOf(() => granted(settler, request(entityId, 1)))).toEqual([
      "UpdateItem",
    ]);
    expect((await items(entityId, 4)).map((item) => imageOf(item).divisor)).toEqual([4, 4, 4, 4]);
  });

  it("a home is split off once, however many calls come home together", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const process = open(3);
    await process.buckets.read(request(entityId, 0));
    const requests = await process.requestsOf(() =>
      Promise.all(Array.from({ length: 64 }, () => granted(process, request(entityId, 1)))),
    );
    expect(requests.filter((operation) => operation === "TransactWriteItems")).toHaveLength(1);
    expect(requests.length).toBeLessThanOrEqual(6);
    expect(process.counts.splits).toBe(1);
  });

  it("a process that may not split its home off, and so has none, needs one write too", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const process = open(3, { maxShards: 2 });
    await granted(process, request(entityId, 1));
    expect(await process.requestsOf(() => granted(process, request(entityId, 1)))).toEqual([
      "UpdateItem",
    ]);
    expect(process.counts.splits).toBe(0);
  });

  it("a call is one write where home is known to be empty, and one more where others have emptied it", async () => {
    const { entityId } = await split(2);
    const [one, other] = [open(1), open(1)];
    for (const process of [one, other]) await granted(process, request(entityId, 1));
    await granted(one, request(entityId, CAPACITY / 2 - 2));
    expect(await one.requestsOf(() => granted(one, request(entityId, 1)))).toEqual(["UpdateItem"]);
    expect(await other.requestsOf(() => granted(other, request(entityId, 1)))).toEqual([
      "UpdateItem",
      "UpdateItem",
    ]);
    expect((await items(entityId, 2)).map((item) => imageOf(item).bucket.balances[0])).toEqual([
      478_000, 0,
    ]);
  });

  it("a refusal costs two writes and a read at most, however many shards others have emptied", async () => {
    const { entityId, maker } = await split(32);
    const process = open(5);
    await granted(process, request(entityId, 1));
    await granted(maker, request(entityId, CAPACITY - 1));
    const refused = async (): Promise<void> =>
      expect(await process.buckets.consume(request(entityId, 1))).toMatchObject({ granted: false });
    expect(await process.requestsOf(refused)).toEqual(["UpdateItem", "UpdateItem", "BatchGetItem"]);
    expect(await process.requestsOf(refused)).toEqual(["BatchGetItem"]);
  });

  it("a call that no shard holds alone is a read and a transaction", async () => {
    const { entityId } = await split(8);
    const process = open(3);
    await granted(process, request(entityId, 1));
    expect(
      await process.requestsOf(() => granted(process, request(entityId, CAPACITY / 2))),
    ).toEqual(["BatchGetItem", "TransactWriteItems"]);
    expect(await process.buckets.read(request(entityId, 0))).toMatchObject([
      { available: CAPACITY / 2 - 1 },
    ]);
  });

  it("a shard that is throttled is tried no more for the rest of the call", async () => {
    const { entityId } = await split(2);
    const [process, other] = [open(0), open(1)];
    await granted(process, request(entityId, 0));
    const receipt = await granted(other, request(entityId, CAPACITY / 2));
    await process.buckets.read(request(entityId, 0));
    await other.buckets.giveBack(receipt);
    // Home is throttled, and the other shard was empty when this process last saw it.
    process.recorder.throttled = keyOf(entityId, 0).text;
    const tries = Array.from({ length: 3 }, () => "UpdateItem");
    expect(await process.requestsOf(() => granted(process, request(entityId, 1)))).toEqual([
      ...tries,
      "BatchGetItem",
      "UpdateItem",
    ]);
  });
});
