import { isRecord, MAX_AMOUNT } from "../core/amounts.ts";
import { checkLimit, positive } from "../core/check-limit.ts";
import { entityCascade } from "../core/entity.ts";
import { ValidationError } from "../core/errors.ts";
import { limitName } from "../core/identifiers.ts";
import type { RateLimit } from "../core/limit-kinds.ts";
import { parseLimit } from "../core/limit-text.ts";
import { checkLimits, type Limit } from "../core/limit.ts";
import type { DeclaredLevel } from "../repository/declared-limits.ts";
import type { DocumentValue, KnownKeys, Suggest } from "./document.ts";
import { adviseParts, isRate, LIMIT_KEYS, NUMBER_KEYS, readParts } from "./limit-parts.ts";

const LEVEL: KnownKeys = {
  owner: "a level",
  keys: ["limits", "inherit"],
  advice: "Write limits under `limits`.",
};

const LIMIT: KnownKeys = { owner: "a limit", keys: LIMIT_KEYS };

/** The refill period of a limit that names none: its amount is per minute. */
const DEFAULT_PERIOD_SECONDS = 60;

/** Reads a level that has limits, and may inherit. */
export function readLevel(level: DocumentValue): DeclaredLevel | undefined {
  const fields = level.fields(LEVEL);
  if (fields === undefined) return undefined;
  const inherit = fields.find(({ key }) => key === "inherit");
  const inherits = inherit === undefined ? true : readBoolean(inherit);
  const limits = fields.find(({ key }) => key === "limits");
  // An unknown key is most likely a limit, and has been reported.
  if (limits === undefined && !level.hasUnknown(LEVEL)) level.refuse("must have limits", LEAVE_OUT);
  const read = limits && readLimits(limits);
  return read === undefined || inherits === undefined
    ? undefined
    : { limits: read, inherit: inherits };
}

const LEAVE_OUT = "Name at least one, or leave the level out.";

/** Reads limits by name, in the order of the file. */
export function readLimits(limits: DocumentValue): readonly Limit[] | undefined {
  const entries = limits.entries("of limits by name");
  if (entries === undefined) return undefined;
  if (entries.length === 0) {
    limits.refuse("must name at least one limit", LEAVE_OUT);
    return undefined;
  }
  const read = entries.map((entry) => readLimit(entry));
  const valid = read.filter((limit) => limit !== undefined);
  if (valid.length === 0) return undefined;
  const checked = limits.check(
    () => checkLimits(valid),
    () => "Leave some of them out, or move them to another resource.",
  );
  return valid.length === read.length ? checked : undefined;
}

/** Reads true or false. */
export function readBoolean(value: DocumentValue): boolean | undefined {
  return value.check(entityCascade, (wrong) => {
    const word = typeof wrong === "string" ? wrong : "";
    if (/^(?:yes|on|true)$/i.test(word)) return "Write true, without quotes.";
    if (/^(?:no|off|false)$/i.test(word)) return "Write false, without quotes.";
    return "Write true or false, or leave it out.";
  });
}

function readLimit(limit: DocumentValue): Limit | undefined {
  const name = limit.checkKey(limitName);
  const parts = readDefinition(limit);
  if (name === undefined || parts === undefined) return undefined;
  return limit.check(
    () => checkNamed({ name, ...parts } as Limit),
    () => (isPlainRate(parts) ? adviseLimit(parts) : adviseParts(parts)),
  );
}

function isPlainRate(parts: Definition): parts is LimitNumbers {
  return "refillAmount" in parts && Object.keys(parts).length === 3;
}

/** The problem is reported at the limit: its reason has to say which part is wrong. */
function checkNamed(limit: Limit): Limit {
  try {
    return checkLimit(limit);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const { field, value, reason } = error;
    const part = field.startsWith(`${limit.name}.`) ? field.slice(limit.name.length + 1) : field;
    // The numbers of a rate have been checked one by one.
    if (isRate(limit) && /^(?:capacity|refill\w+)$/.test(part)) throw error;
    throw new ValidationError(field, value, `has a wrong ${part}: ${reason}`);
  }
}

