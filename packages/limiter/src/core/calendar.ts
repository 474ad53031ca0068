import { BoundedMap } from "./bounded-map.ts";
import { nextMatch } from "./cron.ts";
import { ValidationError } from "./errors.ts";
import type { Calendar, Weekday } from "./limit-kinds.ts";
import { nearest } from "./options.ts";

/**
 * The wall clock of a zone at an instant, as milliseconds as if it were UTC. Processes may have
 * different versions of the time zone data; tests pass such a clock.
 */
export type WallClock = (zone: string, ms: number) => number;

/** Where the windows of quotas end. */
export interface Boundaries {
  /** The first boundary after an instant. */
  readonly next: (calendar: Calendar, afterMs: number) => number;
  /** The boundary closest to an instant; of two that are equally close, the earlier one. */
  readonly nearest: (calendar: Calendar, ms: number) => number;
}

/**
 * Makes the functions that find boundaries. The boundary of a local time L is the first instant at
 * which the wall clock shows L or later: after a gap the first instant that exists, in an overlap
 * the earlier one. So days that begin without a midnight begin all the same, local times in one gap
 * share a boundary, and a day that does not exist has no window. Hours alone end whenever the wall
 * clock shows :00, and so twice in an overlap.
 */
export function buildBoundaries(wallClock: WallClock): Boundaries {
  // Whole fleets of buckets share few definitions, and all of them reach a boundary at once.
  // Finding one takes 60 µs.
  const nextMemo = new BoundedMap<string, readonly Span[]>(MAX_MEMOIZED);
  const nearestMemo = new BoundedMap<string, number>(MAX_MEMOIZED);
  const next = (calendar: Calendar, afterMs: number): number => {
    const key = JSON.stringify(calendar);
    const spans = nextMemo.get(key) ?? [];
    for (const { fromMs, toMs } of spans) if (fromMs <= afterMs && afterMs < toMs) return toMs;
    const toMs = findNext(calendar, afterMs, wallClock);
    const others = spans.filter((span) => span.toMs !== toMs);
    nextMemo.set(key, [{ fromMs: afterMs, toMs }, ...others.slice(0, MAX_SPANS - 1)]);
    return toMs;
  };
  const closest = (calendar: Calendar, ms: number): number => {
    const key = `${ms}${JSON.stringify(calendar)}`;
    const found = nearestMemo.get(key) ?? findNearest(calendar, ms, wallClock);
    nearestMemo.set(key, found);
    return found;
  };
  return { next, nearest: closest };
}

/** Where no boundary lies but at its end. */
interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A write asks for the end of its window and of the next one; returns may be of earlier ones. */
const MAX_SPANS = 4;

/** Most definitions or zones in a memo. A dropped one is computed again. */
const MAX_MEMOIZED = 1000;

/** The wall clock by the time zone data of this runtime. */
export function readWallClock(zone: string, ms: number): number {
  if (zone === "UTC") return ms;
  const fields: Record<string, number> = {};
  for (const { type, value } of getFormat(zone).formatToParts(ms)) fields[type] = Number(value);
  const { year, month, day, hour, minute, second } = fields;
  return Date.UTC(year!, month! - 1, day, hour, minute, second) + modulo(ms, SECOND);
}

const BOUNDARIES = buildBoundaries(readWallClock);

/** The first boundary of a calendar after an instant, by the time zone data of this runtime. */
export const nextBoundary: Boundaries["next"] = BOUNDARIES.next;

/** The boundary of a calendar that is closest to an instant. */
export const nearestBoundary: Boundaries["nearest"] = BOUNDARIES.nearest;

/**
 * Returns the name of a time zone that this runtime knows, or throws. Offsets, which begin with a
 * sign, and names that begin with a digit are refused: runtimes differ in them.
 */
export function checkZone(value: unknown, field: string): string {
  if (isKnownZone(value)) return value;
  const meant =
    typeof value === "string" ? nearest(value, Intl.supportedValuesOf("timeZone")) : undefined;
  throw new ValidationError(
    field,
    value,
    "must be an IANA time zone that this runtime knows, such as UTC or Europe/Berlin" +
      (meant === undefined ? "" : `; did you mean ${meant}?`),
  );
}

function isKnownZone(zone: unknown): zone is string {
  if (typeof zone !== "string" || !/^[A-Za-z]/.test(zone)) return false;
  try {
    getFormat(zone);
    return true;
  } catch {
    return false;
  }
}

/** Making a format takes 50 µs. */
const FORMAT_MEMO = new BoundedMap<string, Intl.DateTimeFormat>(MAX_MEMOIZED);

