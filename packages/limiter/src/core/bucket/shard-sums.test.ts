import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { validLimit } from "../../../test/support/arbitraries.ts";
import { MILLI } from "../amounts.ts";
import { balanceMilli, bucketLimits, waitMs, type Bucket } from "./bucket.ts";
import { fits, computeStatuses, type BucketClaim } from "./decision.ts";
import type { QuotaLimit } from "../limit-kinds.ts";
import { Limit } from "../limit.ts";
import { buildPolicy } from "./policy.ts";
import { shardLimits } from "./shares.ts";
import { findShardsEndMs, shardSumMilli, waitForShardSumMs } from "./shard-sums.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const POLICY = buildPolicy([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 100)], "system");

const HOUR_MS = 3_600_000;
const TPH = Limit.quota("tph", 4, { every: "hour", zone: "UTC" });

/** The shards of a bucket, from balances by shard and limit, each with its own stamp. */
function buildShards(
  tokensMilli: readonly (readonly number[])[],
  stampsMs: readonly number[] = [],
): readonly Bucket[] {
  return tokensMilli.map((tokens, shard) => ({
    limits: shardLimits(POLICY.bucketLimits, shard, tokensMilli.length),
    refilledAtMs: stampsMs[shard] ?? NOW_MS,
    balances: tokens.flatMap((milli) => [milli, 0, 0]),
  }));
}

function buildClaim(
  [bucket, ...others]: readonly Bucket[],
  amounts: Readonly<Record<string, number>>,
): BucketClaim {
  return { entityId: "key-1", resource: "gpt-4", policy: POLICY, bucket: bucket!, others, amounts };
}

/** Shards of a quota of 4 an hour, each with its balance and the end of its window. */
function buildQuota(
  states: readonly (readonly [milli: number, endMs: number])[],
  carry?: QuotaLimit["carry"],
): readonly Bucket[] {
  const quota = Limit.quota("tph", 4, { every: "hour", zone: "UTC" }, { ...(carry && { carry }) });
  return states.map(([milli, endMs], shard) => ({
    limits: shardLimits(bucketLimits([quota]), shard, states.length),
    refilledAtMs: NOW_MS,
    balances: [milli, endMs, 0],
  }));
}

/** Four shards of small limits, in any state: debt, overshoot, stamps before and after now. */
const anyShards = fc
  .record({
    limit: fc.record({
      name: fc.constant("tpm"),
      capacity: fc.integer({ min: 1, max: 20 }),
      refillAmount: fc.integer({ min: 1, max: 20 }),
      refillPeriodSeconds: fc.integer({ min: 1, max: 3 }),
    }),
    states: fc.array(
      fc.record({
        milli: fc.integer({ min: -4000, max: 6000 }),
        stampMs: fc.integer({ min: NOW_MS - 2000, max: NOW_MS + 500 }),
        remainder: fc.double({ min: 0, max: 0.999, noNaN: true }),
      }),
      { minLength: 4, maxLength: 4 },
    ),
  })
  .map(({ limit, states }) => ({
    limit,
    shards: states.map(({ milli, stampMs, remainder }, shard): Bucket => {
      const limits = shardLimits(bucketLimits([limit]), shard, 4);
      return {
        limits,
        refilledAtMs: stampMs,
        balances: [milli, Math.floor(remainder * limits[0]!.period), 0],
      };
    }),
  }));

