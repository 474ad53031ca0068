import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyCalendar } from "../../test/support/any-limit.ts";
import { getEach, seedsFromEnvironment } from "../../test/support/seeded/seeds.ts";
import {
  buildBoundaries,
  nearestBoundary,
  nextBoundary,
  readWallClock,
  type WallClock,
} from "./calendar.ts";
import type { Calendar } from "./limit-kinds.ts";

const SEEDS = seedsFromEnvironment({ usual: 12 });
const ANY_TIME = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2032, 0) });
const MINUTE = 60_000;
const DAY = 1440 * MINUTE;

/** The next boundaries after a time, to the minute, in UTC. */
function list(calendar: Calendar, after: string, count: number): readonly string[] {
  let ms = Date.parse(after);
  return Array.from({ length: count }, () => {
    ms = nextBoundary(calendar, ms);
    return new Date(ms).toISOString().slice(5, 16);
  });
}

const daily = (zone: string, at?: string): Calendar => ({
  every: "day",
  zone,
  ...(at !== undefined && { at }),
});

describe("boundaries", () => {
  it.each<[name: string, calendar: Calendar, after: string, boundaries: readonly string[]]>([
    [
      "no midnight in Cairo",
      daily("Africa/Cairo"),
      "2025-04-23T22:30Z",
      ["04-24T22:00", "04-25T21:00"],
    ],
    [
      "no midnight in Havana",
      daily("America/Havana"),
      "2025-03-08T12:00Z",
      ["03-09T05:00", "03-10T04:00"],
    ],
    [
      "two midnights in Havana",
      daily("America/Havana"),
      "2025-11-01T12:00Z",
      ["11-02T04:00", "11-03T05:00"],
    ],
    [
      "between the two half past midnights",
      daily("America/Havana", "00:30"),
      "2025-11-02T05:10Z",
      ["11-03T05:30"],
    ],
    [
      "02:30 that does not exist in Berlin",
      daily("Europe/Berlin", "02:30"),
      "2026-03-28T12:00Z",
      ["03-29T01:00", "03-30T00:30"],
    ],
    [
      "02:30 twice in Berlin",
      daily("Europe/Berlin", "02:30"),
      "2026-10-24T12:00Z",
      ["10-25T00:30", "10-26T01:30"],
    ],
    [
      "the end of an overlap",
      daily("Europe/Berlin", "03:00"),
      "2026-10-25T01:10Z",
      ["10-25T02:00"],
    ],
    [
      "half an hour on Lord Howe, both ways",
      { every: "hour", zone: "Australia/Lord_Howe" },
      "2026-04-04T13:10Z",
      ["04-04T14:00", "04-04T15:30", "04-04T16:30"],
    ],
    [
      "an hour that begins without :00",
      { every: "hour", zone: "Australia/Lord_Howe" },
      "2026-10-03T14:10Z",
      ["10-03T14:30", "10-03T16:00", "10-03T17:00"],
    ],
    [
      "both hours of an overlap",
      { every: "hour", zone: "Europe/Berlin" },
      "2026-10-24T23:10Z",
      ["10-25T00:00", "10-25T01:00", "10-25T02:00"],
    ],
    [
      "a day that Apia skipped",
      daily("Pacific/Apia"),
      "2011-12-29T00:00Z",
      ["12-29T10:00", "12-30T10:00", "12-31T10:00"],
    ],
    [
      "the 31st",
      { every: "month", zone: "Asia/Kathmandu", day: 31 },
      "2026-01-15T00:00Z",
      ["01-30T18:15", "02-27T18:15", "03-30T18:15", "04-29T18:15"],
    ],
    [
      "a leap day",
      { every: "month", zone: "UTC", day: 30, at: "12:00" },
      "2028-02-01T00:00Z",
      ["02-29T12:00", "03-30T12:00"],
    ],
    [
      "the end of a year",
      { every: "month", zone: "UTC" },
      "2026-11-01T00:00Z",
      ["12-01T00:00", "01-01T00:00", "02-01T00:00"],
    ],
    [
      "weeks of ISO 8601",
      { every: "week", zone: "Europe/Berlin" },
      "2026-12-31T00:00Z",
      ["01-03T23:00", "01-10T23:00"],
    ],
    [
      "weeks that begin on Friday at nine",
      { every: "week", zone: "America/New_York", weekday: "friday", at: "09:00" },
      "2026-10-30T13:00Z",
      ["11-06T14:00"],
    ],
    [
      "leap days of cron",
      { cron: "0 0 29 2 *", zone: "UTC" },
      "2096-03-01T00:00Z",
      ["02-29T00:00", "02-29T00:00"],
    ],
    [
      "cron over an overlap, which repeats nothing",
      { cron: "*/30 1-3 * * *", zone: "Europe/Berlin" },
      "2026-10-24T23:45Z",
      ["10-25T00:00", "10-25T00:30", "10-25T02:00", "10-25T02:30"],
    ],
  ])("know %s", (_, calendar, after, boundaries) => {
    expect(list(calendar, after, boundaries.length)).toEqual(boundaries);
  });

  it("agree with a search by minutes", { timeout: 30_000 + 1000 * SEEDS.count }, () => {
    const zones = Intl.supportedValuesOf("timeZone");
    for (const seed of getEach(SEEDS)) {
      // Consecutive seeds go through all zones.
      const zone = zones[seed % zones.length]!;
      const checked = fc.property(anyCalendar(fc.constant(zone)), ANY_TIME, (calendar, ms) => {
        for (const afterMs of [ms, ...listChanges(zone, ms)]) {
          const [boundary, found] = [nextBoundary, searchByMinutes].map((find) =>
            find(calendar, afterMs),
          );
          const isFar = boundary! > afterMs + SEARCHED_MS - MINUTE;
          const again = `after ${afterMs} (again: SEED=${seed} SEEDS=1)`;
          if (found === undefined) expect(isFar, again).toBe(true);
          else expect(boundary, again).toBe(found);
        }
      });
      fc.assert(checked, { seed, numRuns: 3 });
    }
  });

  it("are remembered until they have passed, and a clock that goes back finds the earlier one", () => {
    let reads = 0;
    const boundaries = buildBoundaries((zone, ms) => {
      reads += 1;
      return readWallClock(zone, ms);
    });
    const calendar = daily("Europe/Berlin");
    const first = boundaries.next(calendar, 0);
    const once = reads;
    expect(boundaries.next(daily("Europe/Berlin"), first - 1)).toBe(first);
    expect(reads).toBe(once);
    expect(boundaries.next(calendar, first)).toBeGreaterThan(first);
    const twice = reads;
    // A write asks for both.
    expect(boundaries.next(calendar, first - 1)).toBe(first);
    expect(boundaries.next(calendar, first)).toBeGreaterThan(first);
    expect(reads).toBe(twice);
    expect(boundaries.next(calendar, -1)).toBe(first);
    expect(boundaries.next(calendar, -DAY)).toBeLessThan(first);
  });
});

