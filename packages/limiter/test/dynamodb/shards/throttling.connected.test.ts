import { expect, it } from "vitest";
import { Limit, RateLimiterUnavailable } from "zae-limiter";
import { take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import { useShards, writesShard } from "../../support/shard-processes.ts";

const rpm = Limit.perMinute("rpm", 60);
const HOMES = [0, 1, 2, 3];

describeWithEngine("a bucket whose shard 0 is throttled", (engine) => {
  const { open, openSplit, items, table } = useShards(engine);

  it("other shards serve it, also processes that have never seen it", async () => {
    await openSplit(rpm, { shards: 2, home: 0 });
    table.proxy.decide = (request) => (writesShard(request, 0) ? "throttle" : undefined);
    for (const home of HOMES) {
      const { limiter, repository } = await open(home);
      await take(limiter, { rpm: 1 });
      await take(limiter, { rpm: 1 });
      // What shard 0 holds is unavailable now, and that is not a refusal.
      if (home === HOMES.at(-1))
        await expect(take(limiter, { rpm: 25 })).rejects.toThrow(RateLimiterUnavailable);
      expect(repository.getStatistics().splits).toBe(0);
    }
    expect(numbersIn(await items(), "b_rpm_tk")).toEqual([30_000, 22_000]);
  });

  it("a process that tries to begin it unseen finds its other shards", async () => {
    await openSplit(rpm, { shards: 2, home: 0 });
    for (const home of HOMES) {
      const { limiter } = await open(home);
      await limiter.available("e", "other");
      table.proxy.decide = (request) => (writesShard(request, 0) ? "throughput" : undefined);
      const sent = await table.listOperations(async () => {
        const lease = await limiter.acquire({
          entityId: "e",
          resource: "r",
          consume: { rpm: 1 },
          limits: [rpm],
        });
        await lease.commit();
      });
      expect(sent).toContain("PutItem");
      table.proxy.decide = () => undefined;
    }
    expect(numbersIn(await items(), "b_rpm_tk")).toEqual([30_000, 26_000]);
  });

  it("a bucket that does not exist yet stays unavailable", async () => {
    const { limiter } = await openSplit(rpm, { shards: 2, home: 0 });
    table.proxy.decide = (request) => (writesShard(request, 0, "new") ? "throttle" : undefined);
    await expect(take(limiter, { rpm: 1 }, "new")).rejects.toThrow(RateLimiterUnavailable);
  });
});
