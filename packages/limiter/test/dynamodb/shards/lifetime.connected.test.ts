import { expect, it, vi } from "vitest";
import {
  Limit,
  NamespaceNotFoundError,
  RateLimiter,
  RateLimitExceeded,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock, seededRandom } from "zae-limiter/testing";
import {
  numberOf,
  stringOf,
  type AttributeMap,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import type { ProxiedRequest } from "../../support/fault-proxy.ts";
import { keysOf, useProxiedTable } from "../../support/proxied-table.ts";
import { take } from "../../support/shard-processes.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";

const START_MS = Date.now();
const rpm = Limit.perMinute("rpm", 60);

describeWithEngine("a bucket with shards", (engine) => {
  const table = useProxiedTable(engine);

  interface Opened {
    readonly repository: DynamoRepository;
    readonly limiter: RateLimiter;
  }

  const open = async (
    clock: ManualClock,
    seed: number,
    options: { readonly refusalMemoryMs?: number } = {},
  ): Promise<Opened> => {
    const repository = await table.open("app", { clock, random: seededRandom(seed), ...options });
    return { repository, limiter: new RateLimiter({ repository }) };
  };

  /** A bucket of `rpm` with so many shards, one token short of full. */
  const openSplit = async (clock: ManualClock, shards: number): Promise<Opened> => {
    const opened = await open(clock, 1);
    await opened.repository.setSystemDefaults([rpm]);
    await take(opened.limiter, { rpm: 1 });
    expect(await opened.repository.splitBucket!("e", "r", { shards })).toBe(shards);
    return opened;
  };

  const bucketItems = async (): Promise<readonly AttributeMap[]> =>
    (await table.items()).filter((item) => item["rf"] !== undefined);
  /** One number of each shard. */
  const stored = async (attribute: string): Promise<readonly number[]> =>
    (await bucketItems())
      .toSorted((left, right) => shardOf(left) - shardOf(right))
      .map((item) => numberOf(item[attribute])!);
  const shardsOf = async ({ repository }: Opened, entityId = "e"): Promise<readonly number[]> =>
    (await repository.getBuckets(entityId)).map(({ shard }) => shard);

  async function setTokens(
    { PK, SK }: AttributeMap,
    attribute: string,
    milli: number,
  ): Promise<void> {
    await table.raw("UpdateItem", {
      Key: { PK, SK },
      UpdateExpression: "SET #tokens = :milli",
      ExpressionAttributeNames: { "#tokens": attribute },
      ExpressionAttributeValues: { ":milli": { N: String(milli) } },
    });
  }

  /** Leaves shards of a bucket that is gone: what a deletion that did not see them would leave. */
  async function orphan(entityId = "e"): Promise<void> {
    for (const item of await bucketItems()) {
      if (stringOf(item["entity_id"]) !== entityId || shardOf(item) === 0) continue;
      await table.raw("PutItem", { Item: { ...item, cr: { S: "gone.0001" } } });
    }
    const { PK, SK } = (await bucketItems()).find(
      (item) => stringOf(item["entity_id"]) === entityId && shardOf(item) === 0,
    )!;
    await table.raw("DeleteItem", { Key: { PK, SK } });
  }

  it("is listed shard by shard, and counts as one for capacity and what is available", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 16);
    const buckets = await opened.repository.getBuckets("e");
    expect(buckets.map(({ shard }) => shard)).toEqual(
      Array.from({ length: 16 }, (_, shard) => shard),
    );
    expect(sum(buckets.map(({ capacityMilli }) => capacityMilli))).toBe(60_000);
    expect(sum(buckets.map(({ tokensMilli }) => tokensMilli))).toBe(59_000);
    expect(await opened.repository.getResourceCapacity("r", "rpm")).toMatchObject({
      totalCapacity: 60,
      totalAvailable: 59,
    });
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 59 });
  });

  it("does without what a deleted one left: neither listed nor counted nor taken from", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await orphan();
    expect(await bucketItems()).toHaveLength(3);
    expect(await shardsOf(opened)).toEqual([]);
    expect(await opened.repository.getResourceCapacity("r", "rpm")).toMatchObject({
      totalCapacity: 0,
      totalAvailable: 0,
    });
    const fresh = await open(clock, 2);
    expect(await fresh.limiter.available("e", "r")).toEqual({ rpm: 60 });
    await take(fresh.limiter, { rpm: 50 });
    expect(await bucketItems()).toHaveLength(4);
    expect(await shardsOf(fresh)).toEqual([0]);
    expect(await fresh.repository.getResourceCapacity("r", "rpm")).toMatchObject({
      totalCapacity: 60,
      totalAvailable: 10,
    });
    await fresh.repository.splitBucket!("e", "r", { shards: 2 });
    expect(await shardsOf(fresh)).toEqual([0, 1]);
    expect(await fresh.limiter.available("e", "r")).toEqual({ rpm: 10 });
    await take(fresh.limiter, { rpm: 10 });
    await expect(take(fresh.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("is deleted with its entity, whatever is left of earlier ones too", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await opened.repository.createEntity("e");
    await orphan();
    await take((await open(clock, 2)).limiter, { rpm: 1 });
    await opened.repository.deleteEntity("e");
    expect(keysOf(await bucketItems())).toEqual([]);
  });

  it("is gone as soon as its shard 0 is, which goes first, so that a deletion that fails halfway leaves a bucket or none", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await opened.repository.createEntity("e");
    const before = table.proxy.seen.length;
    await opened.repository.deleteEntity("e");
    const deletions = table.proxy.seen
      .slice(before)
      .filter(({ operation }) => operation === "BatchWriteItem");
    expect(deletions.map((request) => shardsIn(request))).toEqual([[0], [1, 2, 3]]);
  });

  it("is purged with its namespace, whatever is left of earlier ones too", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await orphan();
    const { namespaceId } = (await opened.repository.listNamespaces()).find(
      ({ name }) => name === "app",
    )!;
    await opened.repository.deleteNamespace("app");
    await expect(take(opened.limiter, { rpm: 1 })).rejects.toThrow(NamespaceNotFoundError);
    await opened.repository.purgeNamespace(namespaceId);
    expect(await bucketItems()).toEqual([]);
  });

  it("begins anew when another process has deleted it, whether what this one remembers was exhausted or in several shards", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await opened.repository.createEntity("e");
    const [spread, exhausted] = [
      await open(clock, 2),
      await open(clock, 3, { refusalMemoryMs: 0 }),
    ];
    await take(spread.limiter, { rpm: 1 });
    await take(opened.limiter, { rpm: 58 });
    await expect(take(exhausted.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
    await opened.repository.deleteEntity("e");
    // More than a share: no shard that it remembers would hold it alone.
    await take(spread.limiter, { rpm: 20 });
    await take(exhausted.limiter, { rpm: 40 });
    expect(await shardsOf(opened)).toEqual([0]);
    for (const { limiter } of [spread, exhausted])
      await expect(take(limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("takes on changed limits shard by shard, exact all the while [W-15]", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await opened.repository.setSystemDefaults([Limit.perMinute("rpm", 120)]);
    // One take rewrites one shard; the others follow when they are touched.
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 59 });
    await take(opened.limiter, { rpm: 1 });
    expect(sum(await stored("b_rpm_cp"))).toBe(120_000 + 3 * 60_000);
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 58 });
    await clock.advance(10_000);
    // Untouched shards have earned at the old rate until they are touched, as an unsplit bucket
    // would have in all.
    const { rpm: available } = await opened.limiter.available("e", "r");
    await take(opened.limiter, { rpm: available! });
    await expect(take(opened.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
    expect(await stored("b_rpm_cp")).toEqual([120_000, 120_000, 120_000, 120_000]);
    await clock.advance(60_000);
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 120 });
    await take(opened.limiter, { rpm: 120 });
  });

  it("is lowered in all its shards: what is above the new limit is gone, in whichever shard it lay", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    await opened.repository.setSystemDefaults([Limit.perMinute("rpm", 8)]);
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 8 });
    await take(opened.limiter, { rpm: 8 });
    await expect(take(opened.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("takes newer limits from its shards also where only all of them together hold a call", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 4);
    const behind = await open(clock, 3);
    await take(behind.limiter, { rpm: 3 });
    await opened.repository.setSystemDefaults([Limit.perMinute("rpm", 120)]);
    await take(opened.limiter, { rpm: 20 });
    expect(await stored("b_rpm_cp")).toContain(120_000);
    // More than a share, so this gathers, by a process that remembers the limits of before.
    await take(behind.limiter, { rpm: 36 });
    expect(await stored("b_rpm_cp")).toEqual([120_000, 120_000, 120_000, 120_000]);
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 0 });
  });

  it("serves cascades from any shard of child and parent, and what goes back returns to both [W-11, W-13]", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await open(clock, 1);
    const { repository, limiter } = opened;
    await repository.setSystemDefaults([rpm]);
    await repository.createEntity("p");
    await repository.setLimits("p", [Limit.perMinute("rpm", 90)]);
    for (const id of ["e", "f"])
      await repository.createEntity(id, { parentId: "p", cascade: true });
    await take(limiter, { rpm: 1 });
    await repository.splitBucket!("e", "r", { shards: 4 });
    await repository.splitBucket!("p", "r", { shards: 8 });
    const lease = await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 40 } });
    expect(await limiter.available("p", "r")).toEqual({ rpm: 49 });
    expect(await limiter.available("e", "r")).toEqual({ rpm: 19 });
    await lease.rollback();
    expect(await limiter.available("p", "r")).toEqual({ rpm: 89 });
    await take(limiter, { rpm: 59 });
    await take(limiter, { rpm: 30 }, "f");
    await expect(take(limiter, { rpm: 1 }, "f")).rejects.toMatchObject({
      primaryViolation: { entityId: "p", limitName: "rpm" },
    });
    expect(await repository.getBuckets("f")).toMatchObject([{ available: 30 }]);
  });

  it("says exactly when a call will fit, whichever shards the tokens come to", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await openSplit(clock, 8);
    await take(opened.limiter, { rpm: 59 });
    const other = await open(clock, 2);
    for (const amount of [1, 3, 60]) {
      const refusal = await take(other.limiter, { rpm: amount }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(RateLimitExceeded);
      const { retryAfterSeconds } = refusal as RateLimitExceeded;
      expect(retryAfterSeconds).toBe(amount);
      await clock.advance(retryAfterSeconds * 1000 - 1);
      await expect(take(other.limiter, { rpm: amount })).rejects.toThrow(RateLimitExceeded);
      await clock.advance(1);
      await take(other.limiter, { rpm: amount });
    }
  });

  it("wakes a waiter as soon as all shards together hold its call", async () => {
    const sleptMs: number[] = [];
    const clock = new (class extends ManualClock {
      override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
        sleptMs.push(ms);
        return super.sleep(ms, signal);
      }
    })(START_MS);
    const opened = await openSplit(clock, 8);
    await take(opened.limiter, { rpm: 59 });
    const granted = opened.limiter.acquire({
      entityId: "e",
      resource: "r",
      consume: { rpm: 5 },
      waitUpToMs: 10_000,
    });
    await vi.waitFor(() => expect(sleptMs).toEqual([5000]));
    await clock.advance(5000);
    await granted;
    expect(sleptMs).toEqual([5000]);
    expect(await opened.limiter.available("e", "r")).toEqual({ rpm: 0 });
  });

  it("grants a call that costs nothing where each shard owes something, and together they owe nothing", async () => {
    const clock = new ManualClock(START_MS);
    const opened = await open(clock, 1);
    const names = ["rpm", "tpm"];
    await opened.repository.setSystemDefaults(names.map((name) => Limit.perMinute(name, 60)));
    await take(opened.limiter, {});
    await opened.repository.splitBucket!("e", "r", { shards: 2 });
    for (const item of await bucketItems())
      await setTokens(item, `b_${names[shardOf(item)]}_tk`, -1000);
    const { limiter } = await open(clock, 2);
    const lease = await limiter.acquire({ entityId: "e", resource: "r", consume: {} });
    expect(await stored("gr")).toEqual([2, 0]);
    await lease.rollback();
    expect(await stored("gr")).toEqual([1, 0]);
    expect([await stored("b_rpm_tk"), await stored("b_tpm_tk")]).toEqual([
      [-1000, 30_000],
      [30_000, -1000],
    ]);
  });

  it("is served from its other shards while shard 0 takes no writes, also by processes that have never seen it", async () => {
    const clock = new SleeplessClock(START_MS);
    await openSplit(clock, 2);
    table.proxy.decide = (request) => (writesShard(request, 0) ? "throttle" : undefined);
    for (const seed of [2, 3, 4, 5]) {
      const { limiter, repository } = await open(clock, seed);
      await take(limiter, { rpm: 1 });
      await take(limiter, { rpm: 1 });
      // What shard 0 holds nobody can have now, and that is not a refusal.
      if (seed === 5)
        await expect(take(limiter, { rpm: 25 })).rejects.toThrow(RateLimiterUnavailable);
      expect(repository.getStatistics().splits).toBe(0);
    }
    expect(await stored("b_rpm_tk")).toEqual([29_500, 21_500]);
  });

  it("is found by a process that tries to begin it unseen, and finds shard 0 throttled", async () => {
    const clock = new SleeplessClock(START_MS);
    await openSplit(clock, 2);
    for (const seed of [2, 3, 4, 5]) {
      const { limiter } = await open(clock, seed);
      await limiter.available("e", "other");
      table.proxy.decide = (request) => (writesShard(request, 0) ? "throughput" : undefined);
      const before = table.proxy.seen.length;
      await (
        await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 }, limits: [rpm] })
      ).commit();
      expect(table.proxy.seen.slice(before).map(({ operation }) => operation)).toContain("PutItem");
      table.proxy.decide = () => undefined;
    }
    expect(await stored("b_rpm_tk")).toEqual([29_500, 25_500]);
  });

  it("that is not there stays unavailable while its shard 0 is throttled", async () => {
    const clock = new SleeplessClock(START_MS);
    const { limiter } = await openSplit(clock, 2);
    table.proxy.decide = (request) => (writesShard(request, 0, "new") ? "throttle" : undefined);
    await expect(take(limiter, { rpm: 1 }, "new")).rejects.toThrow(RateLimiterUnavailable);
  });

  it("answers in memory that nothing is left while its shards' images are fresh", async () => {
    const clock = new ManualClock(START_MS);
    await openSplit(clock, 4);
    const { limiter, repository } = await open(clock, 2, { refusalMemoryMs: 5000 });
    await take(limiter, { rpm: 59 });
    await expect(take(limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
    const before = repository.getStatistics().requests;
    for (let call = 0; call < 1000; call += 1)
      await expect(take(limiter, { rpm: 1 })).rejects.toMatchObject({ retryAfterSeconds: 1 });
    expect(repository.getStatistics().requests).toBe(before);
    expect(repository.getStatistics().refusalsFromMemory).toBeGreaterThanOrEqual(1000);
  });

  it("is split by hand only as far as it can go, and nothing is written otherwise", async () => {
    const clock = new ManualClock(START_MS);
    const { repository, limiter } = await openSplit(clock, 2);
    const before = await bucketItems();
    for (const shards of [0, 3, 1.5, -2, Number.NaN, Infinity, 64])
      await expect(repository.splitBucket!("e", "r", { shards }), String(shards)).rejects.toThrow(
        ValidationError,
      );
    await expect(repository.splitBucket!("nobody", "r", { shards: 2 })).rejects.toThrow(
      /has no bucket for r yet/,
    );
    await expect(repository.splitBucket!("a#b", "r", { shards: 2 })).rejects.toThrow(
      ValidationError,
    );
    await repository.setLimits("small", [Limit.perMinute("rpm", 3)]);
    await take(limiter, { rpm: 1 }, "small");
    await expect(repository.splitBucket!("small", "r", { shards: 4 })).rejects.toThrow(
      /shares below one token/,
    );
    expect(await shardsOf({ repository, limiter }, "small")).toEqual([0]);
    expect((await bucketItems()).filter((item) => stringOf(item["entity_id"]) === "e")).toEqual(
      before,
    );
    expect(await repository.splitBucket!("small", "r", { shards: 2 })).toBe(2);
    expect(await repository.splitBucket!("e", "r", { shards: 1 })).toBe(2);
    expect(repository.getStatistics().splits).toBe(2);
  });

  it("may have as many shards as the process that splits it allows", async () => {
    const clock = new ManualClock(START_MS);
    await openSplit(clock, 2);
    const one = await table.open("app", { clock, maxShards: 1 });
    await expect(one.splitBucket!("e", "r", { shards: 4 })).rejects.toThrow(ValidationError);
    // Those that are there serve it all the same.
    await take(new RateLimiter({ repository: one }), { rpm: 59 });
  });
});

function writesShard({ operation, input }: ProxiedRequest, shard: number, entityId = "e"): boolean {
  const isWrite = /^(?:UpdateItem|PutItem|TransactWriteItems)$/.test(operation);
  return isWrite && JSON.stringify(input).includes(`BUCKET#${entityId}#r#${shard}"`);
}

/** The shards of a batch of deletions, in order. */
function shardsIn({ input }: ProxiedRequest): readonly number[] {
  return [...JSON.stringify(input).matchAll(/BUCKET#e#r#(\d+)"/g)]
    .map(([, shard]) => Number(shard))
    .toSorted((left, right) => left - right);
}

function shardOf(item: AttributeMap): number {
  return Number(stringOf(item["PK"])!.split("#").at(-1));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
