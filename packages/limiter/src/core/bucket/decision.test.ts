import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { smallLimit } from "../../../test/support/arbitraries.ts";
import { MILLI, type Amounts } from "../amounts.ts";
import { apply, balanceMilli, fullBucket, getStoredMilli, type Bucket } from "./bucket.ts";
import {
  afterRefusal,
  costsMilli,
  fits,
  hasPolicyLimits,
  selectKnownAmounts,
  computeStatuses,
  withPolicyLimits,
  type BucketClaim,
} from "./decision.ts";
import { Limit } from "../limit.ts";
import { buildPolicy, type Policy } from "./policy.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const POLICY = buildPolicy([Limit.perMinute("rpm", 10), Limit.perMinute("tpm", 1000)], "system");

function charge(amounts: Amounts, taken: Amounts = {}, policy: Policy = POLICY): BucketClaim {
  const full = fullBucket(policy.bucketLimits, NOW_MS);
  const bucket = apply(full, costsMilli(full, taken), NOW_MS);
  return { entityId: "key-1", resource: "gpt-4", policy, bucket, amounts };
}

describe("a decision", () => {
  it("fits when every limit of every bucket holds its amount, and not when one is a token short", () => {
    expect(fits([charge({ rpm: 10, tpm: 1000 })], NOW_MS)).toBe(true);
    expect(fits([charge({ rpm: 10, tpm: 1001 })], NOW_MS)).toBe(false);
    expect(fits([charge({ rpm: 1 }), charge({ rpm: 1 }, { rpm: 10 })], NOW_MS)).toBe(false);
    expect(fits([charge({ rpm: 1 }, { rpm: 10 }), charge({ rpm: 1 })], NOW_MS)).toBe(false);
  });

  it("is refused by a limit in debt that the call does not name, until the debt is paid", () => {
    const inDebt = charge({ rpm: 1 }, { tpm: 1001 });
    expect(fits([inDebt], NOW_MS)).toBe(false);
    expect(fits([inDebt], NOW_MS + 59)).toBe(false);
    expect(fits([inDebt], NOW_MS + 60)).toBe(true);
    expect(fits([charge({ rpm: 1 }, { tpm: 1000 })], NOW_MS)).toBe(true);
  });

  it("rounds available tokens down, even in debt, and waits forever for more than the capacity", () => {
    const full = charge({ rpm: 11 });
    const bucket: Bucket = { ...full.bucket, balances: [999, 0, 0, -1, 0, 0] };
    const [rpm, tpm] = computeStatuses([{ ...full, bucket }], NOW_MS);
    expect(rpm).toMatchObject({ available: 0, exceeded: true, retryAfterSeconds: Infinity });
    expect(tpm).toMatchObject({
      available: -1,
      exceeded: true,
      deficit: 1,
      retryAfterSeconds: 0.001,
    });
  });

  it("agrees with its statuses, and fits exactly after the longest wait", () => {
    const amount = fc.integer({ min: 0, max: 120 });
    fc.assert(
      fc.property(
        smallLimit("a"),
        smallLimit("b"),
        amount,
        amount,
        fc.nat({ max: 250 }),
        fc.nat({ max: 250 }),
        (a, b, wantA, wantB, tookA, tookB) => {
          const one = charge(
            { a: wantA, b: wantB },
            { a: tookA, b: tookB },
            buildPolicy([a, b], "resource"),
          );
          const statuses = computeStatuses([one], NOW_MS);
          expect(fits([one], NOW_MS)).toBe(statuses.every(({ exceeded }) => !exceeded));
          for (const { exceeded, retryAfterSeconds, deficit } of statuses)
            expect([retryAfterSeconds > 0, deficit > 0]).toEqual([exceeded, exceeded]);
          const waitMs = Math.round(
            Math.max(...statuses.map(({ retryAfterSeconds }) => retryAfterSeconds)) * 1000,
          );
          if (waitMs === Infinity) {
            expect(wantA > a.capacity || wantB > b.capacity).toBe(true);
            return;
          }
          expect(fits([one], NOW_MS + waitMs)).toBe(true);
          if (waitMs > 0) expect(fits([one], NOW_MS + waitMs - 1)).toBe(false);
        },
      ),
    );
  });
});

describe("a bucket and its policy", () => {
  it("starts full, and stays the same object while the policy is the same", () => {
    const bucket = withPolicyLimits(undefined, POLICY, NOW_MS);
    expect(bucket).toEqual(fullBucket(POLICY.bucketLimits, NOW_MS));
    expect(withPolicyLimits(bucket, POLICY, NOW_MS + 1)).toBe(bucket);
    const equal = buildPolicy(POLICY.limits.toReversed(), "entity");
    expect(hasPolicyLimits(bucket, equal)).toBe(true);
    expect(withPolicyLimits(bucket, equal, NOW_MS + 1)).toBe(bucket);
  });

  it.each([
    [
      "capacity",
      Limit.custom({ name: "rpm", capacity: 11, refillAmount: 10, refillPeriodSeconds: 60 }),
    ],
    [
      "amount",
      Limit.custom({ name: "rpm", capacity: 10, refillAmount: 11, refillPeriodSeconds: 60 }),
    ],
    [
      "period",
      Limit.custom({ name: "rpm", capacity: 10, refillAmount: 10, refillPeriodSeconds: 61 }),
    ],
    ["name", Limit.perMinute("rps", 10)],
  ])("is carried over when only the %s of a limit differs", (_, changed) => {
    const policy = buildPolicy([changed, POLICY.limits[1]!], "system");
    const bucket = fullBucket(POLICY.bucketLimits, NOW_MS);
    expect(hasPolicyLimits(bucket, policy)).toBe(false);
    expect(hasPolicyLimits(withPolicyLimits(bucket, policy, NOW_MS), policy)).toBe(true);
  });

  it("needs no write for a refusal under the same policy or without a bucket", () => {
    expect(afterRefusal(undefined, POLICY, NOW_MS)).toBeUndefined();
    expect(afterRefusal(fullBucket(POLICY.bucketLimits, NOW_MS), POLICY, NOW_MS)).toBeUndefined();
  });

  it("stores the new rate for a refusal, so that the call will fit some day, and takes nothing away", () => {
    const { bucket } = charge({}, { tpm: 1000 });
    const policy = buildPolicy([Limit.perMinute("rpm", 5), Limit.perSecond("tpm", 1000)], "system");
    const left = afterRefusal(bucket, policy, NOW_MS)!;
    expect(getStoredMilli(left, 0)).toBe(10 * MILLI);
    expect(balanceMilli(left, 1, NOW_MS + 1)).toBe(1000);
  });
});

describe("amounts and policies", () => {
  it("drops names that no level of a parent knows, and refuses them of an entity", () => {
    const levels = [undefined, buildPolicy([Limit.perDay("images", 5)], "resource"), POLICY];
    const wanted = { entityId: "e", resource: "r", override: undefined, isParent: true };
    const amounts = { rpm: 1, images: 2, other: 3 };
    const parents = selectKnownAmounts({ ...wanted, amounts }, POLICY, levels);
    expect(parents).toEqual({ rpm: 1, images: 2 });
    const own = { ...wanted, isParent: false };
    expect(() => selectKnownAmounts({ ...own, amounts }, POLICY, levels)).toThrow(/consume.other/);
    const known = { rpm: 1, images: 2 };
    expect(selectKnownAmounts({ ...own, amounts: known }, POLICY, levels)).toBe(known);
  });
});