function getFormat(zone: string): Intl.DateTimeFormat {
  const held = FORMAT_MEMO.get(zone);
  if (held !== undefined) return held;
  const numeric = "numeric" as const;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone,
    hourCycle: "h23",
    year: numeric,
    month: numeric,
    day: numeric,
    hour: numeric,
    minute: numeric,
    second: numeric,
  });
  FORMAT_MEMO.set(zone, format);
  return format;
}

/** The days of the week as ISO 8601 counts them. */
export const WEEKDAYS: readonly Weekday[] = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
];

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function findNext(calendar: Calendar, afterMs: number, wallClock: WallClock): number {
  const { zone } = calendar;
  if ("every" in calendar && calendar.every === "hour") return nextHour(zone, afterMs, wallClock);
  return findInstant(zone, nextLocal(calendar, latestShown(zone, afterMs, wallClock)), wallClock);
}

/** The latest local time that the wall clock has shown by an instant: it may have gone back. */
function latestShown(zone: string, ms: number, wallClock: WallClock): number {
  const offsetAt = (at: number): number => wallClock(zone, at) - at;
  const [before, now] = [offsetAt(ms - DAY), offsetAt(ms)];
  if (before <= now) return ms + now;
  const changedMs = firstInstant(ms - DAY, ms, (at) => offsetAt(at) !== before);
  return Math.max(ms + now, changedMs - 1 + before);
}

function findNearest(calendar: Calendar, ms: number, wallClock: WallClock): number {
  const later = findNext(calendar, ms - 1, wallClock);
  // An earlier one has to be as close: it is the last that has a boundary after `before`.
  let [before, after] = [2 * ms - later - 1, ms];
  let earlier = findNext(calendar, before, wallClock);
  if (earlier >= ms) return later;
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    const boundary = findNext(calendar, middle, wallClock);
    if (boundary >= ms) after = middle;
    else [before, earlier] = [middle, boundary];
  }
  return earlier;
}

/** The first local time after another at which a window ends, by the calendar alone. */
function nextLocal(calendar: Exclude<Calendar, { every: "hour" }>, afterLocal: number): number {
  if ("cron" in calendar) return nextMatch(calendar.cron, afterLocal);
  const [hours, minutes] = (calendar.at ?? "00:00").split(":").map(Number) as [number, number];
  const at = hours * HOUR + minutes * MINUTE;
  const day = Math.floor((afterLocal - at) / DAY) + 1;
  if (calendar.every === "day") return day * DAY + at;
  if (calendar.every === "week") {
    // 1970-01-01 was a Thursday.
    const weekday = WEEKDAYS.indexOf(calendar.weekday ?? "monday");
    return (day + modulo(weekday - 3 - day, 7)) * DAY + at;
  }
  const date = new Date(day * DAY);
  const dayInMonth = (month: number): number => {
    const last = new Date(Date.UTC(date.getUTCFullYear(), month + 1, 0)).getUTCDate();
    return Date.UTC(date.getUTCFullYear(), month, Math.min(calendar.day ?? 1, last));
  };
  const month = date.getUTCMonth();
  const here = dayInMonth(month);
  return (here >= day * DAY ? here : dayInMonth(month + 1)) + at;
}

/** The first instant at which the wall clock shows a local time or later. */
function findInstant(zone: string, local: number, wallClock: WallClock): number {
  const offsetAt = (ms: number): number => wallClock(zone, ms) - ms;
  const offsets = [-DAY, 0, DAY].map((ms) => offsetAt(local + ms)).sort((a, b) => b - a);
  // The largest offset is the earliest instant.
  const found = offsets.find((offset) => offsetAt(local - offset) === offset);
  if (found !== undefined) return local - found;
  return firstInstant(local - offsets[0]! - 1, local - offsets.at(-1)!, (ms) => {
    return wallClock(zone, ms) >= local;
  });
}

/** The first instant after another at which the wall clock shows a full hour. */
function nextHour(zone: string, afterMs: number, wallClock: WallClock): number {
  const offsetAt = (ms: number): number => wallClock(zone, ms) - ms;
  for (let fromMs = afterMs; ;) {
    const offset = offsetAt(fromMs);
    const guess = Math.floor((fromMs + offset) / HOUR + 1) * HOUR - offset;
    if (offsetAt(guess) === offset) return guess;
    // The clock is changed before, and may be changed to a full hour.
    fromMs = firstInstant(fromMs, guess, (ms) => offsetAt(ms) !== offset);
    if (modulo(wallClock(zone, fromMs), HOUR) === 0) return fromMs;
  }
}

/** The first instant after `low`, and not after `high`, for which a question turns true. */
function firstInstant(low: number, high: number, isReached: (ms: number) => boolean): number {
  let [before, after] = [low, high];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (isReached(middle)) after = middle;
    else before = middle;
  }
  return after;
}

function modulo(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
