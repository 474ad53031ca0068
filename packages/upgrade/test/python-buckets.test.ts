import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { balanceMilli, getStoredMilli } from "../../limiter/src/core/bucket/bucket.ts";
import { parseBucketItem } from "../../limiter/src/repository/dynamodb/items/bucket-item.ts";
import {
  marshalItem,
  getNumber,
  type AttributeMap,
} from "../../limiter/src/repository/dynamodb/transport/attribute-values.ts";
import { usageChange } from "../../limiter/src/repository/dynamodb/aggregator/usage/usage-change.ts";
import { isChange, buildWrites } from "../src/change.ts";
import { bucketChange, foldShards } from "../src/python-buckets.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const NAME = { namespaceId: "ns", entityId: "key-1", resource: "gpt-4", shard: 0 };

interface Shard {
  readonly tk: number;
  readonly rf: number;
}

function shardItem({ tk, rf }: Shard, shard: number, count: number, more = {}): AttributeMap {
  return marshalItem({
    PK: `ns/BUCKET#key-1#gpt-4#${shard}`,
    SK: "#STATE",
    b_rpm_tk: tk,
    b_rpm_cp: 90_000,
    b_rpm_ra: 60_000,
    b_rpm_rp: 60_000,
    b_rpm_tc: 5000,
    b_wcu_tk: 1000,
    b_wcu_cp: 1_000_000,
    b_wcu_ra: 1_000_000,
    b_wcu_rp: 1000,
    b_wcu_tc: 7000,
    rf,
    shard_count: count,
    cascade: false,
    parent_id: "org",
    ttl: 2_000_000_000,
    ...more,
  });
}

const listItems = (shards: readonly Shard[]): readonly AttributeMap[] =>
  shards.map((shard, index) => shardItem(shard, index, shards.length));

function upgrade(shards: readonly AttributeMap[]): AttributeMap {
  const { result } = bucketChange(NAME, shards, NOW_MS);
  expect(result).toHaveLength(1);
  return result[0]!;
}

const shards = fc.array(
  fc.record({
    tk: fc.integer({ min: -500_000, max: 90_000 }),
    rf: fc.integer({ min: NOW_MS - 600_000, max: NOW_MS }),
  }),
  { minLength: 1, maxLength: 32 },
);

describe("a bucket of the Python zae-limiter", () => {
  it("keeps its balance to the millitoken, at every time", () => {
    fc.assert(
      fc.property(shards, fc.nat(600_000), ([only], laterMs) => {
        const { bucket, divisor, parentId } = parseBucketItem(upgrade(listItems([only!])));
        const nowMs = only!.rf + laterMs;
        // The formula of the original, in its own words.
        const python = Math.min(90_000, only!.tk + Math.floor((laterMs * 60_000) / 60_000));
        expect(balanceMilli(bucket, 0, nowMs)).toBe(python);
        expect({ divisor, parentId }).toEqual({ divisor: 1, parentId: undefined });
      }),
    );
  });

  it("mints nothing when its shards become one", () => {
    fc.assert(
      fc.property(shards, (parts) => {
        const { bucket } = parseBucketItem(upgrade(listItems(parts)));
        const lastMs = Math.max(...parts.map(({ rf }) => rf));
        // What the original has at that time, if every shard earns at most its share.
        const most = parts
          .map(({ tk, rf }) => tk + (lastMs - rf) / parts.length)
          .reduce((sum, tokens) => sum + tokens, 0);
        const least = parts.reduce((sum, { tk }) => sum + tk, 0);
        const balance = getStoredMilli(bucket, 0);
        expect(balance).toBeLessThanOrEqual(Math.min(90_000, most));
        expect(balance).toBeGreaterThanOrEqual(Math.min(90_000, least));
        expect(bucket.refilledAtMs).toBe(lastMs);
      }),
    );
  });

  it("with more shards than a transaction holds is folded first, and mints nothing", () => {
    const parts = Array.from({ length: 200 }, (_, index) => ({ tk: 100, rf: NOW_MS - index }));
    const [first, ...others] = listItems(parts);
    const fold = foldShards(first!, others.slice(0, 89));
    expect(buildWrites(fold)).toHaveLength(90);
    expect(getNumber(fold.result[0]!["b_rpm_tk"])).toBeLessThanOrEqual(90 * 100 + 89);
    expect(fold.result[0]!["sv"]).toBeUndefined();
    const { bucket } = parseBucketItem(upgrade([fold.result[0]!, ...others.slice(89)]));
    expect(balanceMilli(bucket, 0, NOW_MS)).toBeLessThanOrEqual(200 * 100 + 200);
    expect(balanceMilli(bucket, 0, NOW_MS)).toBeGreaterThanOrEqual(200 * 100);
  });

  it("does not expire while it is in debt, and keeps its time to live otherwise", () => {
    expect(upgrade(listItems([{ tk: -1, rf: NOW_MS }]))["ttl"]).toBeUndefined();
    expect(getNumber(upgrade(listItems([{ tk: 0, rf: NOW_MS }]))["ttl"])).toBe(2_000_000_000);
  });

  it("counts no usage when it changes, and keeps what it has counted", () => {
    const [first, second] = listItems([
      { tk: 1, rf: NOW_MS },
      { tk: 2, rf: NOW_MS },
    ]);
    const after = upgrade([first!, second!]);
    expect(getNumber(after["b_rpm_tc"])).toBe(10_000);
    expect(usageChange(first, after)).toEqual([]);
    expect(usageChange(undefined, after)).toEqual([]);
  });

  it("has no write budget afterwards, and follows its parent only if it cascades", () => {
    const item = shardItem({ tk: 1, rf: NOW_MS }, 0, 1, { cascade: true });
    const after = upgrade([item]);
    expect(Object.keys(after).filter((name) => name.startsWith("b_wcu"))).toEqual(["b_wcu_tc"]);
    expect(parseBucketItem(after).parentId).toBe("org");
    expect(isChange({ kind: "", seen: [after], result: [after] })).toBe(false);
  });

  it.each([
    [{ b_rpm_ra: 0, b_rpm_rsched: "1m0h0D1" }, /reset on schedule/, false],
    [{ b_rpm_ra: 0, rsched: "1m0h0D1" }, /reset on schedule/, false],
    [{ b_rpm_ra: 0, b_rpm_rsa: 60 }, /duration/, false],
    [{ b_rpm_soft: 5 }, /soft/, false],
    [{ sched: "1m0h0-6a1" }, /schedule/, true],
    [{ sched: "1m0h0-6a1", b_rpm_sched: "-" }, undefined, true],
  ])("with %j tells what cannot be enforced", (more, reason, isKept) => {
    const item = shardItem({ tk: 1, rf: NOW_MS }, 0, 1, more);
    const { dropped = [], result } = bucketChange(NAME, [item], NOW_MS);
    if (reason === undefined) expect(dropped).toEqual([]);
    else expect(dropped).toEqual([expect.stringMatching(reason)]);
    expect(result[0]!["b_rpm_tk"] !== undefined).toBe(isKept);
  });
});
