import { expect, it } from "vitest";
import { Limit, RateLimitExceeded, RateLimiterUnavailable } from "zae-limiter";
import { type AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { minus, type Fraction } from "../../oracle/fraction.ts";
import { bucketValue, readBucket } from "../../oracle/stored-bucket.ts";
import { grant } from "../../support/bucket-process.ts";
import { call, take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { onWrites } from "../../support/fault-proxy.ts";
import { HeldTransport } from "../../support/held-transport.ts";
import { numbersIn } from "../../support/proxied-table.ts";
import { CAPACITY, request, RESOURCE, useShardBuckets } from "../../support/shard-buckets.ts";
import { slow, listSplits, getStoredMilli, useShards } from "../../support/shard-processes.ts";
import { openTransport } from "../../support/transports.ts";

describeWithEngine("what the shards of a bucket hold", (engine) => {
  const { open, openSplit, advance, items, busySecond, table } = useShards(engine);

  it("a shard never expires, and one that is missing is made by a process whose home it is [W-05]", async () => {
    const process = await openSplit(Limit.perMinute("rpm", 100), { shards: 2, home: 1 });
    advance(2000);
    const other = await open(0);
    await (await other.limiter.acquire(call({ rpm: 1 }))).rollback();
    await busySecond(0, 900);
    await take(other.limiter, { rpm: 1 });
    await listSplits(other, 1);
    // Shard 0 was doubled, shard 1 was not: there is no shard 3 yet.
    expect(numbersIn(await items(), "shard_count")).toEqual([4, 2, 4]);
    advance(366 * 86_400_000);
    const late = await open(3);
    await take(late.limiter, { rpm: 1 });
    await take(late.limiter, { rpm: 1 });
    const stored = await items();
    expect(numbersIn(stored, "shard_count")).toEqual([4, 4, 4, 4]);
    for (const item of stored) expect(item).not.toHaveProperty("ttl");
    expect(getStoredMilli(await late.repository.getBuckets("e"), "rpm")[3]).toBe(23_000);
    await take(process.limiter, { rpm: 98 });
    await expect(take(process.limiter, { rpm: 1 })).rejects.toThrow(RateLimitExceeded);
  });

  it("a lease that is rolled back or settled for less goes back to the shards it came from [W-12]", async () => {
    const { limiter, repository } = await openSplit(slow(40), { shards: 4, home: 1 });
    const state = async (): Promise<unknown> =>
      (await repository.getBuckets("e")).map(({ tokensMilli, totalConsumedMilli }) => [
        tokensMilli,
        totalConsumedMilli,
      ]);
    await take(limiter, { tpm: 3 });
    const before = await state();
    // One shard holds the first, none holds the second.
    for (const tpm of [4, 30]) {
      await (await limiter.acquire(call({ tpm }))).rollback();
      expect(await state()).toEqual(before);
      const lease = await limiter.acquire(call({ tpm }));
      lease.settle({ tpm: 0 });
      await lease.commit();
      expect(await state()).toEqual(before);
    }
  });

  it("tokens taken during a split go back to the shards that own it by then [W-12]", async () => {
    const transport = new HeldTransport(await openTransport("SDK's", table.proxy));
    const { limiter, repository } = await open(0, { transport });
    const other = await open(1);
    await repository.setSystemDefaults([slow(100)]);
    const before = await limiter.acquire(call({ tpm: 20 }));
    const held = transport.hold("TransactWriteItems");
    const splitting = repository.splitBucket!("e", "r", { shards: 2 });
    await held.arrived;
    const between = await other.limiter.acquire(call({ tpm: 30 }));
    held.release();
    await splitting;
    // Tokens taken in between are missing in one half only: in equal parts they would not fit the
    // other.
    expect(getStoredMilli(await repository.getBuckets("e"), "tpm")).toEqual([10_000, 40_000]);
    await repository.splitBucket!("e", "r", { shards: 8 });
    await between.rollback();
    await before.rollback();
    expect(getStoredMilli(await repository.getBuckets("e"), "tpm")).toEqual(
      Array.from({ length: 8 }, () => 12_500),
    );
    transport.close();
  });

  it("a cascade whose other side could not be written goes back to the shards it came from [W-12]", async () => {
    const { limiter, repository } = await openSplit(slow(40), { shards: 4, home: 2 });
    await repository.createEntity("p");
    await repository.createEntity("e", { parentId: "p", cascade: true });
    await take(limiter, { tpm: 1 });
    const before = getStoredMilli(await repository.getBuckets("e"), "tpm");
    table.proxy.decide = onWrites(({ PK }) => PK.S.endsWith("/BUCKET#p#r#0"), "internal");
    await expect(take(limiter, { tpm: 5 })).rejects.toThrow(RateLimiterUnavailable);
    expect(getStoredMilli(await repository.getBuckets("e"), "tpm")).toEqual(before);
  });
});

describeWithEngine("what the shards of a bucket hold, compared with an unsplit one", (engine) => {
  const { clock, newEntity, open, items, split } = useShardBuckets(engine);

  it("idle shards fill up together to the whole, and no further, however long they are idle [W-04, W-05]", async () => {
    const { entityId, maker } = await split(8);
    await grant(maker, request(entityId, CAPACITY));
    await clock.advance(15_000);
    expect(await maker.buckets.read(request(entityId, 0))).toMatchObject([
      { available: CAPACITY / 4 },
    ]);
    await clock.advance(30 * 24 * 3_600_000);
    for (const item of await items(entityId, 8)) expect(item).not.toHaveProperty("ttl");
    const lone = open(6);
    for (let taken = 0; taken < CAPACITY; taken += 1) await grant(lone, request(entityId, 1));
    expect(await lone.buckets.consume(request(entityId, 1))).toMatchObject({ granted: false });
  });

  it.each([2, 8, 32])(
    "%i shards earn back a debt exactly as an unsplit bucket would",
    async (shards) => {
      const limits = [
        Limit.perMinute("rpm", CAPACITY),
        { name: "tpm", capacity: 1000, refillAmount: 700, refillPeriodSeconds: 13 },
      ];
      const process = open(1, { limits });
      const [whole, divided] = [newEntity(), newEntity()];
      for (const entityId of [whole, divided]) {
        const receipt = await grant(process, request(entityId, 1, { tpm: 1 }));
        await process.buckets.settle(receipt, [
          { resource: RESOURCE, amounts: { rpm: 2000, tpm: 5000 } },
        ]);
      }
      await clock.advance(777);
      await process.buckets.split(divided, RESOURCE, shards);
      const missing = async (): Promise<readonly Fraction[]> =>
        Promise.all(
          ["rpm", "tpm"].map(async (name) => {
            const [one, many] = await Promise.all([items(whole, 1), items(divided, shards)]);
            const value = (found: readonly AttributeMap[]): Fraction =>
              bucketValue(readBucket(found), name, clock.now());
            return minus(value(one), value(many));
          }),
        );
      for (const pauseMs of [0, 1, 998, 20_000, 37_224, 20_000, 3, 60_000]) {
        await clock.advance(pauseMs);
        for (const { top, over } of await missing()) {
          expect(top).toBeGreaterThanOrEqual(0n);
          expect(top).toBeLessThanOrEqual(over * BigInt(shards));
        }
        const [one, many] = await Promise.all(
          [whole, divided].map(async (entityId) =>
            process.buckets.consume(request(entityId, 1, { tpm: 1 })),
          ),
        );
        expect(many!.granted).toBe(one!.granted);
        for (const [outcome, entityId] of [
          [one!, whole],
          [many!, divided],
        ] as const)
          if (outcome.granted) await process.buckets.giveBack(outcome.receipt);
          else
            expect(
              outcome.statuses.every(
                ({ available, entityId: owner }) => available < 1 && owner === entityId,
              ),
            ).toBe(true);
      }
    },
  );
});
