import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { magnitude, smallLimit, validLimit } from "../../../test/support/arbitraries.ts";
import {
  chargedMilli,
  milliAt,
  newBucket,
  waitMs as exactWaitMs,
} from "../../../test/oracle/oracle-bucket.ts";
import { toTerms, termsOfShard } from "../../../test/oracle/terms.ts";
import {
  apply,
  balanceMilli,
  bucketLimit,
  bucketLimits,
  computeEarned,
  fullBucket,
  getStoredMilli,
  getStoredRemainder,
  waitMs,
} from "./bucket.ts";
import { Limit } from "../limit.ts";
import { buildPolicy } from "./policy.ts";
import { shardLimit, shardLimits, shardPolicy, computeShare } from "./shares.ts";

const START_MS = Date.UTC(2026, 0, 4, 12);
const YEAR_MS = 366 * 86_400_000;

/** A node of the tree of shards. */
const node = fc.integer({ min: 0, max: 5 }).chain((level) =>
  fc.record({
    divisor: fc.constant(2 ** level),
    shard: fc.integer({ min: 0, max: 2 ** level - 1 }),
  }),
);

/**
 * Whole limits whose rate reduces well, but the shares of which do not: a·p of a share leaves the
 * safe range.
 */
const unevenLimit = fc
  .record({
    capacity: magnitude(9_007_199_254_740),
    factor: magnitude(1000),
    period: fc.integer({ min: 1, max: 9_000_000_000 }),
  })
  .filter(({ factor, period }) => factor * period <= 9_007_199_254_740)
  .map(({ capacity, factor, period }) => ({
    name: "tpm",
    capacity,
    refillAmount: factor * period,
    refillPeriodSeconds: period,
  }));

const step = fc.record({
  elapsedMs: fc.oneof(
    fc.constant(0),
    magnitude(1000 * YEAR_MS),
    fc.integer({ min: -5000, max: -1 }),
  ),
  costMilli: fc.oneof(
    fc.constant(0),
    magnitude(Number.MAX_SAFE_INTEGER),
    fc.integer({ min: -1_000_000_000, max: -1 }),
  ),
});
const history = fc.tuple(
  fc.oneof(validLimit(), smallLimit(), unevenLimit),
  node,
  fc.array(step, { maxLength: 12 }),
);

describe("shares", () => {
  it("count the numbers of a residue class", () => {
    for (const [whole, divisor] of [
      [0, 2],
      [1, 4],
      [1000, 16],
      [1001, 8],
    ] as const)
      for (let shard = 0; shard < divisor; shard += 1) {
        const own = Array.from({ length: whole }, (_, k) => k).filter((k) => k % divisor === shard);
        expect(computeShare(whole, shard, divisor)).toBe(own.length);
      }
  });

  it("add up to the whole, whichever shards have split", () => {
    fc.assert(
      fc.property(
        fc.nat({ max: Number.MAX_SAFE_INTEGER }),
        fc.array(fc.nat(), { maxLength: 40 }),
        (whole, choices) => {
          const nodes = [{ shard: 0, divisor: 1 }];
          for (const choice of choices) {
            const at = choice % nodes.length;
            const { shard, divisor } = nodes[at]!;
            if (divisor >= 32) continue;
            nodes.splice(
              at,
              1,
              { shard, divisor: 2 * divisor },
              { shard: shard + divisor, divisor: 2 * divisor },
            );
          }
          const shares = nodes.map(({ shard, divisor }) => computeShare(whole, shard, divisor));
          expect(shares.reduce((sum, share) => sum + BigInt(share), 0n)).toBe(BigInt(whole));
        },
      ),
    );
  });

  it("of a bucket that was never split are the whole: the same object", () => {
    const policy = buildPolicy([Limit.perMinute("rpm", 10)], "system");
    expect(shardLimit(policy.bucketLimits[0]!, 0, 1)).toBe(policy.bucketLimits[0]);
    expect(shardLimits(policy.bucketLimits, 0, 1)).toBe(policy.bucketLimits);
    expect(shardPolicy(policy, 0, 1)).toBe(policy);
  });

  it("keep the configured limit, hidden or not, and reduce the rate again", () => {
    const whole = bucketLimit(
      { name: "tpm", capacity: 3, refillAmount: 1, refillPeriodSeconds: 60 },
      true,
    );
    expect(whole).toMatchObject({ amount: 1, period: 60 });
    const share = shardLimit(whole, 1, 16);
    expect(share).toEqual({
      ...whole,
      capacityMilli: 188,
      refillAmountMilli: 63,
      amount: 21,
      period: 20_000,
    });
    expect(share.limit).toBe(whole.limit);
  });

  it("are made once for each list and shard, because decisions compare lists by identity", () => {
    const policy = buildPolicy(
      [Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)],
      "system",
    );
    const seen = new Set<unknown>();
    for (const divisor of [2, 4, 8])
      for (let shard = 0; shard < divisor; shard += 1) {
        const limits = shardLimits(policy.bucketLimits, shard, divisor);
        expect(limits).toEqual(
          policy.bucketLimits.map((limit) => shardLimit(limit, shard, divisor)),
        );
        expect(shardLimits(policy.bucketLimits, shard, divisor)).toBe(limits);
        expect(shardPolicy(policy, shard, divisor)).toBe(shardPolicy(policy, shard, divisor));
        expect(shardPolicy(policy, shard, divisor)).toEqual({ ...policy, bucketLimits: limits });
        expect(shardPolicy(policy, shard, divisor).bucketLimits).toBe(limits);
        seen.add(limits);
      }
    expect(seen.size).toBe(14);
    expect(shardLimits(bucketLimits(policy.limits), 1, 2)).not.toBe(
      shardLimits(policy.bucketLimits, 1, 2),
    );
  });
});

