import { expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import { describeWithEngine } from "../../support/engine.ts";
import { between } from "../../support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import {
  toKey,
  listShares,
  useStoredShards,
  getWorth,
  type StoredLimit,
} from "../../support/stored-shards.ts";
import { numberIn } from "../../oracle/stored-bucket.ts";
import type { Limit } from "../../../src/core/limit.ts";
import {
  marshalItem,
  getString,
  unmarshalItem,
  type AttributeMap,
  type Value,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import {
  parseBucketItem,
  limitAttribute,
} from "../../../src/repository/dynamodb/items/bucket-item.ts";
import { keyAttributes } from "../../../src/repository/dynamodb/items/bucket-key.ts";
import type { Transacted } from "../../../src/repository/dynamodb/table/connection.ts";
import { nextHalf } from "../../../src/repository/dynamodb/shards/shard-tree.ts";
import { buildSplit } from "../../../src/repository/dynamodb/shards/split.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const RPM: Limit = { name: "rpm", capacity: 10, refillAmount: 10, refillPeriodSeconds: 60 };
const TPM: Limit = { name: "tpm", capacity: 1000, refillAmount: 500, refillPeriodSeconds: 7 };

/**
 * As many as shares of single tokens, which do not divide evenly from 16 on, can be told apart by.
 */
const MOST_SHARDS = 64;

const SEEDS = seedsFromEnvironment({ usual: 6 });

describeWithEngine("the split of a shard", (engine) => {
  const { connection, put, get, getAll, change } = useStoredShards(engine, NOW_MS);

  async function split(entityId: string, seen: AttributeMap, nowMs = NOW_MS): Promise<Transacted> {
    const image = parseBucketItem(seen);
    return connection().transact(buildSplit({ key: toKey(entityId, image.shard), image, nowMs }));
  }

  it("a split divides balance, debt and hidden limits, and leaves everything else as it was", async () => {
    const stored = [
      { limit: RPM, milli: -3000, remainder: 2 },
      { limit: TPM, milli: 600_001, hidden: true },
    ];
    const entityId = await put(stored, 6, { po: 1, gc: 2, b_rpm_cc: 3000 });
    const before = await get(entityId, 0);
    expect(await split(entityId, before)).toEqual({ applied: true });
    const [kept, moved] = (await getAll(entityId, [0, 1])).map(unmarshalItem) as [
      Record<string, Value>,
      Record<string, Value>,
    ];
    const { ttl: _, ...unchanged } = unmarshalItem(before);
    expect(kept).toEqual({
      ...unchanged,
      b_rpm_tk: -1500,
      b_tpm_tk: 300_001,
      b_rpm_rm: 4,
      b_wcu_tc: 42,
      shard_count: 2,
      sv: NOW_MS,
      sd: NOW_MS,
    });
    expect(moved).toEqual({
      ...keyAttributes(toKey(entityId, 1)),
      b_rpm_tk: -1500,
      b_rpm_tc: 0,
      b_rpm_cp: 10_000,
      b_rpm_ra: 10_000,
      b_rpm_rp: 60_000,
      b_tpm_tk: 300_000,
      b_tpm_tc: 0,
      b_tpm_cp: 1_000_000,
      b_tpm_ra: 500_000,
      b_tpm_rp: 7000,
      b_tpm_hd: 1,
      rf: NOW_MS - 6,
      sv: NOW_MS,
      sd: NOW_MS,
      shard_count: 2,
      gr: 0,
      b_wcu_tc: 2,
      cr: "me.0001",
      po: 1,
    });
  });

  it("both halves get a version above the one seen, also by a clock that is behind", async () => {
    const entityId = await put([{ limit: RPM, milli: 5000 }], 0, { sv: NOW_MS + 900 });
    await split(entityId, await get(entityId, 0));
    for (const item of await getAll(entityId, [0, 1]))
      expect(numberIn(item, "sv")).toBe(BigInt(NOW_MS + 901));
  });

  it("a split replaces what a deleted bucket left at the new half's key", async () => {
    const entityId = await put([{ limit: RPM, milli: 5000 }]);
    const orphan = {
      ...(await get(entityId, 0)),
      ...marshalItem(toKey(entityId, 1).primary),
      cr: { S: "old.0001" },
      b_old_cp: { N: "5" },
    };
    await connection().call("PutItem", { Item: orphan });
    expect(await split(entityId, await get(entityId, 0))).toEqual({ applied: true });
    const half = await get(entityId, 1);
    expect(getString(half["cr"])).toBe("me.0001");
    expect(half).not.toHaveProperty("b_old_cp");
  });

  it("a split lands over takes and give-backs that came in between, and keeps them", async () => {
    for (const deltaMilli of [-4000, -1, 1, 4000]) {
      const entityId = await put([{ limit: RPM, milli: 5000 }]);
      const seen = await get(entityId, 0);
      await change(entityId, 0, { b_rpm_tk: 5000 + deltaMilli });
      const before = getWorth(await getAll(entityId, [0]), "rpm", NOW_MS);
      const isWithin = deltaMilli >= -2500 && deltaMilli <= 2500;
      expect((await split(entityId, seen)).applied).toBe(isWithin);
      expect(getWorth(await getAll(entityId, isWithin ? [0, 1] : [0]), "rpm", NOW_MS)).toEqual(
        before,
      );
    }
  });

  it("a split loses nothing where the halves earn at different rates: what a shard earned while idle fills both", async () => {
    // 63 millitokens a second, of which the halves have 32 and 31, and 62 500 of capacity, of which
    // they have 31 250 each.
    const slow = { name: "slow", capacity: 1000, refillAmount: 1, refillPeriodSeconds: 1 };
    const entityId = await put([{ limit: slow, milli: 0 }], 992_064, { shard_count: 16 });
    expect(getWorth(await getAll(entityId, [0]), "slow", NOW_MS).top).toBe(62_500_000n);
    await split(entityId, await get(entityId, 0));
    const after = await getAll(entityId, [0, 16]);
    expect(62_500_000n - getWorth(after, "slow", NOW_MS).top).toBeLessThanOrEqual(1000n);
    expect(after.map((item) => numberIn(item, "b_slow_tk"))).toEqual([-496n, 496n]);
  });

  it("a split lands over takes from a bucket that is full all the same", async () => {
    const entityId = await put([{ limit: TPM, milli: 990_000 }], 1000);
    const seen = await get(entityId, 0);
    await change(entityId, 0, { b_tpm_tk: 940_000 });
    expect((await split(entityId, seen)).applied).toBe(true);
    expect(getWorth(await getAll(entityId, [0, 1]), "tpm", NOW_MS).top).toBe(1_000_000n * 7000n);
  });

  it.each([
    ["a take beyond what is moved", { b_rpm_tk: 2499 }],
    ["a give-back that would overflow one half", { b_rpm_tk: 7501 }],
    ["a refill", { rf: NOW_MS + 1 }],
    ["a change of limits or another split", { sv: NOW_MS - 49 }],
    ["another divisor", { shard_count: 2 }],
    ["a bucket that was deleted and created again", { cr: "me.0002" }],
    ["a remainder that was cleared within the millisecond", { b_rpm_rm: 0 }],
  ])("a split is refused by %s, changes nothing, and returns the item", async (_, values) => {
    const entityId = await put([{ limit: RPM, milli: 5000, remainder: 3 }]);
    const seen = await get(entityId, 0);
    await change(entityId, 0, values);
    const before = await get(entityId, 0);
    const outcome = await split(entityId, seen);
    expect(outcome).toMatchObject({
      applied: false,
      reasons: [{ code: "ConditionalCheckFailed", item: before }, { code: "None" }],
    });
    expect(await get(entityId, 0)).toEqual(before);
    await expect(get(entityId, 1)).rejects.toThrow("missing");
  });

  it("a split happens once, however often it is tried with one image", async () => {
    const entityId = await put([{ limit: RPM, milli: 5000 }]);
    const seen = await get(entityId, 0);
    const outcomes = await Promise.all(
      [1, 2, 3].map(async () => split(entityId, seen).catch(() => ({ applied: false }))),
    );
    expect(outcomes.filter(({ applied }) => applied)).toHaveLength(1);
    expect(getWorth(await getAll(entityId, [0, 1]), "rpm", NOW_MS)).toEqual({
      top: 5000n * 60_000n,
      over: 60_000n,
    });
  });

  it(
    `a split conserves every limit to the millitoken and never mints, up to 16 shards, over ${SEEDS.count} seeds [W-08]`,
    { timeout: 120_000 },
    async () => {
      let refused = 0;
      for (const seed of getEach(SEEDS)) refused += await splitsUntil16(seed);
      expect(refused).toBeGreaterThan(0);
    },
  );

  /**
   * Splits random shards in random states and compares what all are worth before and after. Tells
   * how many splits were refused.
   */
  async function splitsUntil16(seed: number): Promise<number> {
    const random = seededRandom(seed);
    const int = (least: number, most: number): number => between(random, least, most);
    const size = (): number => (random() < 0.5 ? int(1, 40) : int(1, 100_000));
    const limits = Array.from({ length: int(1, 3) }, (_, index): StoredLimit => {
      const limit = {
        name: `l${index}`,
        capacity: size(),
        refillAmount: size(),
        refillPeriodSeconds: int(1, 90),
      };
      return { limit, milli: limit.capacity * 1000, hidden: random() < 0.3 };
    });
    const entityId = await put(limits);
    const items = new Map([[0, await get(entityId, 0)]]);
    let nowMs = NOW_MS;
    let refused = 0;
    for (let round = 0; items.size < 16 && round < 100; round += 1) {
      nowMs += int(0, 5000);
      const shard = [...items.keys()][int(0, items.size - 1)]!;
      const { bucket, divisor } = parseBucketItem(items.get(shard)!);
      if (divisor === MOST_SHARDS) continue;
      // Any state that a shard can be in: empty, full, above its ceiling, in debt, idle for any
      // time, with any remainder.
      const state: Record<string, Value> = { rf: nowMs - int(0, random() < 0.3 ? 100_000 : 500) };
      const balances = bucket.limits.map(({ capacityMilli, period, limit }) => {
        const milli = int(-1, 1) * int(0, capacityMilli) + (random() < 0.2 ? int(0, 3000) : 0);
        state[limitAttribute(limit.name, "tk")] = milli;
        state[limitAttribute(limit.name, "rm")] = random() < 0.5 ? 0 : int(0, period - 1);
        return milli;
      });
      await change(entityId, shard, state);
      const seen = await get(entityId, shard);
      // Half of the time a take or give-back comes before the split lands.
      if (random() < 0.5) {
        const index = int(0, balances.length - 1);
        const { capacityMilli, limit } = bucket.limits[index]!;
        await change(entityId, shard, {
          [limitAttribute(limit.name, "tk")]: balances[index]! + int(-capacityMilli, capacityMilli),
        });
      }
      items.set(shard, await get(entityId, shard));
      const before = [...items.values()];
      const half = nextHalf({ shard, divisor }).shard;
      if ((await split(entityId, seen, nowMs)).applied) items.set(half, await get(entityId, half));
      else refused += 1;
      items.set(shard, await get(entityId, shard));
      const after = [...items.values()];
      expect(listShares(after, 1000n)).toBe(1000n);
      for (const { limit } of limits)
        for (const atMs of [nowMs, nowMs - 700, nowMs + 1, nowMs + 40_000]) {
          const [had, has] = [
            getWorth(before, limit.name, atMs),
            getWorth(after, limit.name, atMs),
          ];
          expect(has.over).toBe(had.over);
          expect(has.top, `seed ${seed} mints at ${atMs - nowMs}`).toBeLessThanOrEqual(had.top);
          if (atMs === nowMs)
            expect(had.top - has.top, `seed ${seed} loses`).toBeLessThanOrEqual(had.over);
        }
    }
    expect(items.size, `seed ${seed}`).toBe(16);
    return refused;
  }
});
