import { expect, it } from "vitest";
import { Limit, RateLimitExceeded } from "zae-limiter";
import { take, takeWhatFits } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import { sum, useShards } from "../../support/shard-processes.ts";

/** Longer than a process remembers configuration. */
const CACHE_MS = 61_000;

describeWithEngine("changed limits of a bucket with shards", (engine) => {
  const { open, openSplit, advance, items } = useShards(engine);
  const capacities = async (): Promise<readonly (number | undefined)[]> =>
    numbersIn(await items(), "b_rpm_cp");

  it("raised and lowered limits reach every shard when it is touched, and mint and lose nothing [W-15]", async () => {
    const { limiter, repository } = await openSplit(Limit.perMinute("rpm", 60), {
      shards: 4,
      home: 0,
    });
    const other = await open(1);
    await take(other.limiter, { rpm: 1 });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 120)]);
    // One take rewrites one shard; the others follow when they are touched.
    expect(await limiter.available("e", "r")).toEqual({ rpm: 59 });
    await take(limiter, { rpm: 1 });
    expect(await capacities()).toEqual([120_000, 60_000, 60_000, 60_000]);
    expect(await limiter.available("e", "r")).toEqual({ rpm: 58 });
    advance(10_000);
    // Untouched shards have earned at the old rate until they are touched, as an unsplit bucket
    // would have in all.
    const { rpm: available } = await limiter.available("e", "r");
    await take(limiter, { rpm: available! });
    await expect(take(limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
    expect(await capacities()).toEqual([120_000, 120_000, 120_000, 120_000]);
    advance(CACHE_MS);
    expect(await other.limiter.available("e", "r")).toEqual({ rpm: 120 });
    await take(other.limiter, { rpm: 120 });

    advance(CACHE_MS);
    await repository.setSystemDefaults([Limit.perMinute("rpm", 8)]);
    advance(CACHE_MS);
    // What is above the new limit is gone, in whichever shard it lay.
    for (const process of [limiter, other.limiter])
      expect(await process.available("e", "r")).toEqual({ rpm: 8 });
    await expect(take(other.limiter, { rpm: 9 })).rejects.toThrow(RateLimitExceeded);
    expect(
      sum([await takeWhatFits(limiter, { rpm: 1 }), await takeWhatFits(other.limiter, { rpm: 1 })]),
    ).toBe(8);
    expect(await capacities()).toEqual([8000, 8000, 8000, 8000]);
    for (const item of await items()) expect(item).not.toHaveProperty("ttl");
  });

  it("newer limits of some shards are taken on also where only all shards together hold a call", async () => {
    const { limiter, repository } = await openSplit(Limit.perMinute("rpm", 60), {
      shards: 4,
      home: 0,
    });
    const behind = await open(2);
    await take(behind.limiter, { rpm: 3 });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 120)]);
    await take(limiter, { rpm: 20 });
    expect(await capacities()).toContain(120_000);
    // More than a share, so this gathers, by a process that remembers the limits of before.
    await take(behind.limiter, { rpm: 37 });
    expect(await capacities()).toEqual([120_000, 120_000, 120_000, 120_000]);
    expect(await limiter.available("e", "r")).toEqual({ rpm: 0 });
  });
});