type LimitNumbers = Pick<RateLimit, "capacity" | "refillAmount" | "refillPeriodSeconds">;

/** A limit without its name: its numbers, and what else it has. */
type Definition = LimitNumbers | object;

function readDefinition(limit: DocumentValue): Definition | undefined {
  const { value } = limit;
  if (typeof value === "number") {
    const rate = readPositive(limit);
    return rate === undefined ? undefined : toNumbers(rate, {});
  }
  if (typeof value === "string") return readText(limit, value);
  if (isRecord(value)) return isRate(value) ? readMap(limit) : readOtherMap(limit);
  limit.refuse(
    "must be an amount per minute, a text such as 10000/min:15000, or a map with a capacity",
    "Write 100/min, for example, or leave the limit out.",
    value,
  );
  return undefined;
}

/** The map of a quota, of a session, or of what is in flight: checked as a whole. */
function readOtherMap(limit: DocumentValue): object | undefined {
  const fields = limit.fields(LIMIT) ?? [];
  return limit.hasUnknown(LIMIT) ? undefined : readParts(fields);
}

function readText(limit: DocumentValue, text: string): Definition | undefined {
  return limit.check(
    () => {
      const { name: _, ...definition } = parseText(text);
      return definition;
    },
    () => {
      const repaired = repairText(text, limit.key);
      return repaired === undefined
        ? "Write a rate such as 100/min, or 100/min:150 with a burst."
        : `Write ${repaired}.`;
    },
  );
}

function readMap(limit: DocumentValue): Definition | undefined {
  const all = limit.fields(LIMIT) ?? [];
  const fields = all.filter(({ key }) => NUMBER_KEYS.includes(key));
  const numbers = new Map(
    fields.map((field) => [
      field.key,
      readPositive(field, (wrong) => {
        if (wrong === null && field.key !== "capacity") return "Write a number, or leave it out.";
        return field.key === "refill_period" ? adviseSeconds(wrong) : adviseAmount(wrong);
      }),
    ]),
  );
  if (limit.hasUnknown(LIMIT)) return undefined;
  if (!numbers.has("capacity"))
    limit.refuse("must have a capacity", "Write `capacity: 100`, for example.");
  const capacity = numbers.get("capacity");
  if (capacity === undefined || [...numbers.values()].includes(undefined)) return undefined;
  return {
    ...readParts(all.filter((field) => !fields.includes(field))),
    ...toNumbers(capacity, {
      burst: numbers.get("burst"),
      refillAmount: numbers.get("refill_amount"),
      refillPeriodSeconds: numbers.get("refill_period"),
    }),
  };
}

/** The burst is the size of the bucket, and never its refill (W-64 in docs/known-faults.md). */
function toNumbers(
  capacity: number,
  given: {
    readonly burst?: number | undefined;
    readonly refillAmount?: number | undefined;
    readonly refillPeriodSeconds?: number | undefined;
  },
): LimitNumbers {
  return {
    capacity: given.burst ?? capacity,
    refillAmount: given.refillAmount ?? capacity,
    refillPeriodSeconds: given.refillPeriodSeconds ?? DEFAULT_PERIOD_SECONDS,
  };
}

function readPositive(value: DocumentValue, suggest: Suggest = adviseAmount): number | undefined {
  return value.check((number) => positive(number, value.key), suggest);
}

/** The grammar of `Limit.parse`, without the name. */
function parseText(text: string): Limit {
  try {
    return parseLimit(`x:${text.trim()}`);
  } catch (error) {
    if (error instanceof ValidationError && error.field !== "limit") throw error;
    throw new ValidationError(
      "limit",
      text,
      "must look like rate[/period][:burst], for example 100 or 10000/min:15000 (periods: sec, min, hour, day, or 5min), or like 1000000/day@Europe/Berlin or 45/session(5hour)",
    );
  }
}

