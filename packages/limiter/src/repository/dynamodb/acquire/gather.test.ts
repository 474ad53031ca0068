import { describe, expect, it } from "vitest";
import { update } from "../../../../test/support/expression-evaluator.ts";
import { inMilli } from "../../../core/amounts.ts";
import { Limit } from "../../../core/limit.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import {
  marshalItem,
  getNumber,
  unmarshalItem,
  type AttributeMap,
} from "../transport/attribute-values.ts";
import { parseBucketItem } from "../items/bucket-item.ts";
import { bucketKey } from "../items/bucket-key.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import { Gathering, type GatherWish } from "./gather.ts";
import type { TransactItem } from "../table/connection.ts";
import type { WantedClaim } from "./wanted-claim.ts";

const NOW_MS = 1_800_000_000_000;

it("takes parts with writes that have only the fields of a transaction's update", () => {
  const gathering = new Gathering(CLAIM, [buildShard(0, 3000), buildShard(1, 5000)], NOW_MS);
  expect(listParts(gathering, wish())).toEqual([{ tpm: 3000 }, { tpm: 4000 }]);
  // Transports other than the SDK's do not check their input.
  for (const write of gathering.writes())
    expect(Object.keys((write as { readonly Update: object }).Update).toSorted()).toEqual([
      "ConditionExpression",
      "ExpressionAttributeNames",
      "ExpressionAttributeValues",
      "Key",
      "UpdateExpression",
    ]);
});

it("counts what no limit holds once, on the first shard, and takes it from none", () => {
  const shards = [buildShard(0, 3000), buildShard(1, 5000)];
  const gathering = new Gathering(CLAIM, shards, NOW_MS);
  const amounts = { tpm: 7, ipd: 4 };
  const verdict = gathering.decide(wish(amounts));
  expect(verdict.kind === "gathered" && verdict.parts).toMatchObject([
    { amounts: { tpm: 3000 }, unlimited: { ipd: 4000 } },
    { amounts: { tpm: 4000 } },
  ]);
  const names = gathering
    .writes()
    .map((write) =>
      Object.values(
        (write as { Update: { ExpressionAttributeNames: object } }).Update.ExpressionAttributeNames,
      ),
    );
  expect(names.map((list) => list.includes("b_ipd_tc"))).toEqual([true, false]);
  expect(names.flat()).not.toContain("b_ipd_tk");
});

it("counts what came by cascade on the shards that gave it, beside other calls", () => {
  const stored = [3000, 3500, 3500];
  const gathering = new Gathering(
    CLAIM,
    stored.map((milli, shard) => buildShard(shard, milli)),
    NOW_MS,
  );
  const { claim, ...cascaded } = wish({ tpm: 6, ipd: 4 });
  const wishes = [{ ...cascaded, claim: { ...claim, isCascaded: true } }, wish({ tpm: 4 })];
  const verdicts = wishes.map((each) => gathering.decide(each));
  expect(verdicts.map((verdict) => verdict.kind === "gathered" && verdict.parts)).toMatchObject([
    [{ isCascaded: true }, { isCascaded: true }],
    [{ isCascaded: false }, { isCascaded: false }],
  ]);
  const counted = gathering.writes().map((write, shard) => {
    const item = update(buildItem(shard, stored[shard]!), (write as { Update: object }).Update)!;
    return ["b_tpm_tc", "b_tpm_cc", "b_ipd_cc", "gr", "gc"].map((name) => getNumber(item[name]));
  });
  expect(counted).toEqual([
    [3000, 3000, 4000, 1, 1],
    [3500, 3000, undefined, 1, undefined],
    [3500, undefined, undefined, undefined, undefined],
  ]);
});

