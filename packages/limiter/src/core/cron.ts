import { BoundedMap } from "./bounded-map.ts";
import { ValidationError } from "./errors.ts";

/** What a field of an expression may be. */
interface Field {
  readonly name: string;
  readonly least: number;
  readonly most: number;
  /** Names of the values, from `least` on. */
  readonly names?: readonly string[];
}

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const DAYS = "sun mon tue wed thu fri sat".split(" ");

const FIELDS: readonly Field[] = [
  { name: "minute", least: 0, most: 59 },
  { name: "hour", least: 0, most: 23 },
  { name: "day", least: 1, most: 31 },
  { name: "month", least: 1, most: 12, names: MONTHS },
  { name: "weekday", least: 0, most: 7, names: DAYS },
];

/** The longest each month can be. */
const MONTH_LENGTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const MINUTE = 60_000;
const DAY = 1440 * MINUTE;

/** Between two leap days there may be eight years. */
const MOST_DAYS = 8 * 366;

/** Which values of each field match, in the order of the fields. */
type Schedule = readonly (readonly number[])[];

/**
 * Returns an expression of five fields, minute hour day month weekday, in lower case and with
 * single spaces, or throws. Numbers, names, lists, ranges and steps are known; what programs
 * disagree about is refused.
 */
export function checkCron(value: unknown, field: string): string {
  const refuse = (reason: string): never => {
    throw new ValidationError(field, value, reason);
  };
  if (typeof value !== "string" || value.length > MOST_CHARACTERS)
    return refuse(`must be a text of at most ${MOST_CHARACTERS} characters, such as '0 9 * * mon'`);
  const fields = splitFields(value);
  if (fields.length !== FIELDS.length)
    return refuse(
      "must have five fields: minute hour day month weekday, such as '0 9 * * mon', without seconds",
    );
  const wrong = FIELDS.find((known, index) => parseField(fields[index]!, known) === undefined);
  if (wrong !== undefined)
    refuse(
      `has a wrong ${wrong.name}: write * or numbers of ${wrong.least} to ${wrong.most}, ` +
        "as in 1,5 or 1-5 or */2; L, W, # and ? are not supported",
    );
  if (fields[2] !== "*" && fields[4] !== "*")
    refuse("must have * as its day or as its weekday: programs differ in what both together mean");
  const [, , days, months] = parseCron(fields.join(" "));
  if (!months!.some((month) => days![0]! <= MONTH_LENGTHS[month - 1]!))
    refuse("never matches: no such month has that day");
  return fields.join(" ");
}

/** The first minute after a local time that a valid expression matches. */
export function nextMatch(cron: string, afterLocal: number): number {
  const [minutes, hours, days, months, weekdays] = parseCron(cron) as readonly number[][];
  const today = Math.floor(afterLocal / DAY);
  for (let day = today; day <= today + MOST_DAYS; day += 1) {
    const date = new Date(day * DAY);
    if (!months!.includes(date.getUTCMonth() + 1)) continue;
    if (!days!.includes(date.getUTCDate()) || !weekdays!.includes(date.getUTCDay())) continue;
    for (const hour of hours!)
      for (const minute of minutes!) {
        const local = day * DAY + (hour * 60 + minute) * MINUTE;
        if (local > afterLocal) return local;
      }
  }
  throw new RangeError(`'${cron}' never matches`);
}

/** A list of every second minute has 87 characters. */
const MOST_CHARACTERS = 500;

const SCHEDULE_MEMO = new BoundedMap<string, Schedule>(1000);

/** Parses an expression that has been checked. */
function parseCron(cron: string): Schedule {
  const held = SCHEDULE_MEMO.get(cron);
  if (held !== undefined) return held;
  const fields = splitFields(cron);
  const schedule = FIELDS.map((known, index) => parseField(fields[index]!, known)!);
  SCHEDULE_MEMO.set(cron, schedule);
  return schedule;
}

/** The text form of limits joins the fields with `_`, because it has no spaces. */
function splitFields(cron: string): readonly string[] {
  return cron
    .trim()
    .toLowerCase()
    .split(/[\s_]+/);
}

/** The values that a field matches, in order; undefined if it is not valid. */
function parseField(text: string, field: Field): readonly number[] | undefined {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    const groups = /^(?:\*|(?<from>\w+)(?:-(?<to>\w+))?)(?:\/(?<step>\d+))?$/.exec(part)?.groups;
    if (groups === undefined) return undefined;
    const { from, to, step = "1" } = groups;
    // `5/15` means several things.
    if (groups["step"] !== undefined && from !== undefined && to === undefined) return undefined;
    const first = from === undefined ? field.least : parseValue(from, field);
    const end = to ?? from;
    const last = end === undefined ? field.most : parseValue(end, field);
    if (first === undefined || last === undefined || Number(step) === 0) return undefined;
    // In `fri-sun`, Sunday is the seventh day.
    const until = last === 0 && first > 0 && field.most === 7 ? 7 : last;
    if (until < first) return undefined;
    for (let value = first; value <= until; value += Number(step))
      values.add(field.most === 7 ? value % 7 : value);
  }
  return [...values].sort((left, right) => left - right);
}

function parseValue(text: string, { least, most, names = [] }: Field): number | undefined {
  const named = names.indexOf(text);
  const value = named === -1 ? Number(text) : least + named;
  const isValid = (named !== -1 || /^\d{1,2}$/.test(text)) && value >= least && value <= most;
  return isValid ? value : undefined;
}