describe("a decision over several shards", () => {
  it("fits when the shards together hold what no single one holds, and not when a token is missing", () => {
    const shards = buildShards([
      [5000, 50_000],
      [3000, 50_000],
    ]);
    expect(fits([buildClaim(shards, { rpm: 8, tpm: 100 })], NOW_MS)).toBe(true);
    expect(fits([buildClaim(shards, { rpm: 9 })], NOW_MS)).toBe(false);
    expect(fits([buildClaim(shards.slice(0, 1), { rpm: 8 })], NOW_MS)).toBe(false);
  });

  it("is refused by a limit that it does not name only while the shards together are in debt", () => {
    expect(
      fits(
        [
          buildClaim(
            buildShards([
              [5000, -20_000],
              [5000, 20_000],
            ]),
            { rpm: 1 },
          ),
        ],
        NOW_MS,
      ),
    ).toBe(true);
    expect(
      fits(
        [
          buildClaim(
            buildShards([
              [5000, -20_000],
              [5000, 19_999],
            ]),
            { rpm: 1 },
          ),
        ],
        NOW_MS,
      ),
    ).toBe(false);
  });

  it("shows the sum in whole tokens, and the exact wait for the rest", () => {
    const shards = buildShards([
      [2600, 1000],
      [1399, 0],
    ]);
    const [rpm, tpm] = computeStatuses([buildClaim(shards, { rpm: 5 })], NOW_MS);
    // 1001 millitokens are missing at 5000 a minute on each of two shards: after 6006 ms both have
    // earned 500.5, of which 500 count.
    expect(rpm).toMatchObject({
      available: 3,
      requested: 5,
      exceeded: true,
      deficit: 2,
      retryAfterSeconds: 6.012,
    });
    expect(rpm!.limit).toBe(POLICY.limits[0]);
    expect(tpm).toMatchObject({ available: 1, exceeded: false, deficit: 0, retryAfterSeconds: 0 });
  });

  it("waits forever for more than the whole capacity, but not for the capacity itself", () => {
    const shards = buildShards([
      [0, 0],
      [0, 0],
    ]);
    expect(computeStatuses([buildClaim(shards, { rpm: 11 })], NOW_MS)[0]!.retryAfterSeconds).toBe(
      Infinity,
    );
    expect(computeStatuses([buildClaim(shards, { rpm: 10 })], NOW_MS)[0]!.retryAfterSeconds).toBe(
      60,
    );
  });
});

