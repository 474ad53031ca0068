import { Limit, RateLimiter } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_NAMESPACE } from "../../core/namespace.ts";
import {
  USAGE_WINDOWS,
  windowEndMs,
  windowStartMs,
  type UsageRow,
  type UsageWindow,
} from "../../core/usage.ts";
import { StoreRepository } from "../management/store-repository.ts";
import { MemoryStore } from "./memory-store.ts";
import { UsageWindows } from "./usage-windows.ts";
import { MemoryUsage } from "./usage.ts";

const ONE_CALL = { requests: 1, isCascaded: false };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.UTC(2026, 0, 30, 22, 30);
const EVERYTHING = {
  entityId: undefined,
  resource: undefined,
  startMs: undefined,
  endMs: undefined,
};

function meteredUsage(maxCounts: number): {
  readonly usage: MemoryUsage;
  readonly clock: { nowMs: number };
  readonly use: (entityId: string, tokens?: number) => void;
  readonly rows: (window: UsageWindow) => readonly UsageRow[];
  readonly drops: () => number;
} {
  const clock = { nowMs: START_MS };
  let drops = 0;
  const usage = new MemoryUsage({
    nowMs: () => clock.nowMs,
    retentionDays: () => 90,
    onDropped: () => (drops += 1),
    maxCounts,
  });
  return {
    usage,
    clock,
    use: (entityId, tokens = 1) =>
      usage.record(usage.meter(entityId, "r"), { tokens }, ONE_CALL, clock.nowMs),
    rows: (window) =>
      usage.rows({ ...EVERYTHING, window }, { limit: 10_000, after: undefined }).items,
    drops: () => drops,
  };
}

describe("when there are too many counts", () => {
  it("the windows that ended first go, and those that still run stay", () => {
    const { usage, clock, use, rows } = meteredUsage(16);
    for (let hour = 0; hour < 10; hour += 1) {
      use("a");
      use("b");
      clock.nowMs += HOUR_MS;
    }
    // Ten hours, two days and one or two months of two entities would be 26 or more.
    expect(usage.size).toBeLessThanOrEqual(16);
    const hours = rows("hourly");
    const since = usage.completeSinceMs("hourly")!;
    expect(hours.length).toBeGreaterThan(0);
    expect(hours.map(({ windowStartMs: startMs }) => startMs >= since)).not.toContain(false);
    expect(hours.at(-1)?.windowStartMs).toBe(windowStartMs("hourly", clock.nowMs - HOUR_MS));
    expect(usage.completeSinceMs("monthly")).toBeUndefined();
    expect(rows("monthly").map(({ requests }) => requests)).toEqual([10, 10]);
  });

  it("the longest of those that still run go when no complete ones are left", () => {
    const { usage, clock, use, rows, drops } = meteredUsage(80);
    for (let index = 0; index < 25; index += 1) use(`e-${index}`);
    rows("hourly");
    expect(usage.size).toBe(75);
    for (let index = 25; index < 31; index += 1) use(`e-${index}`);
    expect(drops()).toBe(1);
    const [month, day, hour] = (["monthly", "daily", "hourly"] as const).map((window) =>
      usage.completeSinceMs(window),
    );
    expect([month, day, hour]).toEqual([clock.nowMs + 1, undefined, undefined]);
    expect(rows("daily")).toHaveLength(31);
    expect(rows("hourly")).toHaveLength(31);
  });

  it("even the current counts go when too many entities come within an hour, and counting continues", () => {
    const { usage, clock, use, rows } = meteredUsage(8);
    for (let index = 0; index < 100; index += 1) {
      clock.nowMs += 1;
      use(`e-${index}`);
      // The meter that has just counted is one of them.
      expect(usage.size).toBeGreaterThan(0);
      expect(usage.size).toBeLessThanOrEqual(8);
    }
    const droppedMs = usage.completeSinceMs("hourly")!;
    expect(droppedMs).toBeLessThanOrEqual(clock.nowMs + 1);
    for (const window of USAGE_WINDOWS) expect(usage.completeSinceMs(window)).toBe(droppedMs);
    clock.nowMs = windowEndMs("hourly", windowStartMs("hourly", clock.nowMs));
    use("late", 7);
    expect(rows("hourly").at(-1)).toMatchObject({ entityId: "late", counters: { tokens: 7 } });
  });

  it("late counts do not bring back a window that was dropped", () => {
    const windows = new UsageWindows();
    const hourStartMs = windowStartMs("hourly", START_MS);
    const tally = { requests: 1, names: ["rpm"], totals: [1] };
    const count = { resource: "r", ...tally, cascaded: undefined };
    expect(windows.add({ ...count, entityId: "a" }, hourStartMs)).toBe(true);
    windows.dropOldest(START_MS + HOUR_MS, 2);
    expect(windows.add({ ...count, entityId: "late" }, hourStartMs)).toBe(false);
    const shownBy = (window: UsageWindow): readonly (string | number)[] =>
      [...windows.rows({ ...EVERYTHING, window })].map(({ entityId }) => entityId);
    expect(USAGE_WINDOWS.map(shownBy)).toEqual([[], ["a", "late"], ["a", "late"]]);
    expect(windows.size).toBe(4);
  });
});

