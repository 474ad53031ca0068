import { checkZone, WEEKDAYS } from "./calendar.ts";
import { checkCron } from "./cron.ts";
import { ValidationError } from "./errors.ts";
import type { Calendar, Weekday } from "./limit-kinds.ts";
import { checkOptions, nearest } from "./options.ts";

/** What each calendar may have. */
const NAMES: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  ["hour", new Set(["every", "zone"])],
  ["day", new Set(["every", "zone", "at"])],
  ["week", new Set(["every", "zone", "weekday", "at"])],
  ["month", new Set(["every", "zone", "day", "at"])],
  ["cron", new Set(["cron", "zone"])],
]);

/** Returns a frozen copy of a valid calendar without its defaults, or throws. */
export function checkCalendar(value: Calendar, field: string): Calendar {
  if (typeof value !== "object" || value === null)
    throw new ValidationError(
      field,
      value,
      'must be an object such as { every: "day", zone: "Europe/Berlin" }',
    );
  const given = value as Readonly<Record<string, unknown>>;
  const every = given["cron"] === undefined ? given["every"] : "cron";
  const known = NAMES.get(every);
  if (known === undefined)
    throw new ValidationError(
      `${field}.every`,
      every,
      "must be 'hour', 'day', 'week' or 'month'; or give cron",
    );
  checkOptions(value, known, field);
  const zone = checkZone(given["zone"], `${field}.zone`);
  if (every === "cron")
    return Object.freeze({ cron: checkCron(given["cron"], `${field}.cron`), zone });
  const { at, day, weekday } = given;
  if (at !== undefined && !isTime(at))
    throw new ValidationError(`${field}.at`, at, "must be a time from 00:00 to 23:59");
  if (day !== undefined && !(Number.isInteger(day) && Number(day) >= 1 && Number(day) <= 31))
    throw new ValidationError(`${field}.day`, day, "must be a whole number from 1 to 31");
  if (weekday !== undefined && !WEEKDAYS.includes(weekday as Weekday)) {
    const meant = typeof weekday === "string" ? nearest(weekday, WEEKDAYS) : undefined;
    const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
    throw new ValidationError(`${field}.weekday`, weekday, `must be ${WEEKDAYS.join(", ")}${hint}`);
  }
  return Object.freeze({
    every,
    zone,
    ...(day !== undefined && day !== 1 && { day }),
    ...(weekday !== undefined && weekday !== "monday" && { weekday }),
    ...(at !== undefined && at !== "00:00" && { at }),
  } as Calendar);
}

/** Whether a value is a time of day. */
export function isTime(value: unknown): value is string {
  return typeof value === "string" && /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(value);
}

const GRAMMAR = /^(?<every>hour|day|week|month|cron)(?:\((?<when>[^()]*)\))?@(?<zone>[\w+/-]+)$/;

/** Parses `week(friday,09:00)@Europe/Berlin`; undefined if it is nothing like that. */
export function parseCalendar(text: string): Calendar | undefined {
  const groups = GRAMMAR.exec(text)?.groups;
  if (groups === undefined) return undefined;
  const { every, when, zone } = groups;
  if (every === "cron") return { cron: when ?? "", zone: zone! };
  const parts = when === undefined ? [] : when.split(",").map((part) => part.trim());
  const [first, at] = every === "day" ? [undefined, parts[0]] : parts;
  if (parts.length > { hour: 0, day: 1, week: 2, month: 2 }[every as "hour"]) return undefined;
  return {
    every,
    zone,
    ...(every === "week" && first !== undefined && { weekday: first }),
    ...(every === "month" && first !== undefined && { day: parseNumber(first) }),
    ...(at !== undefined && { at }),
  } as Calendar;
}

/** Formats a valid calendar so that `parseCalendar` returns the same. It has no spaces. */
export function formatCalendar(calendar: Calendar): string {
  const { zone } = calendar;
  if ("cron" in calendar) return `cron(${calendar.cron.replaceAll(" ", "_")})@${zone}`;
  const { every, at, day, weekday } = calendar as Partial<Record<string, string | number>>;
  const first = { week: "monday", month: 1 }[every as string];
  const parts = [at === undefined ? (weekday ?? day) : (weekday ?? day ?? first), at];
  const given = parts.filter((part) => part !== undefined);
  return `${every}${given.length === 0 ? "" : `(${given.join(",")})`}@${zone}`;
}

/** Digits as a number. Anything else stays, so that the check of the limit can name it. */
export function parseNumber(text: string): number {
  return /^\d+$/.test(text) ? Number(text) : (text as unknown as number);
}
