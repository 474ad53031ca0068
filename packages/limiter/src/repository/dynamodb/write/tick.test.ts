import { Limit } from "zae-limiter";
import { describe, expect, it } from "vitest";
import { bucketLimits } from "../../../core/bucket/bucket.ts";
import { LARGEST_TICK_MS, nextTickMs, roundToTick } from "./tick.ts";

const slow = bucketLimits([Limit.perMinute("rpm", 100)]);

describe("the tick of a bucket", () => {
  it("doubles with failed conditions, up to its bound, and returns to a millisecond", () => {
    let tickMs = 1;
    for (let failed = 0; failed < 20; failed += 1)
      tickMs = nextTickMs(tickMs, { applied: false, largestMs: LARGEST_TICK_MS });
    expect(tickMs).toBe(100);
    for (let applied = 0; applied < 40; applied += 1)
      tickMs = nextTickMs(tickMs, { applied: true, largestMs: LARGEST_TICK_MS });
    expect(tickMs).toBe(1);
  });

  it("rounds the time down", () => {
    expect(roundToTick(123_456, 1, slow)).toBe(123_456);
    expect(roundToTick(123_456, 100, slow)).toBe(123_400);
  });

  it("is at most a quarter of the time that the fastest limit needs to fill", () => {
    const fast = Limit.custom({
      name: "fast",
      capacity: 4,
      refillAmount: 100,
      refillPeriodSeconds: 1,
    });
    expect(roundToTick(123_456, 100, [...slow, ...bucketLimits([fast])])).toBe(123_450);
    const faster = Limit.custom({
      name: "faster",
      capacity: 1,
      refillAmount: 1000,
      refillPeriodSeconds: 1,
    });
    expect(roundToTick(123_456, 100, bucketLimits([faster]))).toBe(123_456);
  });
});
