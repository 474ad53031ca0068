import { describe, expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import { BucketRate } from "./merge-monitor.ts";
import { Pressure } from "./pressure.ts";

const NOW_MS = Date.UTC(2026, 0, 4);
const DAY_S = 86_400;
const PROCESSES = 8;
const MOST_SHARDS = 32;
const ITEM_UNITS_PER_SECOND = 1000;

/**
 * How often a bucket was split and merged in a day, and how many shards it had at most and last.
 */
interface Day {
  doublings: number;
  merges: number;
  most: number;
  shards: number;
}

/**
 * A day of a bucket under a load in writes a second, on an engine that accepts a thousand for one
 * item and throttles the rest. Each process writes to its home shard, looks when it may, and moves
 * with every doubling and merge. `throttled` is the part of all attempts that the table throttles
 * without a reason.
 */
function playDay(
  loadAt: (second: number) => number,
  { seed = 1, throttled = 0 }: { readonly seed?: number; readonly throttled?: number } = {},
): Day {
  const random = seededRandom(seed);
  const day: Day = { doublings: 0, merges: 0, most: 1, shards: 1 };
  const processes = Array.from({ length: PROCESSES }, () => ({
    pressure: new Pressure(),
    rate: undefined as BucketRate | undefined,
  }));
  let items = [{ shard: 0, version: 1, creation: "c", writes: 0 }];
  let shapedAtMs: number | undefined;
  const reshape = (shards: number, nowMs: number): void => {
    const version = items[0]!.version + 1;
    items = Array.from({ length: shards }, (_, shard) => ({
      shard,
      version,
      creation: "c",
      writes: 0,
    }));
    shapedAtMs = nowMs;
    for (const process of processes) process.rate = undefined;
    day.shards = shards;
    day.most = Math.max(day.most, shards);
  };
  for (let second = 0; second < DAY_S; second += 1) {
    const nowMs = NOW_MS + second * 1000;
    const room = items.map(() => ITEM_UNITS_PER_SECOND);
    for (const [index, process] of processes.entries()) {
      const home = index % items.length;
      const item = items[home]!;
      const wanted = Math.floor(loadAt(second) / PROCESSES + random());
      const refused = Math.floor(wanted * throttled + random());
      const accepted = Math.max(0, Math.min(wanted - refused, room[home]!));
      room[home]! -= accepted;
      item.writes += accepted;
      let isHot = accepted > 0 && process.pressure.noteWrite(item, nowMs);
      for (let times = accepted; times < Math.min(wanted, accepted + 60); times += 1) {
        const isOfKeys = times >= accepted + refused;
        isHot = process.pressure.noteThrottled(home, { isOfKeys, nowMs }) || isHot;
      }
      const mayDouble = items.length < MOST_SHARDS && process.pressure.mayDouble(shapedAtMs, nowMs);
      if (isHot && mayDouble) {
        process.pressure.noteDoubling(nowMs);
        day.doublings += 1;
        reshape(items.length * 2, nowMs);
        break;
      }
      if (items.length === 1 || accepted === 0) continue;
      process.rate ??= new BucketRate({ ...item }, nowMs);
      if (
        process.rate.mayLook({ ...item }, nowMs) &&
        process.rate.noteLook(structuredClone(items), nowMs)
      ) {
        day.merges += 1;
        reshape(1, nowMs);
        break;
      }
    }
  }
  return day;
}

describe("a day of a bucket", { timeout: 60_000 }, () => {
  it("whose load comes and goes each hour has two doublings and one merge an hour", () => {
    for (const seed of [1, 2])
      expect(
        playDay((second) => (second % 3600 < 1200 ? 3000 : 20), { seed }),
        `seed ${seed}`,
      ).toEqual({ doublings: 48, merges: 24, most: 4, shards: 1 });
  });

  it("whose load comes and goes faster than five minutes keeps its shards", () => {
    expect(playDay((second) => (second % 300 < 60 ? 3000 : 20))).toEqual({
      doublings: 2,
      merges: 0,
      most: 4,
      shards: 4,
    });
  });

  it("under a load that no rest interrupts is never merged, however it varies above 200 a second", () => {
    const { doublings, merges } = playDay((second) => 210 + 1300 * Math.sin(second / 7000) ** 2);
    expect({ doublings, merges }).toEqual({ doublings: 1, merges: 0 });
  });

  it("with 11 calls a second is never split, whatever part of the attempts is throttled", () => {
    for (const throttled of [0.05, 0.5, 0.95])
      expect(playDay(() => 11, { throttled })).toEqual({
        doublings: 0,
        merges: 0,
        most: 1,
        shards: 1,
      });
  });

  it("is split and merged at most once in five minutes, whatever comes", () => {
    for (const seed of [1, 2]) {
      const random = seededRandom(100 + seed);
      const loads = Array.from({ length: DAY_S / 60 }, () =>
        random() < 0.5 ? random() * 30 : random() * 5000,
      );
      const { doublings, merges } = playDay((second) => loads[Math.floor(second / 60)]!, { seed });
      expect(merges).toBeLessThanOrEqual(DAY_S / 300);
      expect(doublings).toBeLessThanOrEqual((merges + 1) * Math.log2(MOST_SHARDS));
    }
  });
});
