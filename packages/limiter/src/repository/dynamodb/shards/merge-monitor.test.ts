import { describe, expect, it } from "vitest";
import { BucketRate, type MeasuredShard } from "./merge-monitor.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const MINUTE_MS = 60_000;

function shard(writes: number, further: Partial<MeasuredShard> = {}): MeasuredShard {
  return { shard: 0, version: 1, creation: "me.1", writes, ...further };
}

/** The looks at two shards that are written so often, minute by minute. */
function looksAt(perSecond: readonly number[]): readonly boolean[] {
  const bucketRate = new BucketRate(shard(0), NOW_MS);
  const looks = [lookAfter(bucketRate, 0, 1)];
  let writes = 0;
  for (const [index, rate] of perSecond.entries()) {
    writes += (rate * 60) / 2;
    looks.push(lookAfter(bucketRate, writes, index + 2));
  }
  return looks;
}

function lookAfter(rate: BucketRate, writes: number, minute: number): boolean {
  const nowMs = NOW_MS + minute * MINUTE_MS;
  return (
    rate.mayLook(shard(writes), nowMs) &&
    rate.noteLook([shard(writes), shard(writes, { shard: 1 })], nowMs)
  );
}

describe("a bucket with several shards", () => {
  it("is calm after five minutes in a row with less than 200 write units a second in all", () => {
    expect(looksAt([199, 199, 199, 199, 199]).at(-1)).toBe(true);
    expect(looksAt([199, 199, 199, 199])).not.toContain(true);
    expect(looksAt([199, 199, 200, 199, 199, 199, 199])).not.toContain(true);
    expect(looksAt([199, 200, 199, 199, 199, 199, 199]).at(-1)).toBe(true);
  });

  it("is looked at once a minute, and not while the shard that is written is busy by itself", () => {
    const rate = new BucketRate(shard(0), NOW_MS);
    expect(rate.mayLook(shard(1), NOW_MS + MINUTE_MS - 1)).toBe(false);
    expect(rate.mayLook(shard(1), NOW_MS + MINUTE_MS)).toBe(true);
    expect(rate.mayLook(shard(2), NOW_MS + MINUTE_MS + 1)).toBe(false);
    expect(rate.mayLook(shard(24_000), NOW_MS + 2 * MINUTE_MS)).toBe(false);
    expect(rate.mayLook(shard(24_001), NOW_MS + 3 * MINUTE_MS)).toBe(true);
  });

  it("is measured from the start when any of its shards has changed", () => {
    for (const changed of [{ version: 2 }, { creation: "me.2" }]) {
      const rate = new BucketRate(shard(0), NOW_MS);
      for (let minute = 1; minute <= 5; minute += 1) expect(lookAfter(rate, 0, minute)).toBe(false);
      const nowMs = NOW_MS + 6 * MINUTE_MS;
      expect(rate.noteLook([shard(0), shard(0, { shard: 1, ...changed })], nowMs)).toBe(false);
      for (let minute = 7; minute <= 11; minute += 1)
        expect(lookAfter(rate, 0, minute)).toBe(false);
      expect(lookAfter(rate, 0, 12)).toBe(true);
    }
  });

  it("is looked at again after the clock was set back, which says nothing about its rate", () => {
    const rate = new BucketRate(shard(0), NOW_MS);
    expect(rate.mayLook(shard(1), NOW_MS - 10 * MINUTE_MS)).toBe(false);
    expect(rate.mayLook(shard(1), NOW_MS - 9 * MINUTE_MS)).toBe(true);
  });
});