it(
  "keeps within its bound, and every window since completeSince is exact, whatever happens",
  { timeout: 60_000 },
  () => {
    const step = fc.record({
      entity: fc.integer({ min: 0, max: 11 }),
      resource: fc.constantFrom("r", "s"),
      name: fc.constantFrom("rpm", "tpm"),
      amount: fc.integer({ min: -5, max: 9 }),
      afterMs: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 2 * HOUR_MS }),
        fc.integer({ min: 0, max: 20 * DAY_MS }),
      ),
      reads: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 60, size: "max" }),
        fc.integer({ min: 4, max: 60 }),
        (steps, maxCounts) => {
          const { usage, clock, rows } = meteredUsage(maxCounts);
          const meters = new Map<string, ReturnType<MemoryUsage["meter"]>>();
          const model = new Map<string, number>();
          for (const { entity, resource, name, amount, afterMs, reads } of steps) {
            clock.nowMs += afterMs;
            const id = `e-${entity}`;
            const key = `${id} ${resource}`;
            const meter = meters.get(key) ?? usage.meter(id, resource);
            meters.set(key, meter);
            usage.record(meter, { [name]: amount }, ONE_CALL, clock.nowMs);
            for (const window of USAGE_WINDOWS) {
              const count = `${window} ${windowStartMs(window, clock.nowMs)} ${key} ${name}`;
              model.set(count, (model.get(count) ?? 0) + amount);
            }
            expect(usage.size).toBeLessThanOrEqual(maxCounts);
            if (!reads) continue;
            const oldestMs = clock.nowMs - 90 * DAY_MS;
            let kept = 0;
            for (const window of USAGE_WINDOWS) {
              const found = rows(window);
              kept += found.length;
              const sinceMs = usage.completeSinceMs(window) ?? -Infinity;
              expect(show(found, sinceMs)).toEqual(expected(model, window, sinceMs, oldestMs));
            }
            expect(usage.size).toBe(kept);
            expect(kept).toBeLessThanOrEqual(maxCounts);
          }
        },
      ),
      { numRuns: 100 },
    );
  },
);

/** The counts of windows that begin at a time or later, in any order. */
function show(rows: readonly UsageRow[], sinceMs: number): readonly string[] {
  return rows
    .filter((row) => row.windowStartMs >= sinceMs)
    .flatMap(({ window, windowStartMs: startMs, entityId, resource, counters }) =>
      Object.entries(counters).map(
        ([name, total]) => `${window} ${startMs} ${entityId} ${resource} ${name} ${total}`,
      ),
    )
    .sort();
}

function expected(
  model: ReadonlyMap<string, number>,
  window: UsageWindow,
  sinceMs: number,
  oldestMs: number,
): readonly string[] {
  return [...model]
    .filter(([count]) => {
      const [of, start] = count.split(" ");
      const startMs = Number(start);
      return of === window && startMs >= sinceMs && windowEndMs(window, startMs) > oldestMs;
    })
    .map(([count, total]) => `${count} ${total}`)
    .sort();
}

describe("a repository that had to drop usage", () => {
  const warnings: (Error & { code?: string })[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  beforeEach(() => void process.on("warning", onWarning));
  afterEach(() => {
    process.off("warning", onWarning);
    warnings.length = 0;
  });

  it("warns once, and says with the usage since when it is complete", async () => {
    const clock = new ManualClock();
    const store = new MemoryStore({
      nowMs: () => clock.now(),
      recordUsage: true,
      maxUsageCounts: 10,
    });
    store.namespaces.register(DEFAULT_NAMESPACE, () => "id", clock.now());
    const repository = new StoreRepository({
      store,
      namespaceName: DEFAULT_NAMESPACE,
      namespaceId: "id",
      options: { clock },
    });
    await repository.setSystemDefaults([Limit.perHour("rph", 10)]);
    const limiter = new RateLimiter({ repository });
    const use = (entityId: string): Promise<void> =>
      limiter.acquire({ entityId, resource: "r", consume: { rph: 1 } }, () => {});
    await use("e");
    const query = { resource: "r", window: "daily" } as const;
    expect(await repository.getUsageSummary(query)).not.toHaveProperty("completeSince");
    expect(await repository.getUsageSnapshots(query)).not.toHaveProperty("completeSince");
    for (let index = 0; index < 50; index += 1) await use(`e-${index}`);
    const since = (await repository.getUsageSummary(query)).completeSince;
    expect(since).toEqual(new Date(clock.now() + 1));
    expect((await repository.getUsageSnapshots(query)).completeSince).toEqual(since);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings.map(({ code }) => code)).toEqual(["WARN_LIMITER_USAGE_DROPPED"]);
  });
});
