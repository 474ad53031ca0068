import { describe, expect, it } from "vitest";
import { seededRandom } from "zae-limiter/testing";
import {
  named,
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
import { Pressure, PressureWatch, type MeasuredImage } from "./pressure.ts";
import { Splitter } from "./splitter.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);

function image(writes: number, further: Partial<MeasuredImage> = {}): MeasuredImage {
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

  it("is high when writes are throttled again within a second, and not when one is", () => {
    const pressure = new Pressure();
    expect(pressure.noteThrottled(NOW_MS)).toBe(false);
    expect(pressure.noteThrottled(NOW_MS + 1001)).toBe(false);
    expect(pressure.noteThrottled(NOW_MS + 2001)).toBe(true);
  });

  it("starts measuring again when it doubles", () => {
    const pressure = new Pressure();
    pressure.noteWrite(image(0), NOW_MS);
    pressure.noteDoubling(NOW_MS + 500);
    expect(pressure.noteWrite(image(9000), NOW_MS + 1000)).toBe(false);
  });

  it("is never high at one request a second, for an hour", () => {
    const pressure = new Pressure();
    for (let second = 0; second <= 3600; second += 1)
      expect(pressure.noteWrite(image(second), NOW_MS + second * 1000)).toBe(false);
  });
});

describe("a watch over writes", () => {
  it("doubles a bucket once, however many writes notice that it is hot", async () => {
    const { watch, clock, splits } = watching();
    for (const atMs of [0, 1000, 1001, 1500]) {
      clock.set(START_MS + atMs);
      watch.noteWrite(shardKey(), shardImage({ writes: 5000 + atMs }), START_MS + atMs);
      watch.noteThrottled(shardKey());
    }
    await clock.advance(0);
    expect(splits()).toBe(1);
  });

  it("measures the pressure on all shards of a bucket together, and on no other bucket", async () => {
    const { watch, clock, splits } = watching();
    watch.noteThrottled(shardKey(0, "other"));
    watch.noteThrottled(shardKey(0));
    await clock.advance(0);
    expect(splits()).toBe(0);
    watch.noteThrottled(shardKey(1));
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
    for (let times = 0; times < 3; times += 1) watch.noteThrottled(shardKey());
    await clock.advance(0);
    expect(splits()).toBe(0);
  });

  it("doubles no bucket that is unknown, cannot be split, or was just split by another process", async () => {
    for (const held of [
      undefined,
      shardImage({ limits: [Limit.perMinute("tpm", 1)] }),
      { ...shardImage(), splitAtMs: START_MS - 1999 },
    ]) {
      const { watch, clock, splits, known } = watching();
      known.remember(shardKey(), held, known.stampRequest());
      for (let times = 0; times < 3; times += 1) watch.noteThrottled(shardKey());
      await clock.advance(0);
      expect(splits()).toBe(0);
    }
  });

  it("fails no write when a doubling fails, and tries again after a pause", async () => {
    const { watch, clock, splits, table } = watching();
    table.faults.push({ instead: named("AccessDeniedException") });
    for (const atMs of [0, 1, 1000, 2000, 2001]) {
      clock.set(START_MS + atMs);
      watch.noteThrottled(shardKey());
      await clock.advance(0);
    }
    expect(splits()).toBe(2);
  });
});

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
  const watch = new PressureWatch({ known, splitter, clock, maxShards });
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
      const throttled = accepted < sent && pressure.noteThrottled(nowMs);
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