describe("the boundary closest to an instant", () => {
  it("is the last of those before, or the first of those after", () => {
    const calendar: Calendar = { cron: "0 0 1,2,4,20 * *", zone: "Europe/Berlin" };
    const all = [Date.UTC(2026, 0)];
    while (all.length < 60) all.push(nextBoundary(calendar, all.at(-1)!));
    fc.assert(
      fc.property(fc.integer({ min: all[5]!, max: all[50]! }), fc.boolean(), (ms, isMiddle) => {
        const index = all.findIndex((boundary) => boundary >= ms);
        const [before, after] = [all[index - 1]!, all[index]!];
        const at = isMiddle ? (before + after) / 2 : ms;
        const expected = at - before <= after - at ? before : after;
        expect(nearestBoundary(calendar, at)).toBe(expected);
        expect(nearestBoundary(calendar, after)).toBe(after);
      }),
    );
  });

  it("is the same boundary, as a process with other time zone data knows it", () => {
    const clock: WallClock = (_, ms) => ms + 120 * MINUTE;
    const older = buildBoundaries((_, ms) => ms + 60 * MINUTE);
    const newer = buildBoundaries(clock);
    const calendar = daily("Europe/Berlin");
    const end = newer.next(calendar, Date.UTC(2026, 0, 5, 12));
    const here = older.nearest(calendar, end);
    expect(here - end).toBe(60 * MINUTE);
    expect(older.next(calendar, Math.max(end, here)) - here).toBe(DAY);
    expect(newer.nearest(calendar, here)).toBe(end);
    expect(newer.next(calendar, Math.max(here, newer.nearest(calendar, here))) - end).toBe(DAY);
  });
});

