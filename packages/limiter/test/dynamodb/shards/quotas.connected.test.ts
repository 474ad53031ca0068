import { expect, it } from "vitest";
import { Limit, RateLimitExceeded } from "zae-limiter";
import { call, take, takeWhatFits } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { getStoredMilli, sum, useShards } from "../../support/shard-processes.ts";
import { toKey, useStoredShards, type StoredLimit } from "../../support/stored-shards.ts";
import type { SupportedLimit } from "../../../src/core/supported-limits.ts";
import { parseBucketItem } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import {
  unmarshalItem,
  type Value,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { buildMerge, type MergeObstacle } from "../../../src/repository/dynamodb/shards/merge.ts";
import { buildSplit } from "../../../src/repository/dynamodb/shards/split.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.UTC(2026, 0, 4, 12, 30);
const END_MS = NOW_MS + HOUR_MS / 2;
const TPH = Limit.quota("tph", 11, { every: "hour", zone: "UTC" });

/** One limit of a stored shard, with the end of its window. */
const quota = (milli: number, endMs: number, limit: SupportedLimit = TPH): StoredLimit => ({
  limit,
  milli,
  remainder: endMs,
});

describeWithEngine("the shards of a quota", (engine) => {
  const { connection, newEntity, put, putShard, get, getAll, change } = useStoredShards(
    engine,
    NOW_MS,
  );

  async function pick(entityId: string, shards: readonly number[]): Promise<readonly unknown[]> {
    const items = await getAll(entityId, shards);
    return items.map((item) => {
      const { b_tph_tk: milli, b_tph_we: endMs } = unmarshalItem(item);
      return [milli, endMs];
    });
  }

  async function split(
    stored: StoredLimit,
    meanwhile: Readonly<Record<string, Value>> = {},
  ): Promise<readonly unknown[]> {
    const entityId = await put([stored]);
    const image = parseBucketItem(await get(entityId, 0));
    if (Object.keys(meanwhile).length > 0) await change(entityId, 0, meanwhile);
    const writes = buildSplit({ key: toKey(entityId, 0), image, nowMs: NOW_MS });
    const { applied } = await connection().transact(writes);
    return applied ? pick(entityId, [0, 1]) : [];
  }

  it("are in one window, and divide what is left of it, or what is owed", async () => {
    const halves = (kept: number, moved: number, endMs: number | undefined = END_MS): unknown => [
      [kept, endMs],
      [moved, endMs],
    ];
    expect(await split(quota(7001, END_MS))).toEqual(halves(3501, 3500));
    expect(await split(quota(-7000, END_MS))).toEqual(halves(-3500, -3500));
    expect(await split(quota(7000, NOW_MS - 1))).toEqual(halves(3500, 3500, NOW_MS - 1));
    const unopened = await split(quota(11_000, 0));
    expect(unopened).toEqual([
      [5500, undefined],
      [5500, undefined],
    ]);
  });

  it("are split while others take, but not beyond what is left nor from another window", async () => {
    const stored = quota(7000, END_MS);
    expect(await split(stored, { b_tph_tk: 3500 })).toEqual([
      [0, END_MS],
      [3500, END_MS],
    ]);
    expect(await split(stored, { b_tph_tk: 3499 })).toEqual([]);
    expect(await split(stored, { b_tph_we: END_MS + HOUR_MS })).toEqual([]);
    expect(await split(quota(11_000, 0), { b_tph_we: END_MS })).toEqual([]);
  });

  async function merge(
    halves: readonly [StoredLimit, StoredLimit],
    options: {
      readonly nowMs?: number;
      readonly ttlMultiplier?: number;
      readonly configured?: readonly SupportedLimit[];
    } = {},
  ): Promise<Record<string, Value> | MergeObstacle> {
    const entityId = newEntity();
    for (const [shard, stored] of halves.entries())
      await putShard(entityId, shard, [stored], {
        refilledAtMs: NOW_MS,
        further: { shard_count: 2 },
      });
    const [kept, gone] = (await getAll(entityId, [0, 1])).map((item, shard) => ({
      key: toKey(entityId, shard),
      item,
      image: parseBucketItem(item),
    }));
    const common = { configured: undefined, nowMs: NOW_MS, ttlMultiplier: 0, ...options };
    const writes = buildMerge({ kept: kept!, gone: gone!, ...common });
    if (typeof writes === "string") return writes;
    expect(await connection().transact(writes)).toEqual({ applied: true });
    return unmarshalItem(await get(entityId, 0));
  }

  it("are merged into the later window, to which a half that is over brings its share", async () => {
    const over = quota(2000, END_MS - HOUR_MS);
    const open = quota(1000, END_MS);
    expect(await merge([open, quota(700, END_MS)])).toMatchObject({
      b_tph_tk: 1700,
      b_tph_we: END_MS,
    });
    for (const halves of [
      [open, over],
      [over, open],
    ] as const)
      expect(await merge(halves)).toMatchObject({ b_tph_tk: 6500, b_tph_we: END_MS });
    const unopened = await merge([quota(5500, 0), quota(5500, 0)]);
    expect(unopened).toMatchObject({ b_tph_tk: 11_000 });
    expect(unopened).not.toHaveProperty("b_tph_we");
    const ahead = quota(1000, END_MS + HOUR_MS);
    expect(await merge([open, ahead])).toBe("different windows open");
    expect(await merge([open, ahead], { nowMs: END_MS })).toMatchObject({ b_tph_tk: 6500 });
  });

  it("are brought under one definition before they are merged", async () => {
    const rate = { limit: Limit.perHour("tph", 11), milli: 700, remainder: 3 };
    const perDay = Limit.quota("tph", 20, { every: "day", zone: "UTC" });
    const endMs = Date.UTC(2026, 0, 5);
    const configured = [perDay];
    const merged = await merge([rate, quota(1000, endMs, perDay)], { configured });
    expect(merged).toMatchObject({ b_tph_tk: 1700, b_tph_we: endMs, b_tph_kd: "/day@UTC" });
    for (const field of ["ra", "rp", "rm"]) expect(merged).not.toHaveProperty(`b_tph_${field}`);
    // Five of the old quota's share were used, and stay used.
    expect(
      await merge([quota(500, END_MS), quota(1000, endMs, perDay)], { configured }),
    ).toMatchObject({ b_tph_tk: 6000, b_tph_we: endMs, b_tph_cp: 20_000 });
    expect(
      await merge([quota(1000, endMs, perDay), rate], { configured: [Limit.perHour("tph", 11)] }),
    ).not.toHaveProperty("b_tph_kd");
  });

  it("may be forgotten as a whole after the end of the next window, unless they carry", async () => {
    const halves = [quota(500, END_MS), quota(500, END_MS)] as const;
    expect(await merge(halves, { ttlMultiplier: 7 })).toMatchObject({
      ttl: (END_MS + HOUR_MS) / 1000,
    });
    const carrying = { ...TPH, carry: { debt: true } };
    const half = quota(500, END_MS, carrying);
    expect(await merge([half, half], { ttlMultiplier: 7 })).not.toHaveProperty("ttl");
  });
});

describeWithEngine("a bucket with a quota and several shards", (engine) => {
  const { open, openSplit, advance, clock, items, table } = useShards(engine);
  const HOURLY = Limit.quota("tph", 64, { every: "hour", zone: "UTC" });
  const toEnd = (beforeMs: number): void => advance(HOUR_MS - (clock.now() % HOUR_MS) - beforeMs);

  it("grants its capacity in each window, and shows when that ends", async () => {
    const process = await openSplit(HOURLY, { shards: 4, home: 1 });
    const other = await open(2);
    for (let hour = 0; hour < 3; hour += 1) {
      await take(process.limiter, { tph: 40 });
      expect(await takeWhatFits(other.limiter, { tph: 1 })).toBe(24);
      const refusal = await take(other.limiter, { tph: 30 }).catch((error: unknown) => error);
      const endMs = Math.ceil((clock.now() + 1) / HOUR_MS) * HOUR_MS;
      expect(refusal).toBeInstanceOf(RateLimitExceeded);
      expect((refusal as RateLimitExceeded).statuses[0]).toMatchObject({
        available: 0,
        resetsAt: new Date(endMs),
        retryAfterSeconds: (endMs - clock.now()) / 1000,
      });
      toEnd(1);
      await expect(take(other.limiter, { tph: 1 })).rejects.toThrow(RateLimitExceeded);
      advance(1);
    }
  });

  it("gives back to the window that was taken from, over all that became of its shards", async () => {
    const { limiter, repository } = await openSplit(HOURLY, { shards: 2, home: 0 });
    const held = async (): Promise<number> =>
      sum(getStoredMilli(await repository.getBuckets("e"), "tph"));
    const [first, second] = [
      await limiter.acquire(call({ tph: 50 })),
      await limiter.acquire(call({ tph: 8 })),
    ];
    await repository.splitBucket!("e", "r", { shards: 8 });
    await first.rollback();
    expect(await held()).toBe(56_000);
    toEnd(0);
    await take(limiter, { tph: 60 });
    await repository.mergeBucket!("e", "r", { shards: 1 });
    await second.rollback();
    expect(await held()).toBe(4000);
    expect((await repository.getBuckets("e"))[0]).toMatchObject({ totalConsumedMilli: 60_000 });
  });

  it("owes over all shards what one cannot pay, until the window ends", async () => {
    const { limiter, repository } = await openSplit(HOURLY, { shards: 4, home: 0 });
    await limiter.charge({ entityId: "e", resource: "r", amounts: { tph: 100 } });
    expect(getStoredMilli(await repository.getBuckets("e"), "tph")).toEqual([
      -9000, -9000, -9000, -9000,
    ]);
    await expect(take(limiter, { tph: 0 })).rejects.toThrow(RateLimitExceeded);
    toEnd(0);
    expect(await takeWhatFits(limiter, { tph: 16 })).toBe(64);
  });

  it("is not merged while its shards have different windows open, and is at the next look", async () => {
    const { limiter, repository } = await openSplit(HOURLY, { shards: 2, home: 0 });
    await take(limiter, { tph: 40 });
    const merge = (): Promise<number> => repository.mergeBucket!("e", "r", { shards: 1 });
    const { PK, SK } = (await items())[1]!;
    // Another process, whose clock is ahead, has opened the next window.
    await table.raw("UpdateItem", {
      Key: { PK, SK },
      UpdateExpression: "ADD b_tph_we :hour",
      ExpressionAttributeValues: { ":hour": { N: String(HOUR_MS) } },
    });
    expect(await merge()).toBe(2);
    toEnd(0);
    expect(await merge()).toBe(1);
  });
});