it("takes from each shard in its own window, and opens the next one where it is over", () => {
  const [tpd, dayMs] = [Limit.quota("tpd", 40, { every: "day", zone: "UTC" }), 86_400_000];
  const policy = buildPolicy([tpd], "system");
  const amounts = { tpd: 12 };
  const claim = { ...CLAIM, policy, amounts, costs: inMilli(amounts) };
  const endMs = Math.ceil((NOW_MS + 1) / dayMs) * dayMs;
  const items = [
    [3000, endMs],
    [500, NOW_MS],
  ].map(([milli, we], shard) =>
    marshalItem({
      ...unmarshalItem(buildItem(shard, 0)),
      b_tpd_tk: milli!,
      b_tpd_tc: 0,
      b_tpd_cp: 40_000,
      b_tpd_kd: "/day@UTC",
      b_tpd_we: we!,
    }),
  );
  const shards = items.map((item, shard) => ({
    ...buildShard(shard, 0),
    image: parseBucketItem(item),
  }));
  const gathering = new Gathering(claim, shards, NOW_MS);
  const verdict = gathering.decide({ ...wish(), claim });
  expect(verdict.kind === "gathered" && verdict.parts).toMatchObject([
    { amounts: { tpd: 3000 }, incarnation: { windowEnds: { tpd: endMs } } },
    { amounts: { tpd: 9000 }, incarnation: { windowEnds: { tpd: endMs } } },
  ]);
  const after = gathering
    .writes()
    .map((write, shard) => update(items[shard]!, (write as { Update: object }).Update)!);
  expect(after.map((item) => [getNumber(item["b_tpd_tk"]), getNumber(item["b_tpd_we"])])).toEqual([
    [0, endMs],
    [1000, endMs],
  ]);
});

describe("several calls in one gather", () => {
  it("are decided one after another, each with a receipt of what its own tokens came from", () => {
    const shards = [buildShard(0, 3000), buildShard(1, 2500), buildShard(2, 500)];
    const gathering = new Gathering(CLAIM, shards, NOW_MS);
    const verdicts = [4, 4, 2].map((tpm) => gathering.decide(wish({ tpm })));
    expect(verdicts.map(({ kind }) => kind)).toEqual(["gathered", "left", "alone"]);
    expect(
      listParts(gathering, wish({ tpm: 2 }, { isBarred: ({ key }) => key.shard === 0 })),
    ).toEqual([]);
    const [first] = verdicts;
    expect(first?.kind === "gathered" && first.parts).toMatchObject([
      { key: { shard: 0 }, amounts: { tpm: 3000 }, requests: 1, incarnation: { divisor: 4 } },
      { key: { shard: 1 }, amounts: { tpm: 1000 }, requests: 0 },
    ]);
    expect(gathering.writes()).toHaveLength(2);
  });

  it("take together what was there, and never more", () => {
    const gathering = new Gathering(
      CLAIM,
      [buildShard(0, 900), buildShard(1, 900), buildShard(2, 900)],
      NOW_MS,
    );
    const kinds = [1, 1, 1].map((tpm) => gathering.decide(wish({ tpm })).kind);
    expect(kinds).toEqual(["gathered", "gathered", "left"]);
    expect(takenBy(gathering)).toEqual([-900, -900, -200]);
  });

  it("are refused by what the shards held as of their time, and take what they hold now", () => {
    // Each earns a token in 6 s.
    const shards = [buildShard(0, 800), buildShard(1, 100)];
    const decided = (asOfMs: number): string =>
      new Gathering(CLAIM, shards, NOW_MS + 600).decide(wish({ tpm: 1 }, { asOfMs })).kind;
    expect(decided(NOW_MS)).toBe("refused");
    expect(decided(NOW_MS + 299)).toBe("refused");
    expect(decided(NOW_MS + 300)).toBe("gathered");
  });

  it("leave to those after them what was there as of their time, and not what was earned since", () => {
    const shards = [0, 1, 2, 3].map((shard) => buildShard(shard, 6000));
    const gathering = new Gathering(CLAIM, shards, NOW_MS + 23_940);
    expect(listParts(gathering, wish({ tpm: 20 }))).toEqual([
      { tpm: 9990 },
      { tpm: 9990 },
      { tpm: 20 },
    ]);
    expect(gathering.decide(wish({ tpm: 13 })).kind).toBe("left");
    expect(gathering.decide(wish({ tpm: 12 })).kind).toBe("gathered");
  });

  it("take from each shard what is above its share of what they leave", () => {
    const shards = [3000, 500, 2500].map((milli, shard) => buildShard(shard, milli));
    const gathering = new Gathering(CLAIM, shards, NOW_MS);
    const leaving = (tpm: number): GatherWish => {
      const { claim, ...rest } = wish({ tpm });
      return { ...rest, claim: { ...claim, leave: { amounts: { tpm: 4 }, priority: undefined } } };
    };
    expect(gathering.decide(leaving(4)).kind).toBe("refused");
    expect(gathering.decide(leaving(2)).kind).toBe("alone");
    expect(listParts(gathering, leaving(3))).toEqual([{ tpm: 2000 }, { tpm: 1000 }]);
    expect(gathering.decide(leaving(1)).kind).toBe("alone");
    expect(gathering.writes().map(listValues)).toEqual([
      expect.arrayContaining(["3000", "-2000"]),
      expect.arrayContaining(["2000", "-1000"]),
    ]);
    expect(listParts(gathering, wish({ tpm: 3 }))).toEqual([]);
  });

  it("hold back on all shards what one owes", () => {
    const shards = [buildShard(0, 3000), buildShard(1, 3000), buildShard(2, -2000)];
    const gathering = new Gathering(CLAIM, shards, NOW_MS);
    expect(gathering.decide(wish({ tpm: 4 })).kind).toBe("gathered");
    expect(gathering.decide(wish({ tpm: 1 }, { isBarred: () => true })).kind).toBe("barred");
    expect(gathering.decide(wish({ tpm: 0 })).kind).toBe("alone");
    expect(gathering.decide(wish({ tpm: 4 })).kind).toBe("left");
    expect(gathering.decide(wish({ tpm: 5 })).kind).toBe("refused");
    for (const [index, write] of gathering.writes().entries())
      expect(listValues(write), `shard ${index}`).toContain("3000");
  });

  it("are refused where there is no shard", () => {
    expect(new Gathering(CLAIM, [], NOW_MS).decide(wish()).kind).toBe("refused");
  });
});

