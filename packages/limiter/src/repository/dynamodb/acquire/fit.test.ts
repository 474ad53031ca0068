import { describe, expect, it } from "vitest";
import {
  NOW_MS,
  shardImage,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import type { KnownBucket } from "../cache/known-buckets.ts";
import { afterLastEnd, mayFit } from "./fit.ts";
import type { WantedClaim } from "./wanted-claim.ts";

const POLICY = buildPolicy([TPM, Limit.perMinute("rpm", 60)], "resource");
const TPM_ONLY = buildPolicy([TPM], "resource");

describe("a bucket may serve a call", () => {
  it("that does not exist yet when a full one could", () => {
    expect(mayFit(wanting(60), buildBucket([]), NOW_MS)).toBe(true);
    expect(mayFit(wanting(60), buildBucket([], { isWhole: false }), NOW_MS)).toBe(true);
    expect(mayFit(wanting(61), buildBucket([]), NOW_MS)).toBe(false);
  });

  it("when one of its shards holds it, whatever is known of the others", () => {
    const shards = [{ tpm: 10_000 }, { tpm: 0 }];
    expect(mayFit(wanting(10), buildBucket(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(10), buildBucket(shards, { isWhole: false }), NOW_MS)).toBe(true);
    const only = { ...buildBucket(shards.slice(0, 1), { isWhole: false }), count: 2 };
    expect(mayFit(wanting(10), only, NOW_MS)).toBe(true);
    expect(mayFit(wanting(11), only, NOW_MS)).toBe(false);
  });

  it("when its shards hold it together, if all of them are known", () => {
    const shards = [{ tpm: 10_000 }, { tpm: 5000 }];
    expect(mayFit(wanting(15), buildBucket(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(16), buildBucket(shards), NOW_MS)).toBe(false);
    expect(mayFit(wanting(15), buildBucket(shards, { isWhole: false }), NOW_MS)).toBe(false);
  });

  it("not from one shard while others owe more than is left, if all of them are known", () => {
    const shards = [{ tpm: 10_000 }, { tpm: -5000 }];
    expect(mayFit(wanting(6), buildBucket(shards), NOW_MS)).toBe(false);
    expect(mayFit(wanting(5), buildBucket(shards), NOW_MS)).toBe(true);
    expect(mayFit(wanting(6), buildBucket(shards, { isWhole: false }), NOW_MS)).toBe(true);
  });

  it("when one shard holds it above its share of what it leaves, or all together do", () => {
    const shards = [{ tpm: 6000 }, { tpm: 1000 }];
    expect(mayFit(leaving(4, 4), buildBucket(shards), NOW_MS)).toBe(true);
    expect(mayFit(leaving(5, 4), buildBucket(shards), NOW_MS)).toBe(false);
    expect(mayFit(leaving(5, 2), buildBucket(shards), NOW_MS)).toBe(true);
    expect(mayFit(leaving(0, 7), buildBucket(shards), NOW_MS)).toBe(true);
    expect(mayFit(leaving(0, 13), buildBucket(shards), NOW_MS)).toBe(false);
    expect(mayFit(leaving(50, 11), buildBucket([]), NOW_MS)).toBe(false);
  });

  it("with what it earned since, under the limits that the call is decided with", () => {
    expect(mayFit(wanting(1), buildBucket([{ tpm: 0 }]), NOW_MS + 999)).toBe(false);
    expect(mayFit(wanting(1), buildBucket([{ tpm: 0 }]), NOW_MS + 1000)).toBe(true);
    const joined = { ...wanting(0), policy: POLICY };
    const single = buildBucket([{ tpm: 0 }]);
    const wantingRpm = (rpm: number): WantedClaim => ({
      ...joined,
      amounts: { rpm },
      costs: { rpm: rpm * 1000 },
    });
    expect(mayFit(wantingRpm(60), single, NOW_MS)).toBe(true);
    expect(mayFit(wantingRpm(61), single, NOW_MS)).toBe(false);
  });
});

describe("shards of a quota", () => {
  const TPH = Limit.quota("tph", 60, { every: "hour", zone: "UTC" });
  const [HOUR_MS, DECIDED_MS] = [3_600_000, NOW_MS + 5000];
  const buildShards = (states: readonly (readonly [milli: number, endMs: number])[]): KnownBucket =>
    buildBucket(
      states.map(([tph]) => ({ tph })),
      { further: (shard) => ({ limits: [TPH], remainders: { tph: states[shard]![1] } }) },
    );

  it("owe nothing once the window of the debt is over", () => {
    const claim = { ...wanting(0), policy: buildPolicy([TPH], "resource"), amounts: { tph: 30 } };
    const bucket = buildShards([
      [30_000, NOW_MS + HOUR_MS],
      [-5000, DECIDED_MS],
    ]);
    expect(mayFit(claim, bucket, DECIDED_MS - 1)).toBe(false);
    expect(mayFit(claim, bucket, DECIDED_MS)).toBe(true);
  });

  it.each([
    ["of an open window", DECIDED_MS],
    ["of the window that would have been opened", NOW_MS - HOUR_MS],
  ])("decide as of now what began before the end %s", (_, endMs) => {
    const { shards } = buildShards([
      [0, NOW_MS + 2 * HOUR_MS],
      [0, endMs],
    ]);
    const boundaryMs = endMs === DECIDED_MS ? endMs : Math.ceil(NOW_MS / HOUR_MS) * HOUR_MS;
    expect(afterLastEnd(shards, boundaryMs - 9, boundaryMs - 1)).toBe(boundaryMs - 9);
    expect(afterLastEnd(shards, boundaryMs - 9, boundaryMs)).toBe(boundaryMs);
    expect(afterLastEnd(shards, boundaryMs, boundaryMs + 9)).toBe(boundaryMs);
  });
});

function leaving(tpm: number, left: number): WantedClaim {
  return { ...wanting(tpm), leave: { amounts: { tpm: left }, priority: undefined } };
}

function wanting(tpm: number): WantedClaim {
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
function buildBucket(
  shards: readonly StoredShard["tokens"][],
  {
    isWhole = true,
    further,
  }: {
    readonly isWhole?: boolean;
    readonly further?: (shard: number) => StoredShard;
  } = {},
): KnownBucket {
  const seenAt = { ms: NOW_MS, order: 1 };
  const known = shards.map((tokens, shard) => {
    const image = shardImage({
      tokens: tokens!,
      shard,
      divisor: shards.length,
      ...further?.(shard),
    });
    return { key: shardKey(shard), image, seenAt };
  });
  return { count: Math.max(1, shards.length), shards: known, isWhole, seenAt };
}
