import { describe, expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import {
  createError,
  scriptedProcess,
  type ScriptedProcess,
} from "../../../../test/support/scripted-table.ts";
import {
  NOW_MS as START_MS,
  shardImage,
  shardItem,
  shardKey,
} from "../../../../test/support/shard-images.ts";
import { Limit } from "../../../core/limit.ts";
import type { MeasuredShard, MergeMonitor } from "./merge-monitor.ts";
import { Pressure, PressureWatch } from "./pressure.ts";
import { Splitter } from "./splitter.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);

function image(writes: number, further: Partial<MeasuredShard> = {}): MeasuredShard {
  return { shard: 0, version: 1, creation: "me.1", writes, ...further };
}

describe("the pressure on a bucket", () => {
  it("is high at 800 write units a second, and not one below", () => {
    for (const [units, hot] of [
      [800, true],
      [799, false],
    ] as const) {
      const pressure = new Pressure();
      expect(pressure.noteWrite(image(5000), NOW_MS)).toBe(false);
      expect(pressure.noteWrite(image(5000 + units), NOW_MS + 1000)).toBe(hot);
    }
  });

  it("is measured over a second at least, however many writes come in a burst", () => {
    const pressure = new Pressure();
    pressure.noteWrite(image(0), NOW_MS);
    expect(pressure.noteWrite(image(790), NOW_MS + 10)).toBe(false);
    expect(pressure.noteWrite(image(795), NOW_MS + 999)).toBe(false);
    expect(pressure.noteWrite(image(796), NOW_MS + 1000)).toBe(false);
    expect(pressure.noteWrite(image(796 + 1600), NOW_MS + 3000)).toBe(true);
  });

  it("is measured for each shard separately", () => {
    const pressure = new Pressure();
    pressure.noteWrite(image(0), NOW_MS);
    pressure.noteWrite(image(9000, { shard: 1 }), NOW_MS);
    expect(pressure.noteWrite(image(9100, { shard: 1 }), NOW_MS + 1000)).toBe(false);
    expect(pressure.noteWrite(image(900), NOW_MS + 1000)).toBe(true);
  });

  it("is measured from the start after a split, a change of limits, or a deletion", () => {
    for (const further of [{ version: 2 }, { creation: "me.2" }]) {
      const pressure = new Pressure();
      pressure.noteWrite(image(0), NOW_MS);
      expect(pressure.noteWrite(image(5000, further), NOW_MS + 1000)).toBe(false);
      expect(pressure.noteWrite(image(5700, further), NOW_MS + 2000)).toBe(false);
      expect(pressure.noteWrite(image(6500, further), NOW_MS + 3000)).toBe(true);
    }
  });

  it("is not raised by an image that arrives late", () => {
    const pressure = new Pressure();
    pressure.noteWrite(image(1000), NOW_MS);
    expect(pressure.noteWrite(image(10), NOW_MS - 5000)).toBe(false);
    expect(pressure.noteWrite(image(1700), NOW_MS + 1000)).toBe(false);
  });

  it("doubles a bucket at most once in two seconds, counting splits and own attempts", () => {
    const pressure = new Pressure();
    expect(pressure.mayDouble(undefined, NOW_MS)).toBe(true);
    expect(pressure.mayDouble(NOW_MS - 1999, NOW_MS)).toBe(false);
    expect(pressure.mayDouble(NOW_MS - 2000, NOW_MS)).toBe(true);
    pressure.noteDoubling(NOW_MS);
    expect(pressure.mayDouble(undefined, NOW_MS + 1999)).toBe(false);
    expect(pressure.mayDouble(undefined, NOW_MS + 2000)).toBe(true);
  });

  it("is high when writes of a busy shard are throttled again within a second, and not when one is", () => {
    const pressure = busyAt(400);
    expect(pressure.noteThrottled(0, { isOfKeys: false, nowMs: NOW_MS })).toBe(false);
    expect(pressure.noteThrottled(0, { isOfKeys: false, nowMs: NOW_MS + 1001 })).toBe(false);
    expect(pressure.noteThrottled(0, { isOfKeys: false, nowMs: NOW_MS + 2001 })).toBe(true);
  });

  it("is not raised by throttling below half of what is hot, on another shard, or long after", () => {
    for (const [pressure, shard, atMs] of [
      [busyAt(399), 0, 0],
      [busyAt(700), 1, 0],
      [busyAt(700), 0, 3001],
    ] as const)
      for (let times = 0; times < 30; times += 1) {
        const nowMs = NOW_MS + atMs;
        expect(pressure.noteThrottled(shard, { isOfKeys: true, nowMs })).toBe(false);
      }
    const pressure = busyAt(700);
    pressure.noteWrite(image(5000, { version: 2 }), NOW_MS);
    for (let times = 0; times < 30; times += 1)
      expect(pressure.noteThrottled(0, { isOfKeys: false, nowMs: NOW_MS })).toBe(false);
  });

  it("is high when most of 50 attempts within a second were throttled, if keys are the reason", () => {
    expect(isHighAfter(true, 25, 50)).toBe(true);
    expect(isHighAfter(true, 50, 50)).toBe(true);
    expect(isHighAfter(true, 25, 51)).toBe(false);
    expect(isHighAfter(true, 49, 49)).toBe(false);
    expect(isHighAfter(false, 100, 100)).toBe(false);
  });

  it("counts attempts within a second, and from the start when it doubles", () => {
    const pressure = new Pressure();
    for (let times = 0; times < 49; times += 1)
      pressure.noteThrottled(0, { isOfKeys: true, nowMs: NOW_MS });
    expect(pressure.noteThrottled(0, { isOfKeys: true, nowMs: NOW_MS + 1000 })).toBe(false);
    for (let times = 0; times < 48; times += 1)
      pressure.noteThrottled(0, { isOfKeys: true, nowMs: NOW_MS + 1000 });
    pressure.noteDoubling(NOW_MS + 1000);
    expect(pressure.noteThrottled(0, { isOfKeys: true, nowMs: NOW_MS + 1000 })).toBe(false);
  });

  it("is never high at 11 calls a second that are throttled at every attempt, for a minute", () => {
    const pressure = new Pressure();
    for (let attempt = 0; attempt < 60 * 11 * 3; attempt += 1) {
      const nowMs = NOW_MS + Math.floor(attempt / 3) * (1000 / 11);
      expect(pressure.noteThrottled(0, { isOfKeys: true, nowMs })).toBe(false);
    }
  });

  it("starts measuring again when it doubles", () => {
    const pressure = new Pressure();
    pressure.noteWrite(image(0), NOW_MS);
    pressure.noteDoubling(NOW_MS + 500);
    expect(pressure.noteWrite(image(9000), NOW_MS + 1000)).toBe(false);
  });
});

/** The pressure on a bucket whose shard 0 was written so often in the last second. */
function busyAt(unitsPerSecond: number): Pressure {
  const pressure = new Pressure();
  pressure.noteWrite(image(1000), NOW_MS - 1000);
  pressure.noteWrite(image(1000 + unitsPerSecond), NOW_MS);
  return pressure;
}

/** Whether the pressure is high after so many attempts within a second, the throttled ones last. */
function isHighAfter(isOfKeys: boolean, throttled: number, made: number): boolean {
  const pressure = new Pressure();
  for (let written = throttled; written < made; written += 1)
    pressure.noteWrite(image(written), NOW_MS);
  let isHigh = false;
  for (let times = 0; times < throttled; times += 1)
    isHigh = pressure.noteThrottled(0, { isOfKeys, nowMs: NOW_MS + 999 });
  return isHigh;
}

describe("a watch over writes", () => {
  it("doubles a bucket once, however many writes notice that it is hot", async () => {
    const { watch, clock, splits } = watching();
    for (const atMs of [0, 1000, 1001, 1500]) {
      clock.set(START_MS + atMs);
      watch.noteWrite(shardKey(), shardImage({ writes: 5000 + atMs }), START_MS + atMs);
      watch.noteThrottled(shardKey(), true);
    }
    await clock.advance(0);
    expect(splits()).toBe(1);
  });

  it("measures the pressure on all shards of a bucket together, and on no other bucket", async () => {
    const { watch, clock, splits } = watching();
    watch.noteThrottled(shardKey(0, "other"), true);
    for (let times = 1; times < MANY; times += 1) watch.noteThrottled(shardKey(1), true);
    await clock.advance(0);
    expect(splits()).toBe(0);
    watch.noteThrottled(shardKey(1), true);
    await clock.advance(0);
    expect(splits()).toBe(1);
  });

  it("leaves shards alone that are not hot each, however many writes they take together", async () => {
    const { watch, clock, splits } = watching();
    for (const shard of [0, 1])
      for (const atMs of [0, 1000]) {
        const seen = shardImage({ shard, divisor: 2, writes: 5000 + atMs * 0.7 });
        watch.noteWrite(shardKey(shard), seen, START_MS + atMs);
      }
    await clock.advance(0);
    expect(splits()).toBe(0);
  });

  it("doubles nothing when buckets may have one shard only", async () => {
    const { watch, clock, splits } = watching({ maxShards: 1 });
    throttleMany(watch);
    await clock.advance(0);
    expect(splits()).toBe(0);
  });

  it("doubles no bucket that is unknown, cannot be split, or was just split by another process", async () => {
    for (const held of [
      undefined,
      shardImage({ limits: [Limit.perMinute("tpm", 1)] }),
      shardImage({ consumed: { tpm: 75_001 }, requests: 10 }),
      { ...shardImage(), splitAtMs: START_MS - 1999 },
    ]) {
      const { watch, clock, splits, known } = watching();
      known.remember(shardKey(), held, known.stampRequest());
      throttleMany(watch);
      await clock.advance(0);
      expect(splits()).toBe(0);
    }
  });

  it("doubles a bucket whose shards would still hold four calls of the usual size", async () => {
    for (const held of [
      shardImage({ consumed: { tpm: 75_000 }, requests: 10 }),
      shardImage({ consumed: { tpm: 75_000 }, requests: 0 }),
    ]) {
      const { watch, clock, splits, known } = watching();
      known.remember(shardKey(), held, known.stampRequest());
      throttleMany(watch);
      await clock.advance(0);
      expect(splits()).toBe(1);
    }
  });

  it("fails no write when a doubling fails, and tries again after a pause", async () => {
    const { watch, clock, splits, table } = watching();
    table.faults.push({ instead: createError("AccessDeniedException") });
    for (const atMs of [0, 1, 1000, 2000, 2001]) {
      clock.set(START_MS + atMs);
      throttleMany(watch);
      await clock.advance(0);
    }
    expect(splits()).toBe(2);
  });
});

/** Attempts within a second that are many. */
const MANY = 50;

/** Throttles as many attempts on shard 0 as show that it is hot. */
function throttleMany(watch: PressureWatch): void {
  for (let times = 0; times < MANY; times += 1) watch.noteThrottled(shardKey(), true);
}

/** A watch over a process that knows a bucket; the transactions that it has sent are splits. */
function watching({ maxShards = 32 }: { readonly maxShards?: number } = {}): ScriptedProcess & {
  readonly watch: PressureWatch;
  readonly splits: () => number;
} {
  const process = scriptedProcess();
  const { table, clock, connection, known } = process;
  table.put(shardItem());
  known.remember(shardKey(), shardImage(), known.stampRequest());
  // The watch must not even ask a splitter that would split.
  const splitter = new Splitter({ connection, known, maxShards: 32, counts: { splits: 0 } });
  const mergeMonitor = { noteWrite: () => {} } as unknown as MergeMonitor;
  const watch = new PressureWatch({ known, splitter, mergeMonitor, clock, maxShards });
  const splits = (): number =>
    table.operations.filter((operation) => operation === "TransactWriteItems").length;
  return { ...process, watch, splits };
}

describe("a hot bucket", () => {
  it.each([
    [500, 1],
    [1500, 2],
    [3000, 4],
  ])("under %i writes a second settles at %i shards", (perSecond, shards) => {
    for (let seed = 1; seed <= 20; seed += 1)
      expect(settledShards(perSecond, seed), `seed ${seed}`).toBe(shards);
  });

  it("never has more shards than it may, and no more than one doubling in two seconds", () => {
    expect(settledShards(60_000, 1)).toBe(32);
    expect(settledShards(60_000, 1, 9)).toBe(32);
    expect(settledShards(60_000, 1, 8)).toBe(16);
  });
});

/**
 * Shards after some seconds of a load that 24 processes send, at random, to an engine that accepts
 * 1000 writes a second to one item. A process finds its new home shard up to a second after a
 * doubling; until then it continues as before, and may be throttled.
 */
function settledShards(perSecond: number, seed: number, seconds = 30): number {
  const random = seededRandom(seed);
  const processes = Array.from({ length: 24 }, () => ({
    pressure: new Pressure(),
    count: 1,
    movesAtMs: Infinity,
  }));
  const stepMs = 100;
  let items = [{ writes: 0, version: 1 }];
  let splitAtMs: number | undefined;
  for (let nowMs = NOW_MS; nowMs < NOW_MS + seconds * 1000; nowMs += stepMs) {
    const taken = items.map(() => 0);
    for (const [index, process] of processes.entries()) {
      if (nowMs >= process.movesAtMs) process.count = items.length;
      const { pressure } = process;
      const home = index % process.count;
      const item = items[home]!;
      const expected = ((perSecond / processes.length) * stepMs) / 1000;
      const sent = Math.floor(expected + random());
      const accepted = Math.min(sent, Math.max(0, stepMs - taken[home]!));
      taken[home]! += accepted;
      item.writes += accepted;
      const hot =
        accepted > 0 &&
        pressure.noteWrite(
          { shard: home, version: item.version, creation: "me.1", writes: item.writes },
          nowMs,
        );
      let throttled = false;
      for (let attempt = accepted; attempt < sent; attempt += 1)
        throttled = pressure.noteThrottled(home, { isOfKeys: true, nowMs });
      if (!(hot || throttled) || items.length >= 32 || !pressure.mayDouble(splitAtMs, nowMs))
        continue;
      pressure.noteDoubling(nowMs);
      splitAtMs = nowMs;
      for (const other of processes) other.movesAtMs = nowMs + random() * 900;
      items = [...items, ...items].map(({ version }) => ({ writes: 1, version: version + 1 }));
      break;
    }
  }
  return items.length;
}