function wish(amounts = CLAIM.amounts, further: Partial<GatherWish> = {}): GatherWish {
  const claim = { ...CLAIM, amounts, costs: inMilli(amounts) };
  return { claim, requests: 1, asOfMs: NOW_MS, isBarred: () => false, ...further };
}

function listParts(gathering: Gathering, wanted: GatherWish): readonly unknown[] {
  const verdict = gathering.decide(wanted);
  return verdict.kind === "gathered" ? verdict.parts.map(({ amounts }) => amounts) : [];
}

function listValues(write: TransactItem): readonly string[] {
  const { Update } = write as {
    readonly Update: {
      readonly ExpressionAttributeValues: Record<string, { readonly N?: string }>;
    };
  };
  return Object.values(Update.ExpressionAttributeValues).flatMap(({ N }) => N ?? []);
}

/** What each write adds to the tokens of its shard. */
function takenBy(gathering: Gathering): readonly number[] {
  return gathering.writes().map((write) => Math.min(...listValues(write).map(Number)));
}

const CLAIM: WantedClaim = {
  key: toKey(0),
  amounts: { tpm: 7 },
  costs: { tpm: 7000 },
  parentId: undefined,
  isCascaded: false,
  policy: buildPolicy([Limit.perMinute("tpm", 40)], "system"),
};

function toKey(shard: number): KnownShard["key"] {
  return bucketKey({ namespaceId: "n", entityId: "e", resource: "r", shard }, undefined);
}

function buildShard(shard: number, milli: number): KnownShard {
  const image = parseBucketItem(buildItem(shard, milli));
  return { key: toKey(shard), image, seenAt: { ms: NOW_MS, order: 1 } };
}

function buildItem(shard: number, milli: number): AttributeMap {
  const limit = {
    b_tpm_tk: milli,
    b_tpm_tc: 0,
    b_tpm_cp: 40_000,
    b_tpm_ra: 40_000,
    b_tpm_rp: 60_000,
  };
  return marshalItem({
    ...toKey(shard).primary,
    ...limit,
    rf: NOW_MS,
    sv: 1,
    cr: "c",
    b_wcu_tc: 1,
    shard_count: 4,
  });
}
