import { MAX_AMOUNT, MILLI } from "./amounts.ts";
import { checkCalendar } from "./calendar-text.ts";
import { ValidationError } from "./errors.ts";
import { limitName } from "./identifiers.ts";
import {
  isRate,
  type AnyLimit,
  type Carry,
  type InFlightLimit,
  type LimitKind,
  type LimitOptions,
  type QuotaLimit,
  type RateLimit,
  type SessionLimit,
} from "./limit-kinds.ts";
import { checkOptions, optionNames } from "./options.ts";
import { applyProfile, checkProfile, isPercent } from "./profile.ts";

const OPTION_NAMES = { counts: true, soft: true, schedule: true, reserve: true } as const;
const BASE_NAMES = { name: true, capacity: true, kind: true, ...OPTION_NAMES } as const;

/** What limits of each kind may have. */
const NAMES: Readonly<Record<LimitKind, ReadonlySet<string>>> = {
  rate: optionNames<RateLimit>({ ...BASE_NAMES, refillAmount: true, refillPeriodSeconds: true }),
  quota: optionNames<QuotaLimit>({ ...BASE_NAMES, resets: true, carry: true, alerts: true }),
  session: optionNames<SessionLimit>({ ...BASE_NAMES, windowSeconds: true, alerts: true }),
  inflight: optionNames<InFlightLimit>({ ...BASE_NAMES, holdSeconds: true }),
};

/** The names of the options that every kind of limit has. */
export const LIMIT_OPTION_NAMES: ReadonlySet<string> = optionNames<LimitOptions>(OPTION_NAMES);

const CARRY_NAMES = optionNames<Carry>({ debt: true, unused: true });

const DAY_SECONDS = 86_400;

/** The longest window of a session: a leap year. */
const MOST_WINDOW_SECONDS = 366 * DAY_SECONDS;

/** Shorter holds would need a renewal every few seconds. */
const LEAST_HOLD_SECONDS = 10;

/** Most profiles, alert levels or priority classes of a limit. */
const MOST_ENTRIES = 8;

/** The highest alert level: debt of the whole capacity. */
const MOST_ALERT_PERCENT = 200;

/** Returns a frozen copy of a valid limit without its defaults, or throws. */
export function checkLimit<L extends AnyLimit>(limit: L): L {
  if (typeof limit !== "object" || limit === null)
    throw new ValidationError(
      "limit",
      limit,
      "must be an object with name, capacity, refillAmount and refillPeriodSeconds",
    );
  const kind = limit.kind === undefined ? "rate" : limit.kind;
  if (!Object.hasOwn(NAMES, kind))
    throw new ValidationError(
      `${limitName(limit.name)}.kind`,
      kind,
      "must be 'rate', 'quota', 'session' or 'inflight'",
    );
  checkOptions(limit, NAMES[kind], "a limit");
  const name = limitName(limit.name);
  const capacity = positive(limit.capacity, `${name}.capacity`);
  const definition = checkDefinition(limit);
  return Object.freeze({ name, capacity, ...definition, ...checkShared(limit) }) as L;
}

/** What a limit has because of its kind. */
function checkDefinition(limit: AnyLimit): object {
  const { name } = limit;
  switch (limit.kind) {
    case "quota":
      return {
        kind: "quota",
        resets: checkCalendar(limit.resets, `${name}.resets`),
        ...checkCarry(limit),
        ...checkAlerts(limit),
      };
    case "session": {
      const windowSeconds = positive(limit.windowSeconds, `${name}.windowSeconds`);
      checkBounds(windowSeconds, `${name}.windowSeconds`, [1, MOST_WINDOW_SECONDS]);
      return { kind: "session", windowSeconds, ...checkAlerts(limit) };
    }
    case "inflight": {
      const holdSeconds = positive(limit.holdSeconds, `${name}.holdSeconds`);
      checkBounds(holdSeconds, `${name}.holdSeconds`, [LEAST_HOLD_SECONDS, DAY_SECONDS]);
      return { kind: "inflight", holdSeconds };
    }
    default:
      return checkRate(limit, name);
  }
}

/** Returns the numbers of a rate that can be computed exactly, or throws. */
function checkRate(
  limit: RateLimit,
  field: string,
): Pick<RateLimit, "refillAmount" | "refillPeriodSeconds"> {
  const refillAmount = positive(limit.refillAmount, `${field}.refillAmount`);
  const refillPeriodSeconds = positive(limit.refillPeriodSeconds, `${field}.refillPeriodSeconds`);
  const { amount, period } = reduceRate(refillAmount * MILLI, refillPeriodSeconds * MILLI);
  if (!Number.isSafeInteger((amount + 1) * period))
    throw new ValidationError(
      `${field}.refillAmount`,
      refillAmount,
      "the rate cannot be computed exactly; choose a rounder amount or a shorter period",
    );
  return { refillAmount, refillPeriodSeconds };
}

