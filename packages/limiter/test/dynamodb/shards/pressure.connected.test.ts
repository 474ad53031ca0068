import { afterAll, beforeAll, expect, it } from "vitest";
import { Limit, RateLimitExceeded, RateLimiterUnavailable } from "zae-limiter";
import type { DynamoOptions } from "zae-limiter/dynamodb";
import type { DynamoTransport } from "../../../src/repository/dynamodb/transport/transport.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script, type Fault, type ProxiedRequest } from "../../support/fault-proxy.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import { call, take } from "../../support/calls.ts";
import {
  slow,
  listSplits,
  getStoredMilli,
  sum,
  useShards,
  type ShardProcess,
} from "../../support/shard-processes.ts";
import { openTransport } from "../../support/transports.ts";
import { writtenKeys } from "../../support/written-items.ts";

const HOUR_S = 3600;

describeWithEngine("the pressure on a bucket", (engine) => {
  const { open, advance, sentBy, items, busySecond, table } = useShards(engine);
  /** For thousands of calls, of which no proxy need know. */
  let direct: DynamoTransport;

  beforeAll(async () => {
    direct = await openTransport("lean", engine());
  });
  afterAll(() => direct.close());

  async function begin(
    home: number,
    limit: Limit,
    options: DynamoOptions = {},
  ): Promise<ShardProcess> {
    const opened = await open(home, options);
    await opened.repository.setSystemDefaults([limit]);
    await take(opened.limiter, { [limit.name]: 1 });
    return opened;
  }

  it(
    "one request a second never splits a bucket, for an hour, and each is a single write [W-01]",
    { timeout: 60_000 },
    async () => {
      const { limiter, repository } = await begin(0, Limit.perSecond("rps", 4), {
        transport: direct,
      });
      const before = repository.getStatistics();
      for (let second = 1; second <= HOUR_S; second += 1) {
        advance(1000);
        await take(limiter, { rps: 1 });
      }
      const { requests, writes, splits } = repository.getStatistics();
      // Besides the writes, the configuration is read again once a minute.
      expect(requests - before.requests).toBeLessThanOrEqual(HOUR_S + HOUR_S / 60);
      expect({ writes: writes - before.writes, splits }).toEqual({ writes: HOUR_S, splits: 0 });
      expect(await items()).toHaveLength(1);
    },
  );

  it("a bucket that was hot for a second is doubled once, and merged once when the load is gone [W-02]", async () => {
    const hot = await begin(0, Limit.perSecond("rps", 1000), { transport: direct });
    await busySecond(0, 2000);
    await take(hot.limiter, { rps: 1 });
    await listSplits(hot, 1);
    for (let second = 1; second <= 900; second += 1) {
      advance(1000);
      await take(hot.limiter, { rps: 1 });
    }
    expect(hot.repository.getStatistics()).toMatchObject({ splits: 1, merges: 1 });
    expect(numbersIn(await items(), "shard_count")).toEqual([1]);
  });

  it("a repository that is closed sends nothing more, for calls or for a doubling that is under way", async () => {
    const transport = new HeldTransport(direct);
    const { repository, limiter } = await begin(0, Limit.perSecond("rps", 1000), { transport });
    const held = transport.hold("TransactWriteItems");
    await busySecond(0, 2000);
    await take(limiter, { rps: 1 });
    await held.arrived;
    const lease = await limiter.acquire(call({ rps: 1 }));
    await repository.close();
    const { requests } = repository.getStatistics();
    held.release();
    await listSplits({ repository, limiter }, 1);
    await expect(take(limiter, { rps: 1 })).rejects.toThrow(/closed/);
    await expect(lease.rollback()).rejects.toThrow(RateLimiterUnavailable);
    expect(repository.getStatistics().requests).toBe(requests);
  });

  it("each shard takes as much as a whole bucket before it is doubled [W-03]", async () => {
    const { repository, limiter } = await begin(3, Limit.perSecond("rps", 1000));
    await repository.splitBucket!("e", "r", { shards: 4 });
    await take(limiter, { rps: 1 });
    for (let second = 1; second <= 10; second += 1) {
      await busySecond(3, 790);
      await take(limiter, { rps: 1 });
    }
    expect(repository.getStatistics().splits).toBe(3);
    await busySecond(3, 800);
    await take(limiter, { rps: 1 });
    await listSplits({ repository, limiter }, 4);
    expect(numbersIn(await items(), "shard_count")[0]).toBe(8);
  });

  it("a parent is doubled like any bucket, and its children's calls spread over its shards [W-13]", async () => {
    const { repository, limiter } = await open(1);
    await repository.setSystemDefaults([slow(1000)]);
    await repository.createEntity("p");
    await repository.createEntity("e", { parentId: "p", cascade: true });
    await take(limiter, { tpm: 1 });
    await busySecond(0, 900, "p");
    await take(limiter, { tpm: 1 });
    await listSplits({ repository, limiter }, 1);
    await take(limiter, { tpm: 1 });
    const sent = await sentBy(async () => {
      for (let calls = 1; calls <= 20; calls += 1) await take(limiter, { tpm: 1 });
    });
    expect(sent).toEqual(Array.from({ length: 20 }, () => "BatchExecuteStatement e#0 p#1"));
    expect(await limiter.available("p", "r")).toEqual({ tpm: 1000 - 23 });
  });

  it.each<Fault>(["lost-request", "lost-reply", "internal", "throttle", "conflict"])(
    "a split that suffers %s leaves no half behind, and goes on where it was [W-14]",
    async (fault) => {
      const { repository, limiter } = await begin(0, slow(100));
      for (const passing of [0, 0, 1, 1]) {
        // As many as one transaction is tried: either the first one fails for good, or the next.
        table.proxy.decide = script("TransactWriteItems", [
          ...Array.from({ length: passing }, () => undefined),
          fault,
          fault,
          fault,
        ]);
        await repository.splitBucket!("e", "r", { shards: 4 }).catch(unlessUnavailable);
        await table.proxy.idle();
        const divisors = numbersIn(await items(), "shard_count");
        expect(sum(divisors.map((divisor) => 1 / divisor!))).toBe(1);
        expect(sum(getStoredMilli(await repository.getBuckets("e"), "tpm"))).toBe(99_000);
      }
      table.proxy.decide = () => undefined;
      expect(await repository.splitBucket!("e", "r", { shards: 8 })).toBe(8);
      await take(limiter, { tpm: 99 });
      await expect(take(limiter, { tpm: 1 })).rejects.toThrow(RateLimitExceeded);
    },
  );

  it("every write unit that a bucket costs is counted, of all processes and purposes [W-19]", async () => {
    const { repository, limiter } = await open(0);
    const other = await open(1);
    await repository.setSystemDefaults([Limit.perSecond("rps", 100)]);
    const before = table.proxy.seen.length;
    await take(limiter, { rps: 100 });
    for (let turn = 1; turn <= 5; turn += 1) {
      advance(100);
      // Each refills what the other has just refilled, so its first write fails.
      for (const process of [other.limiter, limiter]) {
        const settled = await process.acquire(call({ rps: 2 }));
        settled.settle({ rps: 3 });
        await settled.commit();
        await (await process.acquire(call({ rps: 1 }))).rollback();
        advance(10);
      }
    }
    await repository.splitBucket!("e", "r", { shards: 4 });
    advance(1000);
    // No shard holds this alone.
    await take(limiter, { rps: 90 });
    const failed = [repository, other.repository].map(
      (each) => each.getStatistics().failedConditions,
    );
    expect(sum(failed)).toBeGreaterThan(2);
    expect(sum(numbersIn(await items(), "b_wcu_tc"))).toBe(
      sum(table.proxy.seen.slice(before).map(listWriteUnits)),
    );
  });
});

/**
 * What AWS bills for a request on small items, also when its condition fails; engines do not agree
 * on transactions.
 */
function listWriteUnits({ operation, input }: ProxiedRequest): number {
  if (operation === "TransactWriteItems")
    return 2 * (input["TransactItems"] as readonly unknown[]).length;
  return writtenKeys(operation, input).length;
}

function unlessUnavailable(error: unknown): void {
  if (!(error instanceof RateLimiterUnavailable)) throw error;
}
