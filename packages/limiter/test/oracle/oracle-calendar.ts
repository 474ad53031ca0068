/*
 * When the windows of quotas end, found by a search in steps of 15 minutes: each boundary and each
 * change of a clock here is on such a step. The zones are written out; nothing is asked of Intl.
 */

/** When a quota resets, as configuration states it. */
export type CalendarSpec = { readonly zone: string } & (
  | { readonly every: "hour" }
  | { readonly every: "day"; readonly at?: string }
  | { readonly every: "week"; readonly weekday?: Weekday; readonly at?: string }
  | { readonly every: "month"; readonly day?: number; readonly at?: string }
  | { readonly cron: string }
);

type Weekday = "monday" | "wednesday" | "sunday";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const STEP_MS = 15 * MINUTE_MS;

/** A time of the year: the week of a month (-1: the last), a weekday, and the time in UTC. */
type Change = readonly [month: number, week: number, weekday: number, utcMs: number];

/** Offsets of standard and of summer time, and when summer time begins and ends. */
const ZONES: Readonly<Record<string, readonly [number, number, Change, Change]>> = {
  "Europe/Berlin": [HOUR_MS, 2 * HOUR_MS, [2, -1, 0, HOUR_MS], [9, -1, 0, HOUR_MS]],
  // Its summer has no first midnight, and two midnights on its last day.
  "America/Havana": [-5 * HOUR_MS, -4 * HOUR_MS, [2, 1, 0, 5 * HOUR_MS], [10, 0, 0, 5 * HOUR_MS]],
  // Half an hour, at two o'clock, in a summer that begins in October.
  "Australia/Lord_Howe": [
    10.5 * HOUR_MS,
    11 * HOUR_MS,
    [9, 0, 0, -8.5 * HOUR_MS],
    [3, 0, 0, -9 * HOUR_MS],
  ],
};

/** The offset of a zone at an instant. */
export function offsetMs(zone: string, atMs: number): number {
  const rule = ZONES[zone];
  if (rule === undefined) return 0;
  const [standard, summer, begins, ends] = rule;
  const year = new Date(atMs).getUTCFullYear();
  const [fromMs, untilMs] = [changeMs(zone, year, begins), changeMs(zone, year, ends)];
  const isSummer =
    fromMs < untilMs ? fromMs <= atMs && atMs < untilMs : atMs >= fromMs || atMs < untilMs;
  return isSummer ? summer : standard;
}

const changes = new Map<string, number>();

function changeMs(zone: string, year: number, [month, week, weekday, utcMs]: Change): number {
  const key = `${zone} ${year} ${month}`;
  const held = changes.get(key);
  if (held !== undefined) return held;
  const days: number[] = [];
  for (let dayMs = Date.UTC(year, month); dayMs < Date.UTC(year, month + 1); dayMs += DAY_MS)
    if (new Date(dayMs).getUTCDay() === weekday) days.push(dayMs);
  const found = days.at(week)! + utcMs;
  changes.set(key, found);
  return found;
}

/** The first boundary after an instant. */
export function boundaryAfter(calendar: CalendarSpec, afterMs: number): number {
  for (let part = Math.floor(afterMs / PART_MS); ; part += 1) {
    const found = boundariesIn(calendar, part).find((boundaryMs) => boundaryMs > afterMs);
    if (found !== undefined) return found;
  }
}

/** What is searched at once, and remembered. */
const PART_MS = 4 * DAY_MS;
const known = new Map<CalendarSpec, Map<number, readonly number[]>>();

/**
 * A window ends when the wall clock first shows a local time of the calendar, or a later one; an
 * hour whenever it shows a full hour.
 */
function boundariesIn(calendar: CalendarSpec, part: number): readonly number[] {
  const parts = known.get(calendar) ?? new Map<number, readonly number[]>();
  known.set(calendar, parts);
  const held = parts.get(part);
  if (held !== undefined) return held;
  const found: number[] = [];
  const fromMs = part * PART_MS;
  const beforeMs = fromMs - DAY_MS;
  let latest = beforeMs + offsetMs(calendar.zone, beforeMs);
  for (let atMs = beforeMs; atMs < fromMs + PART_MS; atMs += STEP_MS) {
    const wall = atMs + offsetMs(calendar.zone, atMs);
    let isBoundary = "every" in calendar && calendar.every === "hour" && wall % HOUR_MS === 0;
    for (let local = latest + STEP_MS; local <= wall && !isBoundary; local += STEP_MS)
      isBoundary = endsAt(calendar, local);
    latest = Math.max(latest, wall);
    if (isBoundary && atMs >= fromMs) found.push(atMs);
  }
  parts.set(part, found);
  return found;
}

/** Whether windows end at a local time, given as if it were UTC. */
function endsAt(calendar: CalendarSpec, local: number): boolean {
  const date = new Date(local);
  const minuteOfDay = Math.floor((local % DAY_MS) / MINUTE_MS);
  if ("cron" in calendar) {
    const [minute, hour, day, month, weekday] = calendar.cron.split(" ");
    return (
      matches(minute!, minuteOfDay % 60) &&
      matches(hour!, Math.floor(minuteOfDay / 60)) &&
      matches(day!, date.getUTCDate()) &&
      matches(month!, date.getUTCMonth() + 1) &&
      matches(weekday!, date.getUTCDay())
    );
  }
  if (calendar.every === "hour") return false;
  const [hours, minutes] = (calendar.at ?? "00:00").split(":").map(Number);
  if (minuteOfDay !== hours! * 60 + minutes!) return false;
  if (calendar.every === "day") return true;
  if (calendar.every === "week")
    return (
      date.getUTCDay() === { sunday: 0, monday: 1, wednesday: 3 }[calendar.weekday ?? "monday"]
    );
  const isLast = new Date(local + DAY_MS).getUTCMonth() !== date.getUTCMonth();
  const day = calendar.day ?? 1;
  return date.getUTCDate() === day || (isLast && date.getUTCDate() < day);
}

/** A field of a cron expression: a star, or numbers and ranges. */
function matches(field: string, value: number): boolean {
  return field.split(",").some((range) => {
    const [first, last = first] = range.split("-");
    return range === "*" || (Number(first) <= value && value <= Number(last));
  });
}
