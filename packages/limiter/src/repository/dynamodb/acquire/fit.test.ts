import { describe, expect, it } from "vitest";
import {
  NOW_MS,
  shardImage,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { policyOf } from "../../../core/bucket/policy.ts";
import type { KnownBucket } from "../cache/known-buckets.ts";
import { mayFit } from "./fit.ts";
import type { WantedCharge } from "./wanted-charge.ts";

const POLICY = policyOf([TPM, Limit.perMinute("rpm", 60)], "resource");
const TPM_ONLY = policyOf([TPM], "resource");

describe("a bucket may serve a call", () => {
  it("that does not exist yet when a full one could", () => {
    expect(mayFit(wanting(60), bucketOf([]), NOW_MS)).toBe(true);
    expect(mayFit(wanting(60), bucketOf([], { isWhole: false }), NOW_MS)).toBe(true);
    expect(mayFit(wanting(61), bucketOf([]), NOW_MS)).toBe(false);
  });

  it("when one of its shards holds it, whatever is known of the others", () => {
    const shards = [{ tpm: 10_000 }, { tpm: 0 }];
    expect(mayFit(wanting(10), bucketOf(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(10), bucketOf(shards, { isWhole: false }), NOW_MS)).toBe(true);
    const only = { ...bucketOf(shards.slice(0, 1), { isWhole: false }), count: 2 };
    expect(mayFit(wanting(10), only, NOW_MS)).toBe(true);
    expect(mayFit(wanting(11), only, NOW_MS)).toBe(false);
  });

  it("when its shards hold it together, if all of them are known", () => {
    const shards = [{ tpm: 10_000 }, { tpm: 5000 }];
    expect(mayFit(wanting(15), bucketOf(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(16), bucketOf(shards), NOW_MS)).toBe(false);
    expect(mayFit(wanting(15), bucketOf(shards, { isWhole: false }), NOW_MS)).toBe(false);
  });

  it("not from one shard while others owe more than is left, if all of them are known", () => {
    const shards = [{ tpm: 10_000 }, { tpm: -5000 }];
    expect(mayFit(wanting(6), bucketOf(shards), NOW_MS)).toBe(false);
    expect(mayFit(wanting(5), bucketOf(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(6), bucketOf(shards, { isWhole: false }), NOW_MS)).toBe(true);
  });

  it("with what it earned since, under the limits that the call is decided with", () => {
    expect(mayFit(wanting(1), bucketOf([{ tpm: 0 }]), NOW_MS + 999)).toBe(false);
    expect(mayFit(wanting(1), bucketOf([{ tpm: 0 }]), NOW_MS + 1000)).toBe(true);
    const joined = { ...wanting(0), policy: POLICY };
    const single = bucketOf([{ tpm: 0 }]);
    const wantingRpm = (rpm: number): WantedCharge => ({
      ...joined,
      amounts: { rpm },
      costs: { rpm: rpm * 1000 },
    });
    expect(mayFit(wantingRpm(60), single, NOW_MS)).toBe(true);
    expect(mayFit(wantingRpm(61), single, NOW_MS)).toBe(false);
  });
});

function wanting(tpm: number): WantedCharge {
  const costs = { tpm: tpm * 1000 };
  return {
    key: shardKey(),
    amounts: { tpm },
    costs,
    policy: TPM_ONLY,
    parentId: undefined,
    isCascaded: false,
  };
}

/** A bucket whose shards hold so many millitokens. */
function bucketOf(
  shards: readonly StoredShard["tokens"][],
  { isWhole = true }: { readonly isWhole?: boolean } = {},
): KnownBucket {
  const seenAt = { ms: NOW_MS, order: 1 };
  const known = shards.map((tokens, shard) => {
    const image = shardImage({ tokens: tokens!, shard, divisor: shards.length });
    return { key: shardKey(shard), image, seenAt };
  });
  return { count: Math.max(1, shards.length), shards: known, isWhole, seenAt };
}
