import { expect, it } from "vitest";
import type { QuotaLimit } from "../limit-kinds.ts";
import { Limit } from "../limit.ts";
import type { SupportedLimit } from "../supported-limits.ts";
import { bucketLimit } from "./bucket.ts";
import { mergeWindows } from "./merge-windows.ts";
import { shardLimit } from "./shares.ts";
import type { WindowState } from "./windows.ts";

const HOUR_MS = 3_600_000;
/** An hour that has just begun. */
const NOW_MS = Date.UTC(2026, 0, 4, 12);
const [EARLY_MS, OVER_MS, OPEN_MS] = [NOW_MS - HOUR_MS / 4, NOW_MS, NOW_MS + HOUR_MS];

/** The halves of a quota of 20 an hour; the shares are 10,000 millitokens. */
function merge(
  halves: readonly (readonly [storedMilli: number, endMs: number])[],
  {
    carry,
    limit = Limit.quota("tph", 20, { every: "hour", zone: "UTC" }, { ...(carry && { carry }) }),
    nowMs = NOW_MS + 1,
  }: {
    readonly carry?: QuotaLimit["carry"];
    readonly limit?: SupportedLimit;
    readonly nowMs?: number;
  } = {},
): WindowState | undefined {
  return mergeWindows(
    halves.map(([storedMilli, endMs], shard) => {
      const { window } = shardLimit(bucketLimit(limit, false), shard, 2);
      return { window: window!, storedMilli, endMs };
    }),
    nowMs,
  );
}

it("adds what is left of one window, also what is above a share, and whether it is over or not", () => {
  const halves = [
    [12_000, OPEN_MS],
    [-3000, OPEN_MS],
  ] as const;
  for (const nowMs of [NOW_MS + 1, OPEN_MS + 1])
    expect(merge(halves, { nowMs })).toEqual({ storedMilli: 9000, endMs: OPEN_MS });
});

it.each([
  ["a share", undefined, 4000, NOW_MS, 10_000],
  ["a share, for what was never opened", undefined, 4000, 0, 10_000],
  ["a share less the debt that is carried", { debt: true }, -4000, OVER_MS, 6000],
  ["the same, ended early by other time zone data", { debt: true }, -4000, EARLY_MS, 6000],
  ["two shares less a deep one, after two ends", { debt: true }, -15_000, OVER_MS - HOUR_MS, 5000],
  ["a share and what is carried of the rest", { unused: 6 }, 2500, OVER_MS, 12_500],
  ["a share and the most that is carried", { unused: 6 }, 5000, OVER_MS, 13_000],
] as const)("brings of a half whose window is over %s", (_, carry, milli, endMs, brought) => {
  const open = [1000, OPEN_MS] as const;
  const merged = { storedMilli: 1000 + brought, endMs: OPEN_MS };
  expect(merge([open, [milli, endMs]], { carry })).toEqual(merged);
  expect(merge([[milli, endMs], open], { carry })).toEqual(merged);
});

it("waits while the half with the older window still has it open", () => {
  const halves = [
    [1000, OPEN_MS],
    [4000, OVER_MS],
  ] as const;
  expect(merge(halves, { nowMs: OVER_MS - 1 })).toBeUndefined();
  expect(merge(halves, { nowMs: OVER_MS })).toBeDefined();
});

it("takes ends by other time zone data for one window, and fills nothing", () => {
  const foreignMs = OPEN_MS - HOUR_MS / 4;
  const halves = [
    [1000, OPEN_MS],
    [4000, foreignMs],
  ] as const;
  for (const nowMs of [NOW_MS + 1, foreignMs + 1])
    expect(merge(halves, { nowMs })).toEqual({ storedMilli: 5000, endMs: OPEN_MS });
});

it("adds two open sessions, up to the later end", () => {
  const limit = Limit.session("messages", 20, { windowSeconds: 3600 });
  const halves = [
    [1000, NOW_MS + 50],
    [4000, OPEN_MS],
  ] as const;
  expect(merge(halves, { limit })).toEqual({ storedMilli: 5000, endMs: OPEN_MS });
  expect(merge(halves, { limit, nowMs: NOW_MS + 50 })).toEqual({
    storedMilli: 14_000,
    endMs: OPEN_MS,
  });
});
