import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { smallLimit } from "../../../test/support/arbitraries.ts";
import { apply, fullBucket } from "./bucket.ts";
import { costsMilli, fits, computeStatuses, type BucketClaim } from "./decision.ts";
import { buildPolicy } from "./policy.ts";
import { RateLimitExceeded, Refused } from "./refusal.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);

const someCharge: fc.Arbitrary<BucketClaim> = fc
  .record({
    limits: fc.tuple(smallLimit("rpm"), smallLimit("tpm")),
    taken: fc.record({ rpm: fc.nat(300), tpm: fc.nat(300) }),
    amounts: fc.record({ rpm: fc.nat(120), tpm: fc.nat(120) }, { requiredKeys: [] }),
    agoMs: fc.nat(10_000),
    isFirst: fc.boolean(),
  })
  .map(({ limits, taken, amounts, agoMs, isFirst }) => {
    const policy = buildPolicy(limits, "system");
    // Stores keep limits in an order of their own.
    const stored = buildPolicy(isFirst ? limits : limits.toReversed(), "system").bucketLimits;
    const full = fullBucket(stored, NOW_MS - agoMs);
    const bucket = apply(full, costsMilli(full, taken), NOW_MS - agoMs);
    return { entityId: "key-1", resource: "gpt-4", policy, bucket, amounts };
  });

describe("a decision that refused", () => {
  it("makes a refusal that equals one made of its statuses, in every property", () => {
    const charges = fc
      .array(someCharge, { minLength: 1, maxLength: 3 })
      .filter((each) => !fits(each, NOW_MS));
    fc.assert(
      fc.property(charges, fc.constantFrom("as a value", "to be thrown"), (refused, use) => {
        const eager = new RateLimitExceeded(computeStatuses(refused, NOW_MS), use);
        const late = (): RateLimitExceeded =>
          new RateLimitExceeded(new Refused(refused, NOW_MS), use);
        // Each property is the first one read of a new refusal.
        for (const name of [
          "message",
          "statuses",
          "violations",
          "passed",
          "primaryViolation",
          "retryAfterSeconds",
          "retryAfterHeader",
          "code",
          "name",
        ] as const)
          expect(late()[name], name).toEqual(eager[name]);
        expect(late().toJSON()).toEqual(eager.toJSON());
        expect(late().stack?.split("\n")[0]).toBe(eager.stack?.split("\n")[0]);
        expect(`${late()}`).toBe(`${eager}`);
      }),
    );
  });

  it("reads its buckets on the first access, and only once", () => {
    let looks = 0;
    const [drawn] = fc.sample(
      someCharge.filter((each) => !fits([each], NOW_MS)),
      1,
    );
    const charge = {
      ...drawn!,
      get bucket() {
        looks += 1;
        return drawn!.bucket;
      },
    };
    const refusal = new RateLimitExceeded(new Refused([charge], NOW_MS));
    expect(refusal.code).toBe("ERR_LIMITER_RATE_LIMIT_EXCEEDED");
    expect(looks).toBe(0);
    expect(refusal.retryAfterSeconds).toBeGreaterThan(0);
    const once = looks;
    expect(once).toBeGreaterThan(0);
    expect(refusal.toJSON().message).toBe(refusal.message);
    expect(refusal.statuses).toBe(refusal.statuses);
    expect(looks).toBe(once);
  });
});
