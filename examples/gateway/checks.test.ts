import { Limit } from "zae-limiter";
import { describe, expect, it } from "vitest";
import { roomIn, tightestUse } from "./bound.ts";
import type { Call, Change } from "./call-log.ts";
import { runChecks, limitKey, type Evidence } from "./checks.ts";
import type { ReadBack } from "./read-back.ts";
import { BUCKETS, PROJECT } from "./scenario.ts";

const TEN = Limit.perSecond("rpm", 10);

const take = (amount: number, startMs: number, endMs = startMs): Change => ({
  amount,
  startMs,
  endMs,
  kind: "take",
});
const returned = (amount: number, startMs: number, endMs = startMs): Change => ({
  ...take(amount, startMs, endMs),
  kind: "return",
});

describe("the tightest interval", () => {
  it("leaves no room when a bucket gave exactly what it held and earned", () => {
    const changes = [
      take(10, 0),
      ...Array.from({ length: 50 }, (_, index) => take(1, (index + 1) * 100)),
    ];
    expect(roomIn(tightestUse(changes, TEN))).toBeCloseTo(0.101, 6);
  });

  it("is exceeded by a refill that is twice as fast", () => {
    const changes = [
      take(10, 0),
      ...Array.from({ length: 50 }, (_, index) => take(1, (index + 1) * 50)),
    ];
    expect(roomIn(tightestUse(changes, TEN))).toBeLessThan(-20);
  });

  it("is also found when the bucket was idle before it", () => {
    const changes = [take(1, 0), take(10, 60_000), take(9, 60_010)];
    expect(roomIn(tightestUse(changes, TEN))).toBeLessThan(-8);
  });

  it("allows for tokens that were returned in time, or may have been", () => {
    expect(roomIn(tightestUse([take(10, 0), returned(10, 5), take(10, 6)], TEN))).toBeGreaterThan(
      0,
    );
    expect(
      roomIn(tightestUse([take(10, 0), take(10, 6, 20), returned(10, 15, 30)], TEN)),
    ).toBeGreaterThan(0);
    expect(
      roomIn(tightestUse([take(10, 0), take(10, 6, 20), returned(10, 25, 30)], TEN)),
    ).toBeLessThan(0);
  });

  it("does not count a take that may have happened later", () => {
    expect(roomIn(tightestUse([take(10, 0, 1000), take(10, 500, 1500)], TEN))).toBeGreaterThan(0);
  });

  it("counts an overrun against the takes that follow it, but not by itself", () => {
    const overrun: Change = { amount: 100, startMs: 10, endMs: 20, kind: "overrun" };
    expect(roomIn(tightestUse([take(10, 0), overrun], TEN))).toBeGreaterThanOrEqual(0);
    expect(roomIn(tightestUse([take(10, 0), overrun, take(1, 30)], TEN))).toBeLessThan(-90);
  });
});

const call = (actual: number | undefined, acquireStartMs = 1000): Call => ({
  key: "key-web",
  model: "model-large",
  estimate: 300,
  acquireStartMs,
  acquireEndMs: acquireStartMs + 1,
  settleStartMs: acquireStartMs + 30,
  settleEndMs: acquireStartMs + 31,
  actual,
});

const evidence = (
  calls: readonly Call[],
  change: (read: ReadBack) => Partial<ReadBack> = () => ({}),
): Evidence => {
  const done = calls.filter(({ actual }) => actual !== undefined);
  const used = { rpm: done.length, tpm: done.reduce((sum, { actual = 0 }) => sum + actual, 0) };
  const stored = BUCKETS.map(({ entityId, model, limits }) => {
    const concerned = model === "model-large" && ["key-web", PROJECT].includes(entityId);
    const total = concerned ? used : { rpm: 0, tpm: 0 };
    const [rpm, tpm] = limits.map(({ capacity }) => capacity) as [number, number];
    const usage = (["hourly", "daily", "monthly"] as const).map((window) => ({
      window,
      total,
      requests: total.rpm,
    }));
    const read = {
      entityId,
      model,
      available: { rpm: rpm - total.rpm, tpm: tpm - total.tpm },
      readAtMs: 1100,
      usage,
    };
    return concerned ? Object.assign(read, change(read)) : read;
  });
  return { calls, stored, lowest: new Map() };
};

const verdicts = (given: Evidence): readonly boolean[] => runChecks(given).map(({ ok }) => ok);

describe("the checks", () => {
  it("pass when the file agrees with the call log", () => {
    expect(verdicts(evidence([call(250), call(2000, 1040), call(undefined, 1050)]))).toEqual([
      true,
      true,
      true,
      true,
    ]);
  });

  it("fail when the file holds tokens that were never earned", () => {
    const free = evidence([call(250)], ({ available }) => ({
      available: { ...available, tpm: available["tpm"]! + 200 },
    }));
    expect(verdicts(free)).toEqual([false, true, true, true]);
  });

  it("fail when no settlement explains a balance below zero", () => {
    const lowest = new Map([[limitKey("key-web", "model-large", "rpm"), -1]]);
    expect(verdicts({ ...evidence([call(250)]), lowest })).toEqual([true, false, true, true]);
  });

  it("fail when a usage window lacks a token or counts a failed call", () => {
    const less = evidence([call(250)], ({ usage }) => ({
      usage: usage.map(({ window, total, requests }) => ({
        window,
        total: window === "daily" ? { rpm: 1, tpm: 249 } : total,
        requests,
      })),
    }));
    expect(verdicts(less)).toEqual([true, true, false, true]);
    const more = evidence([call(250)], ({ usage }) => ({
      usage: usage.map((entry) => ({ window: entry.window, total: entry.total, requests: 2 })),
    }));
    expect(verdicts(more)).toEqual([true, true, false, true]);
  });

  it("fail when the project was not charged as much as its key", () => {
    const { stored, ...rest } = evidence([call(250)]);
    const uncharged = stored.map((read) =>
      read.entityId === PROJECT
        ? Object.assign(read, {
            usage: read.usage.map(({ window }) => ({ window, total: {}, requests: 0 })),
          })
        : read,
    );
    expect(verdicts({ ...rest, stored: uncharged })).toEqual([true, true, false, false]);
  });
});
