import { expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import { fraction, isLess, minus } from "../../oracle/fraction.ts";
import { bucketValue, getConsumed, listGrants, readBucket } from "../../oracle/stored-bucket.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { between } from "../../support/seeded/random-choice.ts";
import { toKey, useStoredShards, type StoredLimit } from "../../support/stored-shards.ts";
import type { RateLimit } from "../../../src/core/limit-kinds.ts";
import {
  unmarshalItem,
  type AttributeMap,
  type Value,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { parseBucketItem } from "../../../src/repository/dynamodb/items/bucket-item.ts";
import type { Transacted } from "../../../src/repository/dynamodb/table/connection.ts";
import { buildMerge } from "../../../src/repository/dynamodb/shards/merge.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);
const RPM: RateLimit = { name: "rpm", capacity: 10, refillAmount: 10, refillPeriodSeconds: 60 };
const TPM: RateLimit = { name: "tpm", capacity: 1000, refillAmount: 500, refillPeriodSeconds: 7 };
const OLD: RateLimit = { name: "old", capacity: 8, refillAmount: 3, refillPeriodSeconds: 11 };

interface Halves {
  readonly kept: readonly StoredLimit[];
  readonly gone: readonly StoredLimit[];
  /** The half that stays, and half the divisor of both. */
  readonly shard?: number;
  readonly divisor?: number;
  readonly idleMs?: readonly [number, number];
  readonly further?: readonly [
    Readonly<Record<string, Value | undefined>>,
    Readonly<Record<string, Value | undefined>>,
  ];
}

interface PutHalves {
  readonly entityId: string;
  readonly shards: readonly [number, number];
  readonly seen: readonly [AttributeMap, AttributeMap];
}

describeWithEngine("the merge of two shards", (engine) => {
  const { connection, newEntity, putShard, get, getAll, change } = useStoredShards(engine, NOW_MS);

  async function putHalves({ kept, gone, ...options }: Halves): Promise<PutHalves> {
    const { shard = 0, divisor = 1, idleMs = [0, 0], further = [{}, {}] } = options;
    const entityId = newEntity();
    const shards = [shard, shard + divisor] as const;
    for (const [index, stored] of [kept, gone].entries())
      await putShard(entityId, shards[index]!, stored, {
        refilledAtMs: NOW_MS - idleMs[index]!,
        further: { shard_count: 2 * divisor, ...further[index] },
      });
    const [left, right] = await getAll(entityId, shards);
    return { entityId, shards, seen: [left!, right!] };
  }

  async function merge(
    { entityId, shards, seen }: PutHalves,
    options: {
      readonly nowMs?: number;
      readonly configured?: readonly RateLimit[];
      readonly ttlMultiplier?: number;
    } = {},
  ): Promise<Transacted> {
    const [kept, gone] = seen.map((item, index) => ({
      key: toKey(entityId, shards[index]!),
      item,
      image: parseBucketItem(item),
    }));
    const writes = buildMerge({
      kept: kept!,
      gone: gone!,
      configured: undefined,
      nowMs: NOW_MS,
      ttlMultiplier: 0,
      ...options,
    });
    if (typeof writes === "string") throw new Error(writes);
    return connection().transact(writes);
  }

  it("a merge adds balances, debt, fractions, totals and write units, and keeps everything else", async () => {
    const cascaded = { gc: 1, b_rpm_cc: 1000, b_ipd_tc: 9, b_ipd_cc: 7 };
    const halves = await putHalves({
      // Shares of 5 000 each, at a millitoken in 12 ms; whole: one in 6 ms.
      kept: [
        { limit: RPM, milli: -3000, remainder: 7 },
        { limit: TPM, milli: 100_000 },
      ],
      gone: [
        { limit: RPM, milli: 1000, remainder: 6 },
        { limit: TPM, milli: 400_000 },
      ],
      further: [
        { o1: "him.0003", foreign: "stays", b_rpm_cc: 2000 },
        { o0: "her.0001", sv: NOW_MS + 5, gr: 4, b_wcu_tc: 11, ...cascaded },
      ],
    });
    expect(await merge(halves)).toEqual({ applied: true });
    const [before] = halves.seen;
    expect(unmarshalItem(await get(halves.entityId, 0))).toEqual({
      ...unmarshalItem(before),
      // 7/12 and 6/12 of a millitoken are a whole one and 1/12, of which 0/6 is left.
      b_rpm_tk: -1999,
      b_tpm_tk: 500_000,
      b_rpm_tc: 14_000,
      b_tpm_tc: 14_000,
      b_rpm_cc: 3000,
      b_ipd_tc: 9,
      b_ipd_cc: 7,
      gr: 7,
      gc: 1,
      b_wcu_tc: 40 + 11 + 4,
      shard_count: 1,
      sv: NOW_MS + 6,
      sd: NOW_MS + 6,
      b_rpm_rm: undefined,
      mi: [`1:${NOW_MS + 5}:her.0001`],
      foreign: "stays",
    });
    await expect(get(halves.entityId, 1)).rejects.toThrow("missing");
  });

  it("a limit that one half lacks is full there, and one with other parameters is converted", async () => {
    const other = { ...OLD, capacity: 4 };
    const halves = await putHalves({
      kept: [
        { limit: RPM, milli: 5000 },
        { limit: TPM, milli: 7000, hidden: true },
        { limit: other, milli: 500, hidden: true },
      ],
      gone: [
        { limit: RPM, milli: 4000 },
        { limit: OLD, milli: 3900, hidden: true },
        { limit: { ...TPM, name: "gone" }, milli: -1000, hidden: true },
      ],
    });
    expect(await merge(halves)).toEqual({ applied: true });
    expect(unmarshalItem(await get(halves.entityId, 0))).toMatchObject({
      b_rpm_tk: 9000,
      b_tpm_tk: 507_000,
      b_tpm_hd: 1,
      // Half of the new capacity is 2 000: what the half that goes had above it is cut.
      b_old_tk: 2500,
      b_old_cp: 4000,
      b_old_hd: 1,
      b_gone_tk: 499_000,
      b_gone_cp: 1_000_000,
      b_gone_ra: 500_000,
      b_gone_rp: 7000,
      b_gone_hd: 1,
      b_gone_tc: 7000,
    });
  });

  it("halves that show different limits adopt the configured ones, or else those of the newer half", async () => {
    const wide = { ...RPM, capacity: 20 };
    const kept = [{ limit: RPM, milli: 5000 }];
    const gone = [
      { limit: wide, milli: 9000 },
      { limit: TPM, milli: 1000 },
    ];
    const further = [{ po: 1 }, { sv: NOW_MS - 40 }] as const;
    const configured = await putHalves({ kept, gone, further });
    await merge(configured, { configured: [RPM] });
    const item = unmarshalItem(await get(configured.entityId, 0));
    expect(item).toMatchObject({ b_rpm_tk: 10_000, b_rpm_cp: 10_000, b_tpm_tk: 501_000 });
    expect(item).toMatchObject({ b_tpm_hd: 1 });
    expect(item).not.toHaveProperty("po");
    const unknown = await putHalves({ kept, gone, further });
    await merge(unknown);
    expect(unmarshalItem(await get(unknown.entityId, 0))).toMatchObject({
      b_rpm_tk: 14_000,
      b_rpm_cp: 20_000,
      b_tpm_tk: 501_000,
    });
    expect(await get(unknown.entityId, 0)).not.toHaveProperty("b_tpm_hd");
  });

  it("the merged version is above both, by whatever clock", async () => {
    for (const [mine, others, merged] of [
      [NOW_MS - 9, NOW_MS - 5, NOW_MS],
      [NOW_MS + 900, NOW_MS - 5, NOW_MS + 901],
      [NOW_MS - 9, NOW_MS + 700, NOW_MS + 701],
    ] as const) {
      const stored = [{ limit: RPM, milli: 1000 }];
      const halves = await putHalves({
        kept: stored,
        gone: stored,
        further: [{ sv: mine }, { sv: others }],
      });
      await merge(halves);
      expect(unmarshalItem(await get(halves.entityId, 0))).toMatchObject({ sv: merged });
    }
  });

  it.each([
    ["another version", { sv: NOW_MS - 49 }],
    ["another bucket", { cr: "me.0002" }],
    ["any write", { b_wcu_tc: 41 }],
  ])("a merge is refused by %s on either half, and changes nothing", async (_, values) => {
    for (const changed of [0, 1] as const) {
      const stored = [{ limit: RPM, milli: 1000 }];
      const halves = await putHalves({ kept: stored, gone: stored, shard: 1, divisor: 2 });
      await change(halves.entityId, halves.shards[changed], values);
      const before = await getAll(halves.entityId, halves.shards);
      expect(await merge(halves)).toMatchObject({ applied: false });
      expect(await getAll(halves.entityId, halves.shards)).toEqual(before);
    }
  });

  it("a merge keeps totals beyond the safe range exactly, and refuses debts beyond it", async () => {
    const stored = [{ limit: RPM, milli: 1000 }];
    const halves = await putHalves({
      kept: stored,
      gone: stored,
      further: [
        { b_rpm_tc: 9_007_199_254_740_993n, b_rpm_cc: 9_007_199_254_740_991n },
        { b_rpm_tc: 9_007_199_254_740_995n, b_rpm_cc: 9_007_199_254_740_993n },
      ],
    });
    await merge(halves);
    expect(unmarshalItem(await get(halves.entityId, 0))).toMatchObject({
      b_rpm_tc: 18_014_398_509_481_988n,
      b_rpm_cc: 18_014_398_509_481_984n,
    });
    const deep = await putHalves({
      kept: [{ limit: RPM, milli: Number.MIN_SAFE_INTEGER }],
      gone: [{ limit: RPM, milli: -1000 }],
    });
    await expect(merge(deep)).rejects.toThrow("balance not exact");
  });

  it.each([1, 11, 21])(
    "a merge loses less than a unit of the remainder and never mints, whatever the halves hold (ten seeds from %i)",
    async (first) => {
      for (let seed = first; seed < first + 10; seed += 1) await listMerges(seed);
    },
  );

  /** Merges halves in random states, and compares what they are worth before and after. */
  async function listMerges(seed: number): Promise<void> {
    const random = seededRandom(seed);
    const int = (least: number, most: number): number => between(random, least, most);
    const size = (): number => (random() < 0.5 ? int(1, 40) : int(1, 100_000));
    for (let round = 0; round < 5; round += 1) {
      const limits = Array.from({ length: int(1, 3) }, (_, index) => ({
        limit: {
          name: `l${index}`,
          capacity: size(),
          refillAmount: size(),
          refillPeriodSeconds: int(1, 90),
        },
        hidden: random() < 0.3,
      }));
      const divisor = 2 ** int(0, 4);
      const shard = int(0, divisor - 1);
      const half = (): readonly StoredLimit[] =>
        limits.map(({ limit, hidden }) => {
          const share = Math.max(1, Math.floor((limit.capacity * 1000) / (2 * divisor)));
          const milli = int(-1, 1) * int(0, share) + (random() < 0.2 ? int(0, 3000) : 0);
          return { limit, hidden, milli, remainder: random() < 0.5 ? 0 : int(0, 900) };
        });
      const halves = await putHalves({
        kept: half(),
        gone: half(),
        shard,
        divisor,
        idleMs: [int(-900, random() < 0.3 ? 100_000 : 500), int(-900, 500)],
      });
      const skewMs = int(-900, 900);
      const before = readBucket(halves.seen);
      expect(await merge(halves, { nowMs: NOW_MS + skewMs })).toEqual({ applied: true });
      const after = readBucket([await get(halves.entityId, shard)]);
      expect(after.get(shard)!.divisor).toBe(divisor);
      expect(listGrants(after)).toBe(listGrants(before));
      const commonMs = after.get(shard)!.stampMs;
      expect(commonMs).toBe(
        Math.max(NOW_MS + skewMs, ...[...before.values()].map(({ stampMs }) => stampMs)),
      );
      for (const { limit } of limits) {
        expect(getConsumed(after, limit.name)).toBe(getConsumed(before, limit.name));
        // Later, a whole bucket may earn where one of the halves would have been full.
        const had = bucketValue(before, limit.name, commonMs);
        const has = bucketValue(after, limit.name, commonMs);
        expect(isLess(had, has), `seed ${seed} mints`).toBe(false);
        const unit = fraction(1n, after.get(shard)!.limits.get(limit.name)!.terms.grain);
        expect(isLess(minus(had, has), unit), `seed ${seed} loses`).toBe(true);
      }
    }
  }
});
