import { describe, expect, it } from "vitest";
import type { Receipt } from "../../../src/repository/port.ts";
import { parseBucketItem } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import { grant } from "../../support/bucket-process.ts";
import { describeWithEngine } from "../../support/engine.ts";
import {
  CAPACITY,
  toKey,
  request,
  useShardBuckets,
  type RecordedProcess,
} from "../../support/shard-buckets.ts";

describeWithEngine("what a bucket with shards costs", (engine) => {
  const { clock, open, items, split, splitOnly } = useShardBuckets(engine);

  /** A process whose first write is overtaken by one that takes the rest; then time passes. */
  async function overtake(): Promise<{
    readonly process: RecordedProcess;
    readonly entityId: string;
    readonly giveBack: () => Promise<void>;
  }> {
    const { entityId, maker } = await split(2);
    const process = open(1);
    await grant(process, request(entityId, 0));
    await grant(maker, request(entityId, CAPACITY / 2));
    await process.buckets.read(request(entityId, 0));
    let receipt: Receipt | undefined;
    process.recorder.meanwhile = async (operation) => {
      if (operation !== "UpdateItem" || receipt !== undefined) return;
      await clock.advance(1);
      receipt = await grant(maker, request(entityId, CAPACITY / 2));
      // The shards earn a token in 63 ms.
      await clock.advance(500);
    };
    return { process, entityId, giveBack: async () => maker.buckets.giveBack(receipt!) };
  }

  it("a warm call is one write, whichever shard is home", async () => {
    const { entityId } = await split(32);
    for (const home of [0, 1, 13, 31, 32, 77]) {
      const process = open(home);
      await grant(process, request(entityId, 1));
      for (const pauseMs of [0, 50, 700]) {
        await clock.advance(pauseMs);
        expect(await process.listRequests(() => grant(process, request(entityId, 1)))).toEqual([
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
    expect(await settled.listRequests(() => grant(settled, request(entityId, 1)))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "UpdateItem",
    ]);
    expect(await settler.listRequests(() => grant(settler, request(entityId, 1)))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
      "TransactWriteItems",
      "BatchGetItem",
      "UpdateItem",
    ]);
    expect(await settler.listRequests(() => grant(settler, request(entityId, 1)))).toEqual([
      "UpdateItem",
    ]);
    expect((await items(entityId, 4)).map((item) => parseBucketItem(item).divisor)).toEqual([
      4, 4, 4, 4,
    ]);
  });

  it("a home is split off once, however many calls come home together", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const process = open(3);
    await process.buckets.read(request(entityId, 0));
    const requests = await process.listRequests(() =>
      Promise.all(Array.from({ length: 64 }, () => grant(process, request(entityId, 1)))),
    );
    expect(requests.filter((operation) => operation === "TransactWriteItems")).toHaveLength(1);
    expect(requests.length).toBeLessThanOrEqual(6);
    expect(process.counts.splits).toBe(1);
  });

  it("a process that may not split its home off, and so has none, needs one write too", async () => {
    const { entityId } = await split(2);
    await splitOnly(entityId, 0);
    const process = open(3, { maxShards: 2 });
    await grant(process, request(entityId, 1));
    expect(await process.listRequests(() => grant(process, request(entityId, 1)))).toEqual([
      "UpdateItem",
    ]);
    expect(process.counts.splits).toBe(0);
  });

  it("a call is one write where home is known to be empty, and one more where others have emptied it", async () => {
    const { entityId } = await split(2);
    const [one, other] = [open(1), open(1)];
    for (const process of [one, other]) await grant(process, request(entityId, 1));
    await grant(one, request(entityId, CAPACITY / 2 - 2));
    expect(await one.listRequests(() => grant(one, request(entityId, 1)))).toEqual(["UpdateItem"]);
    expect(await other.listRequests(() => grant(other, request(entityId, 1)))).toEqual([
      "UpdateItem",
      "UpdateItem",
    ]);
    expect(
      (await items(entityId, 2)).map((item) => parseBucketItem(item).bucket.balances[0]),
    ).toEqual([478_000, 0]);
  });

  it("a refusal costs two writes and a read at most, however many shards others have emptied", async () => {
    const { entityId, maker } = await split(32);
    const process = open(5);
    await grant(process, request(entityId, 1));
    await grant(maker, request(entityId, CAPACITY - 1));
    const refused = async (): Promise<void> =>
      expect(await process.buckets.consume(request(entityId, 1))).toMatchObject({ granted: false });
    expect(await process.listRequests(refused)).toEqual([
      "UpdateItem",
      "UpdateItem",
      "BatchGetItem",
    ]);
    expect(await process.listRequests(refused)).toEqual(["BatchGetItem"]);
  });

  it("a call that no shard holds alone is a read and a transaction", async () => {
    const { entityId } = await split(8);
    const process = open(3);
    await grant(process, request(entityId, 1));
    expect(
      await process.listRequests(() => grant(process, request(entityId, CAPACITY / 2))),
    ).toEqual(["BatchGetItem", "TransactWriteItems"]);
    expect(await process.buckets.read(request(entityId, 0))).toMatchObject([
      { available: CAPACITY / 2 - 1 },
    ]);
  });

  it("a call that lost a race tries no other shard for what that may have earned", async () => {
    const { entityId, maker } = await split(2);
    const process = open(1);
    await grant(maker, request(entityId, CAPACITY));
    await process.buckets.read(request(entityId, 0));
    // Each shard earns two tokens, and another process takes them all.
    await clock.advance(250);
    await grant(maker, request(entityId, 4));
    const refused = async (): Promise<void> =>
      expect(await process.buckets.consume(request(entityId, 1))).toMatchObject({ granted: false });
    expect(await process.listRequests(refused)).toEqual(["UpdateItem", "BatchGetItem"]);
  });

  describe("a call that another process overtook", () => {
    it("is refused by what was left, although the next token has been earned on the way", async () => {
      const { process, entityId } = await overtake();
      const outcome = await process.buckets.consume(request(entityId, 1));
      expect(outcome).toMatchObject({
        granted: false,
        statuses: [{ limitName: "rpm", available: 0, exceeded: true, retryAfterSeconds: 0.001 }],
      });
      expect(process.recorder.operations.slice(-2)).toEqual(["UpdateItem", "BatchGetItem"]);
      await grant(process, request(entityId, 1));
    });

    it("waits only for what is left of its wait", async () => {
      const { process, entityId } = await overtake();
      // 40 are earned within 2.5 s, of which half a second has passed.
      expect(await process.buckets.consume(request(entityId, 40))).toMatchObject({
        statuses: [{ exceeded: true, deficit: 40, retryAfterSeconds: 2 }],
      });
    });

    it("is granted what was given back since it began", async () => {
      const { process, entityId, giveBack } = await overtake();
      const { meanwhile } = process.recorder;
      process.recorder.meanwhile = async (operation) =>
        operation === "BatchGetItem" ? giveBack() : meanwhile(operation);
      await grant(process, request(entityId, 1));
    });
  });

  it("a shard that is throttled is tried no more for the rest of the call", async () => {
    const { entityId } = await split(2);
    const [process, other] = [open(0), open(1)];
    await grant(process, request(entityId, 0));
    const receipt = await grant(other, request(entityId, CAPACITY / 2));
    await process.buckets.read(request(entityId, 0));
    await other.buckets.giveBack(receipt);
    // Home is throttled, and the other shard was empty when this process last saw it.
    process.recorder.throttled = toKey(entityId, 0).text;
    const tries = Array.from({ length: 3 }, () => "UpdateItem");
    expect(await process.listRequests(() => grant(process, request(entityId, 1)))).toEqual([
      ...tries,
      "BatchGetItem",
      "UpdateItem",
    ]);
  });
});
