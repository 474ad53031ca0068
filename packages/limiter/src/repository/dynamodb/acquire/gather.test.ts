import { expect, it } from "vitest";
import { Limit } from "../../../core/limit.ts";
import { policyOf } from "../../../core/bucket/policy.ts";
import { marshalItem } from "../transport/attribute-values.ts";
import { imageOf } from "../items/bucket-item.ts";
import { bucketKey } from "../items/bucket-key.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import { gather } from "./gather.ts";
import type { WantedCharge } from "./wanted-charge.ts";

const NOW_MS = 1_800_000_000_000;

it("takes parts with writes that have only the fields of a transaction's update", () => {
  const parts = gather(CHARGE, [shardOf(0, 3000), shardOf(1, 5000)], {
    nowMs: NOW_MS,
    requests: 1,
  });
  expect(parts.map(({ costs }) => costs)).toEqual([{ tpm: 3000 }, { tpm: 4000 }]);
  // Transports other than the SDK's do not check their input.
  for (const { write } of parts)
    expect(Object.keys((write as { readonly Update: object }).Update).toSorted()).toEqual([
      "ConditionExpression",
      "ExpressionAttributeNames",
      "ExpressionAttributeValues",
      "Key",
      "UpdateExpression",
    ]);
});

const CHARGE: WantedCharge = {
  key: keyOf(0),
  amounts: { tpm: 7 },
  costs: { tpm: 7000 },
  isOverride: false,
  parentId: undefined,
  policy: policyOf([Limit.perMinute("tpm", 10)], "system"),
};

function keyOf(shard: number): KnownShard["key"] {
  return bucketKey({ namespaceId: "n", entityId: "e", resource: "r", shard }, undefined);
}

function shardOf(shard: number, milli: number): KnownShard {
  const key = keyOf(shard);
  const limit = {
    b_tpm_tk: milli,
    b_tpm_tc: 0,
    b_tpm_cp: 10_000,
    b_tpm_ra: 10_000,
    b_tpm_rp: 60_000,
  };
  const item = marshalItem({
    ...key.primary,
    ...limit,
    rf: NOW_MS,
    sv: 1,
    cr: "c",
    b_wcu_tc: 1,
    shard_count: 2,
  });
  return { key, image: imageOf(item), seenAt: { ms: NOW_MS, order: 1 } };
}
