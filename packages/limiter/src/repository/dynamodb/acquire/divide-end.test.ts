import { describe, expect, it } from "vitest";
import {
  NOW_MS,
  shardImage,
  shardKey,
  TPM,
  type StoredShard,
} from "../../../../test/support/shard-images.ts";
import { buildPolicy } from "../../../core/bucket/policy.ts";
import { Limit } from "../../../core/limit.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import { divideEnd } from "./divide-end.ts";
import type { ReceiptPart } from "./receipt.ts";

describe("what a lease gives back to a shard that was split since", () => {
  it("goes to the owners of the class that it was taken from, each its part", () => {
    const shards = [buildShard(0, 4, 0), buildShard(1, 2, 0), buildShard(2, 4, 0)];
    expect(give(-1000, { shard: 0, divisor: 1 }, shards)).toEqual({ 0: -250, 1: -500, 2: -250 });
    expect(give(-1000, { shard: 0, divisor: 2 }, shards)).toEqual({ 0: -500, 2: -500 });
    expect(give(-1000, { shard: 1, divisor: 2 }, shards)).toEqual({ 1: -1000 });
  });

  it("adds up to the millitoken, whatever does not divide", () => {
    const shards = [buildShard(0, 2, 0), buildShard(1, 4, 0), buildShard(3, 4, 0)];
    expect(give(-1003, { shard: 0, divisor: 1 }, shards)).toEqual({ 0: -503, 1: -250, 3: -250 });
  });

  it("goes to another owner where one has no room for its part", () => {
    const shards = [buildShard(0, 2, 0), buildShard(1, 2, 29_900)];
    expect(give(-1000, { shard: 0, divisor: 1 }, shards)).toEqual({ 0: -900, 1: -100 });
    const four = [buildShard(0, 2, 0), buildShard(1, 4, 15_000), buildShard(3, 4, 0)];
    expect(give(-1000, { shard: 1, divisor: 2 }, four)).toEqual({ 3: -1000 });
  });

  it("goes to shards beyond the owners only when all of these are full", () => {
    const shards = [buildShard(0, 4, 14_900), buildShard(1, 2, 0), buildShard(2, 4, 14_900)];
    expect(give(-1000, { shard: 0, divisor: 2 }, shards)).toEqual({ 0: -100, 1: -800, 2: -100 });
  });

  it("goes to the first owner when no shard has room, where it is cut off", () => {
    const shards = [buildShard(0, 2, 30_000), buildShard(1, 2, 30_000)];
    expect(give(-1000, { shard: 0, divisor: 1 }, shards)).toEqual({ 0: -1000 });
  });

  it("finds the room that is left by what was earned since", () => {
    const shards = [buildShard(0, 2, 29_900), buildShard(1, 2, 0)];
    const later = NOW_MS + 100;
    expect(give(-1000, { shard: 0, divisor: 1 }, shards, later)).toEqual({ 0: -50, 1: -950 });
  });

  it("is not lost when no owner shows, because shards were read while they were merged", () => {
    const shards = [buildShard(0, 2, 0)];
    expect(give(-1000, { shard: 1, divisor: 2 }, shards)).toEqual({ 0: -1000 });
    const full = [buildShard(0, 2, 30_000)];
    expect(give(-1000, { shard: 1, divisor: 2 }, full)).toEqual({ 0: -1000 });
  });

  it("goes nowhere when no shard is left", () =>
    expect(give(-1000, { shard: 0, divisor: 1 }, [])).toEqual({}));
});

it("gives back to each owner its part of a quota, also beyond its share", () => {
  const policy = buildPolicy([TPD], "resource");
  const part = { ...buildPart({ shard: 0, divisor: 1 }), policy };
  const windowEnds = { tpd: NOW_MS + 1 };
  const lease = { ...part, incarnation: { ...part.incarnation, windowEnds } };
  const shards = [0, 1].map((shard) => buildShard(shard, 2, 0, { limits: [TPD] }));
  const ends = divideEnd({ part: lease, costs: { tpd: -1000 }, requests: 0 }, shards, NOW_MS);
  // Whether a part goes to the balance is decided by the window that the lease took from.
  expect(
    ends.map(({ part: { key, incarnation }, costs }) => [
      key.shard,
      costs,
      incarnation?.windowEnds,
    ]),
  ).toEqual([
    [0, { tpd: -500 }, windowEnds],
    [1, { tpd: -500 }, windowEnds],
  ]);
});