/** The options of every kind. */
function checkShared(limit: AnyLimit): LimitOptions {
  const { name, counts, soft } = limit;
  if (soft !== undefined && typeof soft !== "boolean")
    throw new ValidationError(`${name}.soft`, soft, "must be true or false");
  const counted = counts === undefined ? name : limitName(counts, `${name}.counts`);
  return {
    ...(soft === true && { soft }),
    ...(counted !== name && { counts: counted }),
    ...checkReserve(limit),
    ...checkSchedule(limit),
  };
}

function checkReserve(limit: AnyLimit): Pick<LimitOptions, "reserve"> {
  const { name, capacity, reserve } = limit;
  const field = `${name}.reserve`;
  if (reserve === undefined) return {};
  if (typeof reserve !== "object" || reserve === null || Array.isArray(reserve))
    throw new ValidationError(field, reserve, "must be an object of amounts by priority class");
  const entries = Object.entries(reserve).sort(([left], [right]) => (left < right ? -1 : 1));
  checkCount(entries.length, field);
  for (const [priority, amount] of entries) {
    limitName(priority, field);
    if (positive(amount, `${field}.${priority}`) >= capacity)
      throw new ValidationError(
        `${field}.${priority}`,
        amount,
        `must be less than the capacity of ${capacity}, or calls of that class are never granted`,
      );
  }
  return entries.length === 0 ? {} : { reserve: Object.freeze(Object.fromEntries(entries)) };
}

function checkSchedule(limit: AnyLimit): Pick<LimitOptions, "schedule"> {
  const { name, kind, schedule } = limit;
  if (schedule === undefined) return {};
  const profiles = copyList(schedule, `${name}.schedule`).map((given, index) => {
    const field = `${name}.schedule[${index}]`;
    const profile = checkProfile(given, field, kind === "rate" ? undefined : kind);
    const applied = applyProfile(limit, profile);
    positive(applied.capacity, `${field}.capacity`);
    if (isRate(applied)) checkRate(applied, field);
    return profile;
  });
  return profiles.length === 0 ? {} : { schedule: Object.freeze(profiles) };
}

function checkCarry({ name, capacity, carry }: QuotaLimit): Pick<QuotaLimit, "carry"> {
  const field = `${name}.carry`;
  if (carry === undefined) return {};
  checkOptions(carry, CARRY_NAMES, field);
  const { debt, unused } = carry;
  if (debt !== undefined && typeof debt !== "boolean")
    throw new ValidationError(`${field}.debt`, debt, "must be true or false");
  if (unused !== undefined && positive(unused, `${field}.unused`) > MAX_AMOUNT - capacity)
    throw new ValidationError(
      `${field}.unused`,
      unused,
      `must be at most ${MAX_AMOUNT} together with the capacity`,
    );
  if (debt !== true && unused === undefined) return {};
  const carried = { ...(debt === true && { debt }), ...(unused !== undefined && { unused }) };
  return { carry: Object.freeze(carried) };
}

function checkAlerts({ name, alerts }: QuotaLimit | SessionLimit): Pick<QuotaLimit, "alerts"> {
  const field = `${name}.alerts`;
  if (alerts === undefined) return {};
  const levels = copyList(alerts, field);
  const isRising = levels.every(
    (level, index) =>
      isPercent(level, MOST_ALERT_PERCENT) && level > (index === 0 ? 0 : levels[index - 1]!),
  );
  if (!isRising)
    throw new ValidationError(
      field,
      levels.join(","),
      `must be rising whole percentages from 1 to ${MOST_ALERT_PERCENT}`,
    );
  return levels.length === 0 ? {} : { alerts: Object.freeze(levels) };
}

function copyList<Entry>(value: readonly Entry[], field: string): readonly Entry[] {
  if (!Array.isArray(value)) throw new ValidationError(field, value, "must be an array");
  checkCount(value.length, field);
  return [...value];
}

function checkCount(count: number, field: string): void {
  if (count > MOST_ENTRIES)
    throw new ValidationError(field, count, `must have at most ${MOST_ENTRIES} entries`);
}

function checkBounds(value: number, field: string, [least, most]: readonly [number, number]): void {
  if (value < least || value > most)
    throw new ValidationError(field, value, `must be from ${least} to ${most}`);
}

/** The refill rate as a reduced fraction: `amount` millitokens every `period` milliseconds. */
export function reduceRate(
  refillAmountMilli: number,
  refillPeriodMs: number,
): { readonly amount: number; readonly period: number } {
  let divisor = refillAmountMilli;
  for (let rest = refillPeriodMs; rest > 0;) [divisor, rest] = [rest, divisor % rest];
  return { amount: refillAmountMilli / divisor, period: refillPeriodMs / divisor };
}

/** Returns a number that a limit may have, or throws. */
export function positive(value: unknown, field: string): number {
  if (typeof value !== "number")
    throw new ValidationError(
      field,
      value,
      `must be a number, not ${value === null ? "null" : typeof value}`,
    );
  if (!Number.isInteger(value)) throw new ValidationError(field, value, "must be a whole number");
  if (value <= 0) throw new ValidationError(field, value, "must be greater than 0");
  if (value > MAX_AMOUNT) throw new ValidationError(field, value, `must be at most ${MAX_AMOUNT}`);
  return value;
}
