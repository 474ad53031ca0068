import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { magnitude, smallLimit, validLimit } from "../../../test/support/arbitraries.ts";
import {
  chargedMilli,
  milliAt,
  newBucket,
  waitMs as exactWaitMs,
  type OracleBucket,
} from "../../../test/oracle/oracle-bucket.ts";
import { toTerms } from "../../../test/oracle/terms.ts";
import {
  apply,
  balanceMilli,
  bucketLimit,
  bucketLimits,
  getConsumedMilli,
  fullBucket,
  isFull,
  getStoredMilli,
  getStoredRemainder,
  waitMs,
  type Bucket,
} from "./bucket.ts";
import type { RateLimit } from "../limit-kinds.ts";

const START_MS = Date.UTC(2026, 0, 4, 12);
const YEAR_MS = 366 * 86_400_000;

/** One step of a history: time passes or goes backwards, and tokens are taken or given back. */
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
const smallStep = fc.record({
  elapsedMs: fc.oneof(fc.integer({ min: 0, max: 50_000 }), fc.integer({ min: -5000, max: -1 })),
  costMilli: fc.integer({ min: -60_000, max: 120_000 }),
});
const history = fc.oneof(
  fc.tuple(validLimit(), fc.array(step, { maxLength: 12 })),
  fc.tuple(smallLimit(), fc.array(smallStep, { maxLength: 40 })),
);

interface Played {
  readonly bucket: Bucket;
  readonly oracle: OracleBucket;
  readonly nowMs: number;
}

/** Plays a history on the bucket and on the oracle. */
function play(
  limit: RateLimit,
  steps: readonly { readonly elapsedMs: number; readonly costMilli: number }[],
  each?: (now: Played) => void,
): Played {
  let played: Played = {
    bucket: fullBucket(bucketLimits([limit]), START_MS),
    oracle: newBucket([toTerms(limit)], 1, START_MS),
    nowMs: START_MS,
  };
  for (const { elapsedMs, costMilli } of steps) {
    const nowMs = played.nowMs + elapsedMs;
    played = {
      bucket: apply(played.bucket, [costMilli], nowMs),
      oracle: chargedMilli(played.oracle, () => BigInt(costMilli), nowMs),
      nowMs,
    };
    each?.(played);
  }
  return played;
}

function buildBucket(limit: Omit<RateLimit, "name">, tokensMilli: number, remainder = 0): Bucket {
  return {
    limits: bucketLimits([{ name: "tpm", ...limit }]),
    refilledAtMs: START_MS,
    balances: [tokensMilli, remainder, 0],
  };
}

