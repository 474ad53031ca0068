import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  listEnds,
  holdsAll,
  milliAt,
  newBucket,
  readCharged,
  under,
} from "../../../test/oracle/oracle-bucket.ts";
import { isOpen, isReturnLost } from "../../../test/oracle/window-balance.ts";
import { Strictness } from "../../../test/oracle/strictness.ts";
import { toTerms, type LimitSpec } from "../../../test/oracle/terms.ts";
import {
  apply,
  balanceMilli,
  bucketLimits,
  findOpenEndMs,
  fullBucket,
  getConsumedMilli,
  holds,
  listWindowEnds,
  waitMs,
} from "./bucket.ts";
import { withLimits } from "./limit-change.ts";

/** Five minutes past, an hour before the clocks change on Lord Howe. */
const START_MS = Date.UTC(2026, 3, 4, 14, 5);
const MINUTE_MS = 60_000;

type Shape = (capacity: number) => LimitSpec;

const name = "tpm";
const rates: readonly Shape[] = [7, 600].map((refillPeriodSeconds) => (capacity) => ({
  name,
  capacity,
  refillAmount: 1,
  refillPeriodSeconds,
}));
const sessions: readonly Shape[] = [3600, 7200].map((windowSeconds) => (capacity) => ({
  name,
  kind: "session",
  capacity,
  windowSeconds,
}));
const quotas: readonly Shape[] = [
  { resets: { every: "hour", zone: "UTC" } },
  { resets: { every: "hour", zone: "Australia/Lord_Howe" }, carry: { debt: true } },
  { resets: { every: "day", zone: "America/Havana" }, carry: { unused: 5 } },
  { resets: { cron: "30 6,18 * * 1-5", zone: "Europe/Berlin" }, carry: { debt: true, unused: 3 } },
].map((quota) => (capacity) => ({ name, kind: "quota", capacity, ...quota }) as LimitSpec);
const kinds = [rates, sessions, quotas];

const anyLimit = fc
  .tuple(fc.constantFrom(...kinds.flat()), fc.integer({ min: 1, max: 30 }))
  .map(([shape, capacity]) => shape(capacity));

/** Limits of one capacity and any kind, or of one kind and any capacity. */
const related = fc.oneof(
  fc.tuple(fc.constant(kinds.flat()), fc.constantFrom([5], [20])),
  fc.tuple(fc.constantFrom(...kinds), fc.constant([3, 10, 25])),
);