describe("shards together", () => {
  it("hold the sum of their balances, however each orders its limits", () => {
    const [first, second] = buildShards([
      [1000, 2000],
      [500, 700],
    ]) as [Bucket, Bucket];
    const turned: Bucket = {
      ...second,
      limits: second.limits.toReversed(),
      balances: [700, 0, 0, 500, 0, 0],
    };
    expect(shardSumMilli([first, turned], "rpm", NOW_MS)).toBe(1500);
    expect(shardSumMilli([first, turned], "tpm", NOW_MS)).toBe(2700);
    expect(shardSumMilli([first, turned], "tpm", NOW_MS + 600)).toBe(3700);
  });

  it("wait exactly as long as a search millisecond by millisecond finds", () => {
    fc.assert(
      fc.property(
        anyShards,
        fc.double({ min: 0, max: 1, noNaN: true }),
        ({ limit, shards }, part) => {
          const needed = Math.round(part * limit.capacity * MILLI);
          const held = (ms: number): number =>
            shards.reduce((sum, shard) => sum + balanceMilli(shard, 0, NOW_MS + ms), 0);
          let naive = 0;
          while (held(naive) < needed) naive += 1;
          expect(waitForShardSumMs(shards, "tpm", needed, NOW_MS)).toBe(naive);
          expect(shardSumMilli(shards, "tpm", NOW_MS)).toBe(held(0));
          expect(waitForShardSumMs(shards, "tpm", limit.capacity * MILLI + 1, NOW_MS)).toBe(
            Infinity,
          );
        },
      ),
      { numRuns: 150 },
    );
  });

  it("hold above what each keeps, and wait for that", () => {
    const shards = buildShards([
      [0, 500],
      [0, 2000],
      [0, -300],
    ]);
    const keptMilli = [1000, 1000, 1000];
    expect(shardSumMilli(shards, "tpm", NOW_MS, keptMilli)).toBe(700);
    const wait = waitForShardSumMs(shards, "tpm", 2000, NOW_MS, keptMilli);
    expect(shardSumMilli(shards, "tpm", NOW_MS + wait, keptMilli)).toBeGreaterThanOrEqual(2000);
    expect(shardSumMilli(shards, "tpm", NOW_MS + wait - 1, keptMilli)).toBeLessThan(2000);
    expect(waitForShardSumMs(shards, "tpm", 9e9, NOW_MS, keptMilli)).toBe(Infinity);
  });

  it("wait like a single shard, for every valid limit", () => {
    fc.assert(
      fc.property(
        validLimit(),
        fc.maxSafeInteger(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (limit, milli, part) => {
          const bucket: Bucket = {
            limits: bucketLimits([limit]),
            refilledAtMs: NOW_MS,
            balances: [milli, 0, 0],
          };
          const needed = Math.round(part * limit.capacity) * MILLI;
          const alone = waitMs(bucket, 0, needed, NOW_MS);
          fc.pre(alone + NOW_MS < Number.MAX_SAFE_INTEGER);
          expect(waitForShardSumMs([bucket], "tpm", needed, NOW_MS)).toBe(alone);
        },
      ),
    );
  });

  it("are refused, not rounded into a grant, in debts that add up beyond the safe range", () => {
    const shards = buildShards([
      [0, Number.MIN_SAFE_INTEGER],
      [0, Number.MIN_SAFE_INTEGER],
    ]);
    expect(shardSumMilli(shards, "tpm", NOW_MS)).toBe(2 * Number.MIN_SAFE_INTEGER);
    expect(fits([buildClaim(shards, {})], NOW_MS)).toBe(false);
    expect(waitForShardSumMs(shards, "tpm", 0, NOW_MS)).toBeGreaterThan(0);
  });
});

describe("shards of a quota", () => {
  it("wait for the first end after which they hold enough, which may be less than before", () => {
    const [first, second] = [NOW_MS + 50, NOW_MS + 80];
    const shards = buildQuota([
      [0, first],
      [2500, second],
    ]);
    const wait = (milli: number): number => waitForShardSumMs(shards, "tph", milli, NOW_MS);
    expect([2500, 4000, 4001].map(wait)).toEqual([0, 50, Infinity]);
    expect(shardSumMilli(shards, "tph", first)).toBe(4500);
    expect(shardSumMilli(shards, "tph", second)).toBe(4000);
    expect(findShardsEndMs(shards, "tph", NOW_MS)).toBe(second);
    expect(findShardsEndMs(shards, "tph", second)).toBeUndefined();
    const claim = { ...buildClaim(shards, {}), policy: buildPolicy([TPH], "system") };
    expect(computeStatuses([claim], NOW_MS)[0]!.resetsAt).toEqual(new Date(second));
  });

  it("wait as long as a search over all ends finds, whatever they carry", () => {
    const anyState = fc.tuple(
      fc.integer({ min: -9000, max: 6000 }),
      fc.constantFrom(0, ...[-3, -1, 0, 1, 2].map((hours) => NOW_MS + hours * HOUR_MS)),
    );
    const anyCarry = fc.constantFrom({ debt: true }, { unused: 3 }, { debt: true, unused: 1 });
    fc.assert(
      fc.property(
        fc.array(anyState, { minLength: 2, maxLength: 2 }),
        fc.option(anyCarry, { nil: undefined }),
        fc.integer({ min: 0, max: 7000 }),
        (states, carry, milli) => {
          const shards = buildQuota(states, carry);
          const ends = Array.from({ length: 30 }, (_, hour) => hour * HOUR_MS);
          const holds = (ms: number): boolean => shardSumMilli(shards, "tph", NOW_MS + ms) >= milli;
          const most = 4000 + (carry !== undefined && "unused" in carry ? carry.unused * 1000 : 0);
          expect(waitForShardSumMs(shards, "tph", milli, NOW_MS)).toBe(
            milli > most ? Infinity : (ends.find(holds) ?? Infinity),
          );
        },
      ),
    );
  });
});