/** Marks that people put between digits. YAML reads such a number as a text. */
const BETWEEN_DIGITS = /[_,'\s]/g;

/** Suggests a number for a value that is not one, or returns `otherwise`. */
export function adviseNumber(wrong: unknown, otherwise: string): string {
  const text = typeof wrong === "string" ? wrong : "";
  const digits = text.replaceAll(BETWEEN_DIGITS, "");
  return /^\d{1,15}$/.test(digits)
    ? `Write ${Number(digits)}, ${digits === text ? "without quotes" : "digits only"}.`
    : otherwise;
}

const TOO_SMALL = "Write 1 or more.";
const TOO_LARGE = "Write a smaller number, such as 1000000000.";

function adviseAmount(wrong: unknown): string {
  if (typeof wrong !== "number" || Number.isNaN(wrong))
    return adviseNumber(wrong, "Write a whole number, such as 100.");
  if (wrong <= 0) return TOO_SMALL;
  if (wrong > MAX_AMOUNT) return TOO_LARGE;
  return wrong < 1
    ? "For less than one token in a period, make the period longer."
    : `Write ${Math.round(wrong)}, or a whole number for a longer period.`;
}

/** The advice for whole numbers that do not make a valid limit together. */
function adviseLimit({ capacity, refillAmount, refillPeriodSeconds }: LimitNumbers): string {
  const numbers = [capacity, refillAmount, refillPeriodSeconds];
  if (numbers.some((number) => number <= 0)) return TOO_SMALL;
  if (numbers.some((number) => number > MAX_AMOUNT)) return TOO_LARGE;
  return "Round the amount, or write the same rate for a shorter period.";
}

function adviseSeconds(wrong: unknown): string {
  if (typeof wrong === "string" && /[a-z]/i.test(wrong)) {
    const repaired = repairText(`1/${wrong}`, "");
    const limit = repaired === undefined ? undefined : parseText(repaired);
    if (limit !== undefined && "refillPeriodSeconds" in limit)
      return `Write ${limit.refillPeriodSeconds}: periods are in seconds.`;
  }
  return adviseNumber(wrong, "Write a whole number of seconds, such as 60.");
}

/** The text that was meant, if it is easy to see: 10_000/m, 100 per hour, rpm:100. */
function repairText(text: string, name: string): string | undefined {
  if (text.length > MOST_REPAIRED) return undefined;
  const words = text.startsWith(`${name}:`) ? text.slice(name.length + 1) : text;
  const repaired = words
    .replace(/\s+(?:per|a)\s+/i, "/")
    .replaceAll(BETWEEN_DIGITS, "")
    .replace(/(?<=\/)(\d*)([a-z]+)/i, (period, count: string, word: string) => {
      const [, unit, times] = UNITS.find(([known]) => known.test(word)) ?? [];
      if (unit === undefined) return period;
      return times === undefined ? `${count}${unit}` : `${Number(count || 1) * times}${unit}`;
    });
  try {
    parseText(repaired);
    return repaired;
  } catch {
    return undefined;
  }
}

/** Longer texts are not mistyped limits. */
const MOST_REPAIRED = 100;

/** What people write, the unit of the grammar, and its count if that is not one. */
const UNITS: readonly (readonly [RegExp, string, number?])[] = [
  [/^s(?:ecs?|econds?)?$/i, "sec"],
  [/^m(?:ins?|inutes?)?$/i, "min"],
  [/^h(?:rs?|ours?)?$/i, "hour"],
  [/^d(?:ays?)?$/i, "day"],
  [/^w(?:eeks?)?$/i, "day", 7],
  [/^months?$/i, "day", 30],
  [/^y(?:ears?)?$/i, "day", 365],
];
