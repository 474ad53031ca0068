import { describe, expect, it } from "vitest";
import { shardImage, shardItem, shardKey } from "../../../../test/support/shard-images.ts";
import { stringOf, type AttributeMap } from "../transport/attribute-values.ts";
import { imageOf, type BucketImage } from "../items/bucket-item.ts";
import { bucketKey } from "../items/bucket-key.ts";
import type { ItemReader } from "../table/item-reader.ts";
import { KnownBuckets } from "./known-buckets.ts";

const KEY = bucketKey({ namespaceId: "ns", entityId: "a", resource: "r", shard: 0 }, undefined);

describe("what is known of a bucket", () => {
  it("keeps a bucket when a concurrent read found none", () => {
    const known = newKnown();
    const creating = known.stampRequest();
    const reads = known.stampRequest();
    known.remember(KEY, image("a.1"), creating);
    known.remember(KEY, undefined, reads);
    expect(known.imageOf(KEY)?.creation).toBe("a.1");
  });

  it("learns of a bucket from a reply that was overtaken by a read that found none", () => {
    const known = newKnown();
    const creating = known.stampRequest();
    known.remember(KEY, undefined, known.stampRequest());
    known.remember(KEY, image("a.1"), creating);
    expect(known.imageOf(KEY)?.creation).toBe("a.1");
  });

  it("forgets a bucket that a later read does not find", () => {
    const known = newKnown();
    known.remember(KEY, image("a.1"), known.stampRequest());
    known.remember(KEY, undefined, known.stampRequest());
    expect(known.imageOf(KEY)).toBeUndefined();
  });

  it("keeps the image of a bucket that is forgotten while work on it is under way, but refuses nobody with it", () => {
    const known = newKnown();
    known.remember(KEY, image("a.1"), known.stampRequest());
    const entry = known.entry(KEY);
    known.pin(entry);
    known.forget(KEY.text);
    expect(known.entry(KEY)).toBe(entry);
    expect(known.imageOf(KEY)?.creation).toBe("a.1");
    expect(known.known(KEY)).toMatchObject({ isWhole: false, seenAt: undefined });
    known.unpin(entry);
    known.forget(KEY.text);
    expect(known.imageOf(KEY)).toBeUndefined();
  });
});

describe("the shards of a bucket, as far as they are known", () => {
  it("are those of the largest divisor, also while shard 0 has a smaller one", async () => {
    const known = reading([shardItem({ divisor: 2 }), shardItem({ shard: 1, divisor: 4 })]);
    known.remember(shardKey(), shardImage({ divisor: 2 }), known.stampRequest());
    expect(await known.readAll(shardKey())).toMatchObject({ count: 2, isWhole: false });
  });

  it("are found by a process that knows shard 0 alone, while others are being merged", async () => {
    const known = reading([
      shardItem({ divisor: 2 }),
      shardItem({ shard: 1, divisor: 4 }),
      shardItem({ shard: 3, divisor: 4 }),
    ]);
    const { count, isWhole, shards } = await known.readAll(shardKey());
    expect({ count, isWhole }).toEqual({ count: 2, isWhole: true });
    expect(shards.map(({ image: { shard, divisor } }) => [shard, divisor])).toEqual([
      [0, 2],
      [1, 4],
      [3, 4],
    ]);
  });

  it("are not whole while one that was merged and its merged half are both remembered", () => {
    const known = newKnown();
    for (const [shard, divisor] of [
      [0, 2],
      [1, 2],
      [2, 4],
    ] as const)
      known.remember(shardKey(shard), shardImage({ shard, divisor }), known.stampRequest());
    known.remember(shardKey(1), shardImage({ shard: 1, divisor: 4 }), known.stampRequest());
    expect(known.known(shardKey()).isWhole).toBe(false);
  });
});

/** What is known of a table with these items. */
function reading(items: readonly AttributeMap[]): KnownBuckets {
  const get = async ({ PK }: { readonly PK: string }): Promise<AttributeMap | undefined> =>
    items.find((item) => stringOf(item["PK"]) === PK);
  return new KnownBuckets({ get } as unknown as ItemReader, {
    now: () => 0,
    sleep: async () => {},
  });
}

function image(creation: string): BucketImage {
  return imageOf({ PK: { S: KEY.text }, cr: { S: creation }, sv: { N: "1" } });
}

function newKnown(): KnownBuckets {
  const reader = { get: async () => undefined } as unknown as ItemReader;
  return new KnownBuckets(reader, { now: () => 0, sleep: async () => {} });
}
