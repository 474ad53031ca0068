import { describe, expect, it } from "vitest";
import { bucketLimits, fullBucket } from "../../../core/bucket/bucket.ts";
import { Limit } from "../../../core/limit.ts";
import { decideBatch, LimitFold } from "./batch-decision.ts";

describe("what a batch does to one limit", () => {
  it("needs the most that any acquire requires of the start, whatever goes back after it", () => {
    const fold = new LimitFold();
    fold.take(7000);
    fold.settle(-6000);
    fold.take(2000);
    expect(fold).toMatchObject({
      netMilli: 3000,
      needMilli: 7000,
      riseMilli: 0,
      isCharged: true,
    });
  });

  it("rises as far as give-backs lift the balance before a charge, and no further", () => {
    const fold = new LimitFold();
    fold.settle(-3000);
    fold.settle(-2000);
    fold.take(1000);
    fold.settle(-2000);
    expect(fold).toMatchObject({
      netMilli: -6000,
      needMilli: -4000,
      riseMilli: 5000,
      isCharged: true,
    });
  });

  it("requires that an acquire that costs nothing finds no debt", () => {
    const fold = new LimitFold();
    fold.settle(4000);
    fold.take(0);
    expect(fold).toMatchObject({ netMilli: 4000, needMilli: 4000 });
  });

  it("ends with its members applied one after another, each cut off at the ceiling", () => {
    const fold = new LimitFold();
    fold.settle(-5000);
    fold.take(1000);
    expect(fold.computeBalanceAfter(8000, 10_000)).toEqual({ milli: 9000, wasFull: true });
    expect(fold.computeBalanceAfter(4000, 10_000)).toEqual({ milli: 8000, wasFull: false });
  });
});

it("leaves a member to the next write when a sum that is only counted would lose digits", () => {
  const bucket = fullBucket(bucketLimits([Limit.perMinute("rpm", 5)]), 0);
  const most = Number.MAX_SAFE_INTEGER;
  const step = { kind: "take", costs: { rpm: 1, tpm: most }, isCascaded: false } as const;
  const steps = [step, step];
  const { accepted, folds } = decideBatch(bucket, steps, 0);
  expect(accepted).toEqual([true]);
  expect(folds.get("tpm")?.countedMilli).toBe(most);
});

it.each(["rpm", "tpm"])("does so too when what came by cascade would, of %s", (name) => {
  const bucket = fullBucket(bucketLimits([Limit.perMinute("rpm", 5)]), 0);
  const costs = { [name]: Number.MAX_SAFE_INTEGER };
  const cascaded = { kind: "overrun", costs, isCascaded: true } as const;
  const own = { ...cascaded, costs: { [name]: -Number.MAX_SAFE_INTEGER }, isCascaded: false };
  const { accepted, folds } = decideBatch(bucket, [cascaded, own, cascaded], 0);
  expect(accepted).toEqual([true, true]);
  expect(folds.get(name)?.cascadedMilli).toBe(Number.MAX_SAFE_INTEGER);
});