describe("limits with windows", () => {
  it("hold, charge, return, wait and change as the exact model does, over all pairs of kinds", () => {
    const moves = fc.array(
      fc.record({
        limit: fc.option(anyLimit, { nil: undefined, freq: 2 }),
        keepCut: fc.boolean(),
        elapsedMs: fc.oneof(
          fc.integer({ min: -5 * MINUTE_MS, max: 90 * MINUTE_MS }),
          fc.constant(2880 * MINUTE_MS),
        ),
        tokens: fc.integer({ min: -20, max: 40 }),
        returned: fc.nat({ max: 10 }),
      }),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(anyLimit, moves, (first, steps) => {
        let nowMs = START_MS;
        let bucket = fullBucket(bucketLimits([first]), nowMs);
        let oracle = newBucket([toTerms(first)], 1, nowMs);
        const strictness = new Strictness();
        const takes = [{ own: listWindowEnds(bucket), expected: listEnds(oracle) }];
        for (const { limit, keepCut, elapsedMs, tokens, returned } of steps) {
          nowMs += elapsedMs;
          if (limit !== undefined) {
            bucket = withLimits(bucket, bucketLimits([limit]), nowMs, { keepCut });
            oracle = under(oracle, [toTerms(limit)], nowMs, keepCut);
          }
          const fits = holds(bucket, [Math.max(0, tokens) * 1000], nowMs);
          expect(fits).toBe(holdsAll(oracle, { tpm: Math.max(0, tokens) }, nowMs));
          // What goes back belongs to an older take; what does not fit is charged all the same.
          const { own, expected } = takes[returned % takes.length]!;
          const found = oracle.balances[0]!;
          const takenEndMs = expected.get(name);
          bucket = apply(bucket, [tokens * 1000], nowMs, own);
          oracle = readCharged(oracle, { tpm: tokens }, nowMs, expected);
          if (tokens > 0)
            takes.unshift({ own: listWindowEnds(bucket), expected: listEnds(oracle) });
          const [balance] = oracle.balances;
          expect(getConsumedMilli(bucket, 0)).toBe(Number(balance!.consumedMilli));
          expect(findOpenEndMs(bucket, 0, nowMs)).toBe(
            isOpen(balance!, nowMs) ? balance!.endMs : undefined,
          );
          for (const atMs of [nowMs, nowMs + 1_000_000])
            expect(balanceMilli(bucket, 0, atMs)).toBe(
              Number(milliAt(balance!, oracle.stampMs, atMs)),
            );
          const needed = 1000 * Math.abs(tokens);
          const wait = waitMs(bucket, 0, needed, nowMs);
          const at = (ms: number): number => balanceMilli(bucket, 0, nowMs + ms);
          expect(at(Number.isFinite(wait) ? wait : 4e12) >= needed).toBe(Number.isFinite(wait));
          if (wait > 0 && Number.isFinite(wait)) expect(at(wait - 1)).toBeLessThan(needed);
          const isLost = isReturnLost(found, { costMilli: BigInt(tokens), takenEndMs }, nowMs);
          const { terms, opened = 0 } = balance!;
          const change = { tokens: isLost ? 0 : tokens, terms, opened };
          expect(strictness.add(oracle.stampMs, change, fits)).toBeUndefined();
        }
      }),
      { numRuns: 300 },
    );
  });

  it("grant no more while no window ends, however often kind, calendar or capacity are changed", () => {
    const moves = fc.array(
      fc.tuple(fc.nat({ max: 100 }), fc.boolean(), fc.nat({ max: 60_000 }), fc.nat({ max: 12 })),
      { minLength: 5, maxLength: 40 },
    );
    fc.assert(
      fc.property(related, moves, ([shapes, capacities], steps) => {
        const limits = capacities.flatMap((capacity) => shapes.map((shape) => shape(capacity)));
        let nowMs = START_MS;
        let bucket = fullBucket(bucketLimits([limits[0]!]), nowMs);
        let granted = 0;
        for (const [choice, keepCut, elapsedMs, tokens] of steps) {
          nowMs = Math.min(nowMs + elapsedMs, START_MS + 20 * MINUTE_MS);
          // Beyond the last one, the limit leaves and is hidden.
          const wanted = limits.slice(choice % (limits.length + 1)).slice(0, 1);
          bucket = withLimits(bucket, bucketLimits(wanted), nowMs, { keepCut });
          if (wanted.length === 0 || !holds(bucket, [tokens * 1000], nowMs)) continue;
          bucket = apply(bucket, [tokens * 1000], nowMs);
          granted += tokens;
        }
        const earned = shapes.some((shape) => rates.includes(shape))
          ? (nowMs - START_MS) / 7000
          : 0;
        expect(granted).toBeLessThanOrEqual(Math.max(...capacities) + earned);
      }),
      { numRuns: 500 },
    );
  });

  it("finds the wait for a debt of a thousand windows without looking at each again", () => {
    const [owing] = bucketLimits([quotas[1]!(10)]);
    const bucket = apply(fullBucket([owing!], START_MS), [9_000_000], START_MS);
    const before = process.cpuUsage().user;
    // 8.99 thousand tokens are paid by 899 windows; the first ends within the hour.
    const wait = waitMs(bucket, 0, 0, START_MS);
    expect(Math.ceil(wait / (60 * MINUTE_MS))).toBeGreaterThan(898);
    expect(process.cpuUsage().user - before).toBeLessThan(5_000_000);
  });
});