describe("what a lease charges that one shard cannot pay", () => {
  it("is paid with what the shards hold, beginning with its own", () => {
    const shards = [buildShard(0, 2, 5000), buildShard(1, 2, 3000)];
    expect(give(4000, { shard: 1, divisor: 2 }, shards)).toEqual({ 1: 3000, 0: 1000 });
    expect(give(2000, { shard: 1, divisor: 2 }, shards)).toEqual({ 1: 2000 });
  });

  it("is owed by all of them where they cannot pay it, each its part, exactly", () => {
    const shards = [buildShard(0, 2, 500), buildShard(1, 4, 0), buildShard(3, 4, -700)];
    expect(give(1503, { shard: 0, divisor: 1 }, shards)).toEqual({
      0: 500 + 503,
      1: 250,
      3: 250,
    });
  });
});

describe("the end of a lease that is divided", () => {
  const [first, second] = [buildShard(0, 2, 0), buildShard(1, 2, 0)] as const;

  it("takes its requests back once, and names the shards as they are now", () => {
    const ends = divideEnd(
      { part: buildPart({ shard: 0, divisor: 1 }), costs: { tpm: -1000 }, requests: -1 },
      [first, second],
      NOW_MS,
    );
    expect(ends.map(({ requests }) => requests)).toEqual([-1, 0]);
    expect(ends.map(({ part }) => [part.key, part.incarnation!.divisor])).toEqual([
      [first.key, 2],
      [second.key, 2],
    ]);
    expect(ends[0]!.part.incarnation!.creation).toBe("other.0000");
  });

  it("counts once what no limit holds, also when nothing else is to be written", () => {
    const part = buildPart({ shard: 0, divisor: 1 });
    const end = { part, costs: { tpm: -1000 }, unlimited: { ipd: -5 }, requests: 0 };
    const ends = divideEnd(end, [first, second], NOW_MS);
    expect(ends.map(({ unlimited }) => unlimited)).toEqual([{ ipd: -5 }, undefined]);
    const only = divideEnd({ ...end, costs: {} }, [first, second], NOW_MS);
    expect(only.map(({ unlimited }) => unlimited)).toEqual([{ ipd: -5 }]);
  });

  it("writes to no shard that has nothing to do", () => {
    const shards = [buildShard(0, 2, 10_000), buildShard(1, 2, 10_000)];
    const part = buildPart({ shard: 1, divisor: 2 });
    const ends = divideEnd({ part, costs: { tpm: 1000 }, requests: 0 }, shards, NOW_MS);
    expect(ends.map(({ part: { key }, costs }) => [key.shard, costs])).toEqual([
      [1, { tpm: 1000 }],
    ]);
  });

  it("gives back one limit and charges another", () => {
    const ends = divideEnd(
      { part: buildPart({ shard: 0, divisor: 1 }), costs: { tpm: -1000, rpm: 10 }, requests: 0 },
      [first, second],
      NOW_MS,
    );
    expect(ends.map(({ costs }) => costs)).toEqual([
      { tpm: -500 },
      { tpm: -500 },
      { rpm: 5 },
      { rpm: 5 },
    ]);
  });
});

/** What each shard gets of an end, by shard. */
function give(
  tpm: number,
  taken: { readonly shard: number; readonly divisor: number },
  shards: readonly KnownShard[],
  nowMs = NOW_MS,
): Readonly<Record<number, number>> {
  const ends = divideEnd({ part: buildPart(taken), costs: { tpm }, requests: 0 }, shards, nowMs);
  return Object.fromEntries(ends.map(({ part, costs }) => [part.key.shard, costs["tpm"]!]));
}

const TPD = Limit.quota("tpd", 60, { every: "day", zone: "UTC" });

function buildShard(
  shard: number,
  divisor: number,
  tpm: number,
  further: StoredShard = {},
): KnownShard {
  const image = shardImage({ shard, divisor, tokens: { tpm }, ...further });
  return { key: shardKey(shard), image, seenAt: { ms: NOW_MS, order: 1 } };
}

function buildPart({
  shard,
  divisor,
}: {
  readonly shard: number;
  readonly divisor: number;
}): ReceiptPart {
  return {
    key: shardKey(shard),
    entityId: "e",
    resource: "r",
    policy: buildPolicy([TPM], "resource"),
    amounts: { tpm: 1000 },
    requests: 1,
    isCascaded: false,
    incarnation: {
      creation: "other.0000",
      divisor,
      splitAtMs: undefined,
      expiredBySeconds: undefined,
    },
  };
}
