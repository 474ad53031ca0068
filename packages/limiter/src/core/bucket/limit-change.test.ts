import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { smallLimit, validLimit } from "../../../test/support/arbitraries.ts";
import {
  apply,
  balanceMilli,
  bucketLimits,
  fullBucket,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
} from "./bucket.ts";
import { withLimits } from "./limit-change.ts";
import type { RateLimit } from "../limit-kinds.ts";

const START_MS = Date.UTC(2026, 0, 4, 12);

function nameIt(bucket: Bucket, name: string): number {
  return bucket.limits.findIndex(({ limit }) => limit.name === name);
}

function tokens(bucket: Bucket, name: string, nowMs: number): number {
  return balanceMilli(bucket, nameIt(bucket, name), nowMs);
}

describe("a bucket under other limits", () => {
  it("keeps its balance when a capacity is raised, and loses the excess when it is lowered", () => {
    const limit = { name: "tpm", capacity: 10, refillAmount: 1, refillPeriodSeconds: 1 };
    const full = fullBucket(bucketLimits([limit]), START_MS);
    const raised = withLimits(full, bucketLimits([{ ...limit, capacity: 20 }]), START_MS);
    expect(tokens(raised, "tpm", START_MS)).toBe(10_000);
    const lowered = withLimits(raised, bucketLimits([{ ...limit, capacity: 4 }]), START_MS);
    expect(getStoredMilli(lowered, 0)).toBe(4000);
    const raisedAgain = withLimits(lowered, bucketLimits([limit]), START_MS);
    expect(tokens(raisedAgain, "tpm", START_MS)).toBe(4000);
  });

  it("scales the remainder with the period: 1001 a day changed to 86 400 a day credits nothing at once", () => {
    const odd = { name: "tpm", capacity: 100_000, refillAmount: 1001, refillPeriodSeconds: 86_400 };
    const empty = apply(fullBucket(bucketLimits([odd]), START_MS), [100_000_000], START_MS);
    // One millisecond before the next millitoken the remainder is as large as it gets.
    const later = apply(empty, [0], START_MS + 86);
    expect(getStoredRemainder(later, 0)).toBeGreaterThan(80_000);
    const even = withLimits(later, bucketLimits([{ ...odd, refillAmount: 86_400 }]), START_MS + 86);
    expect(getStoredRemainder(even, 0)).toBe(0);
    expect(tokens(even, "tpm", START_MS + 87)).toBe(1);
  });

  it("rounds the scaled remainder down for every pair of limits, and keeps it below the new period", () => {
    fc.assert(
      fc.property(
        validLimit(),
        validLimit(),
        fc.nat({ max: 1_000_000_000 }),
        (from, to, elapsedMs) => {
          const nowMs = START_MS + elapsedMs;
          const old = apply(
            apply(fullBucket(bucketLimits([from]), START_MS), [from.capacity * 1000], START_MS),
            [0],
            nowMs,
          );
          const [before, after] = [old.limits[0]!, bucketLimits([to])[0]!];
          const changed = withLimits(old, [after], nowMs);
          const exact =
            (BigInt(getStoredRemainder(old, 0)) * BigInt(after.period)) / BigInt(before.period);
          const isFull = getStoredMilli(changed, 0) === to.capacity * 1000;
          expect(BigInt(getStoredRemainder(changed, 0))).toBe(isFull ? 0n : exact);
          expect(getStoredRemainder(changed, 0)).toBeLessThan(after.period);
        },
      ),
    );
  });

  it("loses nothing by a refusal: a limit that would be cut keeps its parameters, the others change", () => {
    const [a, b] = ["a", "b"].map((name) => ({
      name,
      capacity: 10,
      refillAmount: 1,
      refillPeriodSeconds: 1,
    })) as [RateLimit, RateLimit];
    const bucket = apply(fullBucket(bucketLimits([a, b]), START_MS), [0, 10_000], START_MS);
    const wanted = bucketLimits([
      { ...a, capacity: 5 },
      { ...b, refillAmount: 2 },
    ]);
    const kept = withLimits(bucket, wanted, START_MS, { keepCut: true });
    expect(tokens(kept, "a", START_MS)).toBe(10_000);
    expect(tokens(kept, "b", START_MS + 1000)).toBe(2000);
    expect(tokens(withLimits(bucket, wanted, START_MS), "a", START_MS)).toBe(5000);
  });

  it("never mints, however often limits come, go and come back", () => {
    const limits = fc.tuple(smallLimit("a"), smallLimit("b"), smallLimit("c"));
    const moves = fc.array(
      fc.record({
        elapsedMs: fc.integer({ min: -500, max: 5000 }),
        present: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
        keepCut: fc.boolean(),
        costs: fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 3, maxLength: 3 }),
      }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(limits, moves, (all, steps) => {
        let nowMs = START_MS;
        let bucket = fullBucket(bucketLimits(all), nowMs);
        // The oracle is a bucket that is never reconfigured: it has every limit all the time.
        let steady = bucket;
        for (const { elapsedMs, present, keepCut, costs } of steps) {
          nowMs += elapsedMs;
          bucket = withLimits(
            bucket,
            bucketLimits(all.filter((_, index) => present[index])),
            nowMs,
            { keepCut },
          );
          bucket = apply(
            bucket,
            bucket.limits.map(({ limit, hidden }) =>
              hidden ? 0 : costs[all.findIndex(({ name }) => name === limit.name)]!,
            ),
            nowMs,
          );
          steady = apply(
            steady,
            costs.map((cost, index) => (present[index] ? cost : 0)),
            nowMs,
          );
          for (const [index, { name }] of all.entries()) {
            if (nameIt(bucket, name) >= 0)
              expect(tokens(bucket, name, nowMs)).toBe(balanceMilli(steady, index, nowMs));
            else
              expect(balanceMilli(steady, index, nowMs)).toBe(steady.limits[index]!.capacityMilli);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  it("never mints, however often the parameters of a limit change", () => {
    const moves = fc.array(
      fc.tuple(
        smallLimit(),
        fc.integer({ min: -500, max: 20_000 }),
        fc.integer({ min: 0, max: 50_000 }),
      ),
      {
        maxLength: 30,
      },
    );
    fc.assert(
      fc.property(smallLimit(), moves, (first, steps) => {
        let nowMs = START_MS;
        let stampMs = START_MS;
        let limit = first;
        let bucket = fullBucket(bucketLimits([limit]), nowMs);
        // In units of 1/1000 millitoken, never rounded down: an upper bound that only capacities
        // cut.
        let most = first.capacity * 1_000_000;
        for (const [next, elapsedMs, cost] of steps) {
          nowMs += elapsedMs;
          const earned =
            (Math.max(0, nowMs - stampMs) * limit.refillAmount * 1_000_000) /
            (limit.refillPeriodSeconds * 1000);
          stampMs = Math.max(stampMs, nowMs);
          most = Math.min(
            next.capacity * 1_000_000,
            limit.capacity * 1_000_000,
            most + Math.ceil(earned),
          );
          bucket = withLimits(bucket, bucketLimits([next]), nowMs);
          expect(getStoredMilli(bucket, 0) * 1000).toBeLessThanOrEqual(most);
          bucket = apply(bucket, [cost], nowMs);
          most -= cost * 1000;
          limit = next;
        }
      }),
      { numRuns: 500 },
    );
  });
});
