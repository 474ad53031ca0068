import { isTime, parseNumber } from "./calendar-text.ts";
import { checkZone } from "./calendar.ts";
import { ValidationError } from "./errors.ts";
import type { AnyLimit, Profile } from "./limit-kinds.ts";
import { checkOptions } from "./options.ts";

/** The largest percentage of a profile: a hundred times as much. */
const MOST_PERCENT = 10_000;

const DAYS = "mon tue wed thu fri sat sun".split(" ");
const DAY = `(?:${DAYS.join("|")})`;
const DAY_RANGE = `${DAY}(?:-${DAY})?`;

/** The days, the hours, or both. */
const WHEN = new RegExp(
  `^(?:(?<days>${DAY_RANGE}(?:,${DAY_RANGE})*)(?: (?=\\d)|$))?(?:(?<from>[\\d:]+)-(?<to>[\\d:]+))?$`,
);

/** The hours in which a profile holds, in minutes, and the days on which they begin. */
export interface ProfileHours {
  /** Monday is 0. */
  readonly days: ReadonlySet<number>;
  readonly fromMinute: number;
  /** Less than `fromMinute` if it is on the next day. 1440 is the end of the day. */
  readonly toMinute: number;
}

/** Returns a frozen copy of a valid profile for a kind of limit, or throws. */
export function checkProfile(value: Profile, field: string, kind: AnyLimit["kind"]): Profile {
  const given = value as Readonly<Record<string, unknown>>;
  checkOptions(given, new Set(["when", "zone", "percent", "capacity", "refillAmount"]), field);
  const when = typeof given["when"] === "string" ? normalize(given["when"]) : "";
  if (parseHours(when) === undefined)
    throw new ValidationError(
      `${field}.when`,
      given["when"],
      "must be days and hours such as 'mon-fri 09:00-17:00', 'sat,sun' or '22:00-06:00'",
    );
  const zone = checkZone(given["zone"], `${field}.zone`);
  const { percent, capacity, refillAmount } = given;
  if ((percent === undefined) === (capacity === undefined))
    throw new ValidationError(field, when, "must have either percent or capacity");
  if (refillAmount !== undefined && (percent !== undefined || kind !== undefined))
    throw new ValidationError(
      `${field}.refillAmount`,
      refillAmount,
      "belongs to a capacity, in the profile of a rate",
    );
  if (percent !== undefined && !isPercent(percent, MOST_PERCENT))
    throw new ValidationError(
      `${field}.percent`,
      percent,
      `must be a whole number from 1 to ${MOST_PERCENT}`,
    );
  return Object.freeze({
    when,
    zone,
    ...(percent === undefined ? { capacity } : { percent }),
    ...(refillAmount !== undefined && refillAmount !== capacity && { refillAmount }),
  } as Profile);
}

/** Whether a value is a whole percentage, at least 1. */
export function isPercent(value: unknown, most: number): value is number {
  return Number.isInteger(value) && Number(value) >= 1 && Number(value) <= most;
}

/** The hours of a profile; undefined if its text is not valid. */
export function parseHours(when: string): ProfileHours | undefined {
  const groups = when === "" ? undefined : WHEN.exec(when)?.groups;
  if (groups === undefined) return undefined;
  const { days, from = "00:00", to } = groups;
  if (!isTime(from) || (to !== undefined && (!isTime(to) || from === to))) return undefined;
  return {
    days: new Set(days === undefined ? DAYS.keys() : days.split(",").flatMap(listDays)),
    fromMinute: toMinute(from),
    toMinute: to === undefined ? 1440 : toMinute(to),
  };
}

function listDays(range: string): readonly number[] {
  const [first, last = first] = range.split("-").map((day) => DAYS.indexOf(day)) as [number];
  return Array.from({ length: ((last - first + 7) % 7) + 1 }, (_, index) => (first + index) % 7);
}

function toMinute(time: string): number {
  const [hours, minutes] = time.split(":").map(Number) as [number, number];
  return hours * 60 + minutes;
}

/** The numbers of a limit while one of its profiles holds. */
export function applyProfile<L extends AnyLimit>(limit: L, profile: Profile): L {
  const { schedule: _, ...rest } = limit;
  const capacity =
    "percent" in profile ? takePercent(limit.capacity, profile.percent) : profile.capacity;
  if (!("refillAmount" in limit)) return { ...rest, capacity } as unknown as L;
  const refillAmount =
    "percent" in profile
      ? takePercent(limit.refillAmount, profile.percent)
      : (profile.refillAmount ?? profile.capacity);
  return { ...rest, capacity, refillAmount } as unknown as L;
}

/** Rounded down. The product of the largest numbers is not exact. */
function takePercent(amount: number, percent: number): number {
  return Math.floor(amount / 100) * percent + Math.floor(((amount % 100) * percent) / 100);
}

/** Parses `mon-fri_09:00-17:00@Europe/Berlin=50%`, or `…=80:100` with a burst. */
export function parseProfile(text: string): Profile | undefined {
  const groups =
    /^(?<when>[^@=]*)@(?<zone>[^=]*)=(?:(?<percent>[^%:]*)%|(?<amount>[^%:]*)(?::(?<burst>[^%:]*))?)$/.exec(
      text,
    )?.groups;
  if (groups === undefined) return undefined;
  const { when, zone, percent, amount, burst } = groups;
  if (percent !== undefined) return { when: when!, zone: zone!, percent: parseNumber(percent) };
  const capacity = parseNumber(burst ?? amount!);
  return {
    when: when!,
    zone: zone!,
    capacity,
    ...(burst !== undefined && { refillAmount: parseNumber(amount!) }),
  };
}

/** Formats a valid profile so that `parseProfile` returns the same. It has no spaces. */
export function formatProfile(profile: Profile): string {
  const hours = `${profile.when.replaceAll(" ", "_")}@${profile.zone}`;
  if ("percent" in profile) return `${hours}=${profile.percent}%`;
  const { capacity, refillAmount } = profile;
  return `${hours}=${refillAmount === undefined ? capacity : `${refillAmount}:${capacity}`}`;
}

/** The text form of limits joins the parts with `_`, because it has no spaces. */
function normalize(when: string): string {
  return when
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_]+/g, " ");
}