describe("a bucket of one shard", () => {
  it("equals exact arithmetic for every share of every valid limit", () => {
    let unsafe = 0;
    fc.assert(
      fc.property(history, ([limit, { shard, divisor }, steps]) => {
        const share = shardLimit(bucketLimit(limit, false), shard, divisor);
        const exact = termsOfShard(toTerms(limit), shard, divisor);
        if (!Number.isSafeInteger((share.amount + 1) * share.period)) unsafe += 1;
        let [bucket, oracle, nowMs] = [
          fullBucket([share], START_MS),
          newBucket([exact], 1, START_MS),
          START_MS,
        ];
        for (const { elapsedMs, costMilli } of steps) {
          nowMs += elapsedMs;
          const credit = computeEarned(bucket, 0, nowMs);
          const units =
            BigInt(Math.max(0, nowMs - bucket.refilledAtMs)) * BigInt(share.amount) +
            BigInt(getStoredRemainder(bucket, 0));
          const most = BigInt(Number.MAX_SAFE_INTEGER);
          expect(BigInt(credit.milli)).toBe(
            units / BigInt(share.period) > most ? most : units / BigInt(share.period),
          );
          expect(BigInt(credit.remainder)).toBe(units % BigInt(share.period));
          bucket = apply(bucket, [costMilli], nowMs);
          oracle = chargedMilli(oracle, () => BigInt(costMilli), nowMs);
          const remainder =
            BigInt(getStoredRemainder(bucket, 0)) * BigInt(share.refillAmountMilli / share.amount);
          const [milli, exactly] = [BigInt(getStoredMilli(bucket, 0)), oracle.balances[0]!];
          expect(milli).toBe(milliAt(exactly, oracle.stampMs, oracle.stampMs));
          expect(milli * exact.period + remainder).toBe(exactly.units);
          expect(BigInt(balanceMilli(bucket, 0, nowMs + 12_345))).toBe(
            milliAt(exactly, oracle.stampMs, nowMs + 12_345),
          );
        }
      }),
      { numRuns: 3000 },
    );
    expect(unsafe).toBeGreaterThan(100);
  });

  it("is exact even where the products of its share leave the safe range", () => {
    const limit = {
      name: "tpm",
      capacity: 9_007_199_254_740,
      refillAmount: 8_973_000_006_979,
      refillPeriodSeconds: 9_000_000_007,
    };
    const share = shardLimit(bucketLimit(limit, false), 3, 32);
    const exact = termsOfShard(toTerms(limit), 3, 32);
    expect(Number.isSafeInteger((share.amount + 1) * share.period)).toBe(false);
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9_000_000_000_000 }),
        fc.integer({ min: 0, max: share.period - 1 }),
        (elapsedMs, remainder) => {
          const bucket = { limits: [share], refilledAtMs: START_MS, balances: [0, remainder, 0] };
          const units = BigInt(remainder) * BigInt(share.refillAmountMilli / share.amount);
          expect(BigInt(balanceMilli(bucket, 0, START_MS + elapsedMs))).toBe(
            milliAt({ terms: exact, units }, START_MS, START_MS + elapsedMs),
          );
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("knows to the millisecond when it holds an amount", () => {
    fc.assert(
      fc.property(
        history,
        fc.double({ min: 0, max: 1, noNaN: true }),
        ([limit, { shard, divisor }, steps], part) => {
          const share = shardLimit(bucketLimit(limit, false), shard, divisor);
          const exact = termsOfShard(toTerms(limit), shard, divisor);
          let [bucket, oracle, nowMs] = [
            fullBucket([share], START_MS),
            newBucket([exact], 1, START_MS),
            START_MS,
          ];
          for (const { elapsedMs, costMilli } of steps) {
            nowMs += elapsedMs;
            bucket = apply(bucket, [costMilli], nowMs);
            oracle = chargedMilli(oracle, () => BigInt(costMilli), nowMs);
          }
          const needed = Math.round(part * share.capacityMilli);
          const { balances, stampMs } = oracle;
          const wait = exactWaitMs(balances[0]!, stampMs, BigInt(needed), nowMs)!;
          fc.pre(Number(wait) + nowMs < Number.MAX_SAFE_INTEGER);
          expect(BigInt(waitMs(bucket, 0, needed, nowMs))).toBe(wait);
        },
      ),
      { numRuns: 2000 },
    );
  });
});
