import { describe, expect, it } from "vitest";
import { bucketLimits, ceilingMilli, fullBucket } from "../../../core/bucket/bucket.ts";
import { IncompatibleSchemaError } from "../../../core/errors.ts";
import { shardLimits } from "../../../core/bucket/shares.ts";
import { marshalItem, unmarshalItem, type Value } from "../transport/attribute-values.ts";
import { bucketAttributes, parseBucketItem, parameterAttributes } from "./bucket-item.ts";
import { bucketKey, keyAttributes } from "./bucket-key.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const WHOLE = bucketLimits([
  { name: "rpm", capacity: 3, refillAmount: 1, refillPeriodSeconds: 60 },
  { name: "tpm", capacity: 1000, refillAmount: 500, refillPeriodSeconds: 7 },
]);

function item(
  shard: number,
  further: Readonly<Record<string, Value>>,
): ReturnType<typeof marshalItem> {
  const key = bucketKey(
    { namespaceId: "ns", entityId: "key-1", resource: "models/gpt-4", shard },
    "org",
  );
  return marshalItem({
    ...keyAttributes(key),
    ...bucketAttributes(fullBucket(WHOLE, NOW_MS)),
    sv: 5,
    b_wcu_tc: 9,
    ...further,
  });
}

it("an item of the Python zae-limiter has no image", () => {
  const { sv: _, ...ofPython } = item(0, { b_wcu_cp: 1_000_000, shard_count: 1 });
  const read = (): unknown => parseBucketItem(ofPython);
  expect(read).toThrow(IncompatibleSchemaError);
  expect(read).toThrow("Stop it, then upgrade the bucket: zae-limiter upgrade");
});

describe("the image of a shard", () => {
  it("has its shares of the limits, and the configured limits beside them", () => {
    const image = parseBucketItem(item(13, { shard_count: 16, sd: NOW_MS + 1 }));
    expect(image).toMatchObject({ shard: 13, divisor: 16, splitAtMs: NOW_MS + 1, parentId: "org" });
    expect(image.bucket.limits).toEqual(shardLimits(WHOLE, 13, 16));
    expect(image.bucket.limits.map(({ limit }) => limit)).toEqual(WHOLE.map(({ limit }) => limit));
    expect(ceilingMilli(image.bucket.limits[0]!)).toBe(187);
  });

  it("is stored with the parameters of the whole", () => {
    const image = parseBucketItem(item(13, { shard_count: 16 }));
    const stored = unmarshalItem(item(13, {}));
    for (const limit of image.bucket.limits)
      expect(stored).toMatchObject(parameterAttributes(limit));
    expect(parameterAttributes(image.bucket.limits[1]!)).toEqual({
      b_tpm_cp: 1_000_000,
      b_tpm_ra: 500_000,
      b_tpm_rp: 7000,
    });
  });

  it("is the whole bucket for an item that was never split or is older than shard counts", () => {
    for (const further of [{}, { shard_count: 1 }]) {
      const image = parseBucketItem(item(0, further));
      expect(image).toMatchObject({ shard: 0, divisor: 1, splitAtMs: undefined });
      expect(image.bucket.limits).toEqual(WHOLE);
    }
  });
});
