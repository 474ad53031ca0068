import { describe, expect, it } from "vitest";
import { bucketLimit, type Bucket } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import type { SupportedLimit } from "../../../core/supported-limits.ts";
import { shardLimit } from "../../../core/bucket/shares.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import { splitObstacle } from "./split.ts";

function image(
  limits: readonly {
    readonly limit: SupportedLimit;
    readonly hidden?: boolean;
    readonly milli?: number;
  }[],
  divisor = 1,
): BucketImage {
  const bucket: Bucket = {
    limits: limits.map(({ limit, hidden }) =>
      shardLimit(bucketLimit(limit, hidden === true), 0, divisor),
    ),
    refilledAtMs: 0,
    balances: limits.flatMap(({ milli }) => [milli ?? 0, 0, 0]),
  };
  return { ...parseBucketItem({ sv: { N: "1" } }), bucket, divisor };
}

describe("what prevents a split", () => {
  it("is the largest number of shards", () => {
    const large = { limit: Limit.perMinute("tpm", 1_000_000) };
    expect(splitObstacle(image([large], 16), 32)).toBeUndefined();
    expect(splitObstacle(image([large], 32), 32)).toBe("more than maxShards allows");
    expect(splitObstacle(image([large], 1), 1)).toBe("more than maxShards allows");
    expect(splitObstacle(image([large], 2), 3)).toBe("more than maxShards allows");
  });

  it("is a visible limit of which a shard would have less than a token", () => {
    const large = { limit: Limit.perMinute("tpm", 1_000_000) };
    expect(
      splitObstacle(image([large, { limit: Limit.perMinute("rpm", 8) }], 4), 32),
    ).toBeUndefined();
    expect(splitObstacle(image([large, { limit: Limit.perMinute("rpm", 7) }], 4), 32)).toBe(
      "shares below one token",
    );
    expect(splitObstacle(image([large, { limit: Limit.perMinute("rpm", 1) }]), 32)).toBe(
      "shares below one token",
    );
    expect(
      splitObstacle(image([large, { limit: Limit.perMinute("rpm", 1), hidden: true }]), 32),
    ).toBeUndefined();
  });

  it("is a debt that cannot be read exactly", () => {
    const limit = Limit.perMinute("tpm", 1000);
    expect(splitObstacle(image([{ limit, milli: Number.MIN_SAFE_INTEGER }]), 32)).toBeUndefined();
    expect(splitObstacle(image([{ limit, milli: Number.MIN_SAFE_INTEGER - 1 }]), 32)).toBe(
      "balance not exact",
    );
  });

  it("is a session, also a hidden one, and not a quota", () => {
    const session = Limit.session("messages", 1000, { windowSeconds: 60 });
    expect(splitObstacle(image([{ limit: session, hidden: true }]), 32)).toBe(
      "sessions are not divided",
    );
    const quota = Limit.quota("tpd", 1000, { every: "day", zone: "UTC" });
    expect(splitObstacle(image([{ limit: quota }]), 32)).toBeUndefined();
  });
});
