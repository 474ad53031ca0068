import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ownUsage,
  toSnapshot,
  summarize,
  USAGE_WINDOWS,
  windowEndMs,
  windowStartMs,
  type UsageRow,
  type UsageSnapshot,
} from "./usage.ts";

const time = fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2200, 0, 1) });

describe("windows", () => {
  it.each([
    ["hourly", "2026-03-29T01:59:59.999Z", "2026-03-29T01:00:00.000Z", "2026-03-29T02:00:00.000Z"],
    ["daily", "2026-12-31T23:59:59.999Z", "2026-12-31T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["monthly", "2026-01-31T12:00:00.000Z", "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z"],
    ["monthly", "2026-02-28T23:59:59.999Z", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"],
    ["monthly", "2028-02-29T12:00:00.000Z", "2028-02-01T00:00:00.000Z", "2028-03-01T00:00:00.000Z"],
    ["monthly", "2100-02-28T12:00:00.000Z", "2100-02-01T00:00:00.000Z", "2100-03-01T00:00:00.000Z"],
    ["monthly", "2026-12-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z", "2027-01-01T00:00:00.000Z"],
  ] as const)("%s of %s begins at %s and ends at %s", (window, at, start, end) => {
    const startMs = windowStartMs(window, Date.parse(at));
    expect([startMs, windowEndMs(window, startMs)].map((ms) => new Date(ms).toISOString())).toEqual(
      [start, end],
    );
  });

  it("contain every time exactly once, and follow each other without a gap", () => {
    fc.assert(
      fc.property(fc.constantFrom(...USAGE_WINDOWS), time, (window, timeMs) => {
        const startMs = windowStartMs(window, timeMs);
        const endMs = windowEndMs(window, startMs);
        expect(startMs <= timeMs && timeMs < endMs).toBe(true);
        expect(windowStartMs(window, startMs)).toBe(startMs);
        expect(windowStartMs(window, endMs - 1)).toBe(startMs);
        expect(windowStartMs(window, endMs)).toBe(endMs);
      }),
    );
  });
});

describe("snapshots", () => {
  const startMs = Date.UTC(2026, 1, 1);
  const row: UsageRow = {
    entityId: "e",
    resource: "r",
    window: "monthly",
    windowStartMs: startMs,
    counters: { rpm: 3 },
    requests: 2,
    cascaded: { rpm: 1 },
    cascadedRequests: 1,
  };

  const at = (month: number, counters: Record<string, number>): UsageSnapshot =>
    toSnapshot({ ...row, windowStartMs: Date.UTC(2026, month, 1), counters }, startMs);

  it("are complete when their window has ended", () => {
    const endMs = Date.UTC(2026, 2, 1);
    expect(toSnapshot(row, endMs - 1)).toEqual({
      entityId: "e",
      resource: "r",
      window: "monthly",
      windowStart: new Date(startMs),
      windowEnd: new Date(endMs),
      counters: { rpm: 3 },
      requests: 2,
      cascaded: { rpm: 1 },
      cascadedRequests: 1,
      complete: false,
    });
    expect(toSnapshot(row, endMs).complete).toBe(true);
  });

  it("of an entity's own calls exclude what came by cascade, which stays in its own field", () => {
    const own = ownUsage({
      ...row,
      counters: { rpm: 3, constructor: 9 },
      cascaded: { rpm: 4, constructor: 9 },
    });
    expect(own).toEqual({
      ...row,
      counters: { rpm: -1, constructor: 0 },
      requests: 1,
      cascaded: { rpm: 4, constructor: 9 },
    });
  });

  it("add up, with averages by window, even if several are of one window", () => {
    const snapshots = [at(4, { rpm: 1 }), at(4, { rpm: 5 }), at(2, { rpm: 3 }), at(2, {})];
    expect(summarize(snapshots)).toMatchObject({
      snapshotCount: 4,
      total: { rpm: 9 },
      average: { rpm: 4.5 },
      minWindowStart: new Date(Date.UTC(2026, 2, 1)),
      maxWindowStart: new Date(Date.UTC(2026, 4, 1)),
    });
  });

  it("add up, with averages over all windows and the first and last start", () => {
    expect(
      summarize([
        at(4, { rpm: 1 }),
        at(2, { rpm: 5, tpm: -4 }),
        at(3, {}),
        at(5, { constructor: 8 }),
      ]),
    ).toEqual({
      snapshotCount: 4,
      total: { rpm: 6, tpm: -4, constructor: 8 },
      average: { rpm: 1.5, tpm: -1, constructor: 2 },
      requests: 8,
      cascaded: { rpm: 4 },
      cascadedRequests: 4,
      minWindowStart: new Date(Date.UTC(2026, 2, 1)),
      maxWindowStart: new Date(Date.UTC(2026, 5, 1)),
    });
  });

  it("add up exactly to the thousandth of a token", () => {
    const snapshots = [at(4, { tpm: 0.1 }), at(2, { tpm: 0.2 }), at(3, { tpm: 1000.403 })];
    expect(summarize(snapshots).total).toEqual({ tpm: 1000.703 });
    const own = ownUsage({ ...row, counters: { rpm: 0.3 }, cascaded: { rpm: 0.1 } });
    expect(own.counters).toEqual({ rpm: 0.2 });
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1e12, max: 1e12 }), { minLength: 1 }), (milli) => {
        const total = milli.reduce((sum, amount) => sum + amount);
        const parts = milli.map((amount) => at(1, { tpm: amount / 1000 }));
        expect(summarize(parts).total["tpm"]! + 0).toBe(total / 1000);
      }),
    );
  });

  it("of no windows add up to zero", () => {
    expect(summarize([])).toEqual({
      snapshotCount: 0,
      total: {},
      average: {},
      requests: 0,
      cascaded: {},
      cascadedRequests: 0,
      minWindowStart: undefined,
      maxWindowStart: undefined,
    });
  });
});
