import { describe, expect, it } from "vitest";
import { imageOf, type BucketImage } from "../items/bucket-item.ts";
import { bucketKey } from "../items/bucket-key.ts";
import type { ItemReader } from "../table/item-reader.ts";
import { KnownBuckets } from "./known-buckets.ts";

const KEY = bucketKey({ namespaceId: "ns", entityId: "a", resource: "r", shard: 0 }, undefined);

describe("what is known of a bucket", () => {
  it("keeps a bucket when a concurrent read found none", () => {
    const known = newKnown();
    const creating = known.stampRequest();
    const reading = known.stampRequest();
    known.remember(KEY, image("a.1"), creating);
    known.remember(KEY, undefined, reading);
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

function image(creation: string): BucketImage {
  return imageOf({ PK: { S: KEY.text }, cr: { S: creation }, sv: { N: "1" } });
}

function newKnown(): KnownBuckets {
  const reader = { get: async () => undefined } as unknown as ItemReader;
  return new KnownBuckets(reader, { now: () => 0, sleep: async () => {} });
}