describe("refill and take", () => {
  it("equals exact arithmetic for every valid limit, step by step", () => {
    fc.assert(
      fc.property(history, ([limit, steps]) => {
        const { amount, refillAmountMilli } = bucketLimit(limit, false);
        let isCountable = true;
        play(limit, steps, ({ bucket, oracle: { balances, stampMs } }) => {
          const { terms, units, consumedMilli: consumed } = balances[0]!;
          const milli = BigInt(getStoredMilli(bucket, 0));
          const remainder =
            BigInt(getStoredRemainder(bucket, 0)) * BigInt(refillAmountMilli / amount);
          expect(milli).toBe(milliAt(balances[0]!, stampMs, stampMs));
          expect(milli * terms.period + remainder).toBe(units);
          expect(bucket.refilledAtMs).toBe(stampMs);
          isCountable &&= Number.isSafeInteger(Number(consumed));
          if (isCountable) expect(BigInt(getConsumedMilli(bucket, 0))).toBe(consumed);
        });
      }),
      { numRuns: 2000 },
    );
  });

  it("shows the balance at any time without changing it", () => {
    fc.assert(
      fc.property(
        history,
        fc.integer({ min: -10_000, max: 10 * YEAR_MS }),
        ([limit, steps], laterMs) => {
          const { bucket, oracle, nowMs } = play(limit, steps);
          expect(BigInt(balanceMilli(bucket, 0, nowMs + laterMs))).toBe(
            milliAt(oracle.balances[0]!, oracle.stampMs, nowMs + laterMs),
          );
          expect(balanceMilli(bucket, 0, nowMs + laterMs)).toBe(
            getStoredMilli(apply(bucket, [0], nowMs + laterMs), 0),
          );
        },
      ),
    );
  });

  it("earns 100 a minute exactly when it is refilled every millisecond", () => {
    let bucket = buildBucket({ capacity: 1000, refillAmount: 100, refillPeriodSeconds: 60 }, 0);
    for (let ms = 1; ms <= 60_000; ms += 1) bucket = apply(bucket, [0], START_MS + ms);
    expect(getStoredMilli(bucket, 0)).toBe(100_000);
  });

  it("never holds more than its capacity, and gives back into debt first", () => {
    const bucket = buildBucket({ capacity: 10, refillAmount: 1, refillPeriodSeconds: 1 }, -5000);
    expect(getStoredMilli(apply(bucket, [-7000], START_MS), 0)).toBe(2000);
    expect(getStoredMilli(apply(bucket, [-70_000], START_MS), 0)).toBe(10_000);
  });

  it("is full only when every limit is full, hidden ones included", () => {
    const limit = { name: "a", capacity: 1, refillAmount: 1, refillPeriodSeconds: 1 };
    const bucket: Bucket = {
      limits: [bucketLimit(limit, false), bucketLimit({ ...limit, name: "b" }, true)],
      refilledAtMs: START_MS,
      balances: [1000, 0, 0, 0, 0, 0],
    };
    expect(isFull(bucket, START_MS + 999)).toBe(false);
    expect(isFull(bucket, START_MS + 1000)).toBe(true);
  });
});

describe("wait", () => {
  it("is the exact inverse of the refill: at the wait it fits, one millisecond before it does not", () => {
    fc.assert(
      fc.property(
        history,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.integer({ min: -3000, max: 3000 }),
        ([limit, steps], share, stepMs) => {
          const { bucket, oracle, nowMs: lastMs } = play(limit, steps);
          const nowMs = lastMs + stepMs;
          const needed = Math.round(share * limit.capacity) * 1000;
          const wait = waitMs(bucket, 0, needed, nowMs);
          const { balances, stampMs } = oracle;
          const exact = exactWaitMs(balances[0]!, stampMs, BigInt(needed), nowMs)!;
          // For a longer wait, the time itself would no longer be a whole number, 285 000 years
          // from now.
          fc.pre(Number(exact) + nowMs < Number.MAX_SAFE_INTEGER);
          expect(BigInt(wait)).toBe(exact);
          expect(balanceMilli(bucket, 0, nowMs + wait)).toBeGreaterThanOrEqual(needed);
          if (wait > 0) expect(balanceMilli(bucket, 0, nowMs + wait - 1)).toBeLessThan(needed);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("is infinite for more than the capacity, and for nothing else", () => {
    fc.assert(
      fc.property(history, ([limit, steps]) => {
        const { bucket, nowMs } = play(limit, steps);
        expect(waitMs(bucket, 0, limit.capacity * 1000 + 1, nowMs)).toBe(Infinity);
        expect(waitMs(bucket, 0, limit.capacity * 1000, nowMs)).toBeLessThan(Infinity);
      }),
    );
  });

  it("is exact even for a debt so deep that the deficit leaves the safe range", () => {
    const bucket = buildBucket(
      { capacity: 1, refillAmount: 999_981, refillPeriodSeconds: 441_250 },
      Number.MIN_SAFE_INTEGER,
    );
    const wait = waitMs(bucket, 0, 1000, START_MS);
    expect(balanceMilli(bucket, 0, START_MS + wait)).toBe(1000);
    expect(balanceMilli(bucket, 0, START_MS + wait - 1)).toBeLessThan(1000);
  });
});