/** Shortly before and after the first change of a zone's clock in two years. */
function listChanges(zone: string, fromMs: number): readonly number[] {
  const offsetAt = (ms: number): number => readWallClock(zone, ms) - ms;
  for (let ms = fromMs; ms < fromMs + 730 * DAY; ms += DAY)
    if (offsetAt(ms) !== offsetAt(ms + DAY))
      return [ms - DAY, ms + DAY / 2, ms + DAY - 1, ms + DAY];
  return [];
}

/** Further away, the search only says that there is nothing in between. */
const SEARCHED_MS = 45 * DAY;

/**
 * The first full minute after an instant at which the wall clock has come to a local time that ends
 * a window, and that it had not shown before.
 */
function searchByMinutes(calendar: Calendar, afterMs: number): number | undefined {
  const readWall = readInQuarters(calendar.zone);
  const start = Math.floor(afterMs / MINUTE) * MINUTE;
  let shown = -Infinity;
  for (let ms = start - 2 * DAY; ms <= afterMs; ms += MINUTE) shown = Math.max(shown, readWall(ms));
  for (let ms = start + MINUTE; ms <= start + SEARCHED_MS; ms += MINUTE) {
    const wall = readWall(ms);
    if ("every" in calendar && calendar.every === "hour") {
      if (wall % (60 * MINUTE) === 0) return ms;
      continue;
    }
    for (let local = shown + MINUTE; local <= wall; local += MINUTE)
      if (matchesLocal(calendar, new Date(local))) return ms;
    shown = Math.max(shown, wall);
  }
  return undefined;
}

/** Clocks are changed at quarters of an hour only. */
function readInQuarters(zone: string): (ms: number) => number {
  const offsets = new Map<number, number>();
  return (ms) => {
    const quarter = Math.floor(ms / (15 * MINUTE)) * 15 * MINUTE;
    const offset = offsets.get(quarter) ?? readWallClock(zone, quarter) - quarter;
    offsets.set(quarter, offset);
    return ms + offset;
  };
}

function matchesLocal(calendar: Calendar, local: Date): boolean {
  if ("cron" in calendar) {
    const [minute, hour, day, month, weekday] = calendar.cron.split(" ") as [string, ...string[]];
    // Sunday is 0 and 7.
    const numbers = [local.getUTCDay(), local.getUTCDay() || 7];
    const isWeekday = numbers.some((number) => matchesField(weekday!, number, DAYS));
    return (
      isWeekday &&
      matchesField(minute, local.getUTCMinutes()) &&
      matchesField(hour!, local.getUTCHours()) &&
      matchesField(day!, local.getUTCDate(), [], 1) &&
      matchesField(month!, local.getUTCMonth() + 1, MONTHS, 1)
    );
  }
  const { at = "00:00" } = calendar as { readonly at?: string };
  if (local.toISOString().slice(11, 16) !== at) return false;
  if (calendar.every === "week")
    return (
      local.toLocaleDateString("en", { weekday: "long", timeZone: "UTC" }).toLowerCase() ===
      (calendar.weekday ?? "monday")
    );
  if (calendar.every !== "month") return true;
  const { day = 1 } = calendar;
  const isLast = new Date(local.getTime() + DAY).getUTCDate() === 1;
  return local.getUTCDate() === day || (isLast && local.getUTCDate() < day);
}

const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const MONTHS = ["", ..."jan feb mar apr may jun jul aug sep oct nov dec".split(" ")];

function matchesField(
  text: string,
  value: number,
  names: readonly string[] = [],
  least = 0,
): boolean {
  const read = (word: string): number =>
    names.includes(word) ? names.indexOf(word) : Number(word);
  return text.split(",").some((part) => {
    const [range = "", step = "1"] = part.split("/");
    const [from = "", to = from] = range === "*" ? [String(least), "99"] : range.split("-");
    const last = read(to) < read(from) ? 7 : read(to);
    return value >= read(from) && value <= last && (value - read(from)) % Number(step) === 0;
  });
}
