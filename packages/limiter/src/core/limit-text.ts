import { formatCalendar, parseCalendar, parseNumber } from "./calendar-text.ts";
import { ValidationError } from "./errors.ts";
import type { AnyLimit, Carry, QuotaLimit, SessionLimit } from "./limit-kinds.ts";
import { nearest } from "./options.ts";
import { formatProfile, parseProfile } from "./profile.ts";

/** `name:amount`, a span, and options in brackets. */
const GRAMMAR = /^(?<name>[^:]+):(?<amount>\d+)(?<span>[^[\]]*)(?<options>(?:\[[^[\]]*\])*)$/;

/** `[/period][:burst]`; a period is `[N]sec`, `[N]min`, `[N]hour` or `[N]day`. */
const RATE = /^(?:\/(?<period>\d*(?:sec|min|hour|day)))?(?::(?<burst>\d+))?$/;

const SESSION = /^\/session\((?<period>\d*(?:sec|min|hour|day))\)$/;
const IN_FLIGHT = /^\/inflight(?:\((?<period>\d*(?:sec|min|hour|day))\))?$/;

/** Longest first: a period is written in the first unit that divides it. */
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["min", 60],
  ["sec", 1],
] as const;

const SECONDS: ReadonlyMap<string, number> = new Map(UNITS);

/** How long in-flight limits hold what is not renewed, unless they say otherwise. */
export const DEFAULT_HOLD_SECONDS = 60;

/** Parses the text form of a limit. The caller checks the name, the numbers and the rest. */
export function parseLimit(text: string): AnyLimit {
  const groups = typeof text === "string" ? GRAMMAR.exec(text.trim())?.groups : undefined;
  const definition = groups && parseSpan(Number(groups["amount"]), groups["span"]!);
  if (definition === undefined)
    throw new ValidationError(
      "limit",
      text,
      "must look like name:rate[/period][:burst], for example rpm:100 or tpm:10000/min:15000 (periods: sec, min, hour, day, or 5min), or like tpd:1000000/day@Europe/Berlin or messages:45/session(5hour)",
    );
  const options = [...groups!["options"]!.matchAll(/\[(.*?)\]/g)].map(([, option]) => option!);
  return { name: groups!["name"]!, ...definition, ...parseOptions(options) } as AnyLimit;
}

/** What follows the amount: a period and a burst, a calendar, a window or a hold. */
function parseSpan(amount: number, span: string): object | undefined {
  const rate = RATE.exec(span)?.groups;
  if (rate !== undefined) {
    const { period = "min", burst } = rate;
    const capacity = burst === undefined ? amount : Number(burst);
    return { capacity, refillAmount: amount, refillPeriodSeconds: parsePeriod(period) };
  }
  const session = SESSION.exec(span)?.groups;
  if (session !== undefined)
    return { kind: "session", capacity: amount, windowSeconds: parsePeriod(session["period"]!) };
  const inFlight = IN_FLIGHT.exec(span)?.groups;
  if (inFlight !== undefined) {
    const { period } = inFlight;
    const holdSeconds = period === undefined ? DEFAULT_HOLD_SECONDS : parsePeriod(period);
    return { kind: "inflight", capacity: amount, holdSeconds };
  }
  const resets = span.startsWith("/") ? parseCalendar(span.slice(1)) : undefined;
  return resets && { kind: "quota", capacity: amount, resets };
}

function parsePeriod(period: string): number {
  const unit = period.replace(/^\d*/, "");
  return Number(period.slice(0, -unit.length) || 1) * SECONDS.get(unit)!;
}

/** How the values of options are read. */
const OPTIONS: Readonly<Record<string, (value: string) => unknown>> = {
  counts: (value) => value,
  carry: (value) => {
    const parts = value.split(",");
    const debt = parts[0] === "debt";
    const unused = debt ? parts.slice(1).join(",") : value;
    return { debt, ...((!debt || parts.length > 1) && { unused: parseNumber(unused) }) };
  },
  alerts: (value) => value.split(",").map(parseNumber),
  reserve: (value) => {
    const amounts = new Map<string, number>();
    for (const part of value.split(",")) {
      const [name = "", ...amount] = part.split(":");
      if (amounts.has(name))
        throw new ValidationError("limit", `[reserve=${value}]`, "must have each class once");
      amounts.set(name, parseNumber(amount.join(":")));
    }
    return Object.fromEntries(amounts);
  },
};

function parseOptions(texts: readonly string[]): object {
  const options = new Map<string, unknown>();
  const add = (name: string, value: unknown): void => {
    if (options.has(name))
      throw new ValidationError("limit", `[${name}]`, "must have each option once");
    options.set(name, value);
  };
  const schedule = texts.flatMap((text) => {
    const [name = ""] = text.split("=", 1);
    const value = text.slice(name.length + 1);
    const profile = parseProfile(text);
    if (profile !== undefined) return [profile];
    if (text === "soft") add("soft", true);
    else if (name !== text && Object.hasOwn(OPTIONS, name)) add(name, OPTIONS[name]!(value));
    else throw buildOptionError(text, name);
    return [];
  });
  return { ...Object.fromEntries(options), ...(schedule.length > 0 && { schedule }) };
}

function buildOptionError(text: string, name: string): ValidationError {
  const meant = nearest(name, ["soft", ...Object.keys(OPTIONS)]);
  const example = "such as [counts=tpm], [carry=debt] or [reserve=batch:500]";
  const hint = meant === undefined || meant === name ? example : `did you mean ${meant}?`;
  return new ValidationError("limit option", `[${text}]`, `is not an option of a limit, ${hint}`);
}

/** Formats a valid limit so that `parseLimit` returns the same limit. It never has a space. */
export function formatLimit(limit: AnyLimit): string {
  const { amount, definition, options } = splitLimitText(limit);
  return `${limit.name}:${amount}/${definition}${options}`;
}

/**
 * What a bucket keeps of a quota or session beside its capacity: what follows the amount, without
 * what only configuration holds.
 */
export function formatStoredDefinition(limit: QuotaLimit | SessionLimit): string {
  const carry =
    limit.kind === "quota" && limit.carry !== undefined
      ? `[carry=${formatCarry(limit.carry)}]`
      : "";
  return `/${formatDefinition(limit)}${carry}`;
}

/** What follows the name in the text form of a valid limit: `amount/definition[option]`. */
export function splitLimitText(limit: AnyLimit): {
  readonly amount: number;
  readonly definition: string;
  readonly options: string;
} {
  const amount = "refillAmount" in limit ? limit.refillAmount : limit.capacity;
  return { amount, definition: formatDefinition(limit), options: formatOptions(limit) };
}

function formatDefinition(limit: AnyLimit): string {
  switch (limit.kind) {
    case "quota":
      return formatCalendar(limit.resets);
    case "session":
      return `session(${formatPeriod(limit.windowSeconds)})`;
    case "inflight":
      return limit.holdSeconds === DEFAULT_HOLD_SECONDS
        ? "inflight"
        : `inflight(${formatPeriod(limit.holdSeconds)})`;
    default: {
      const { capacity, refillAmount, refillPeriodSeconds } = limit;
      const burst = capacity === refillAmount ? "" : `:${capacity}`;
      return `${formatPeriod(refillPeriodSeconds)}${burst}`;
    }
  }
}

function formatPeriod(periodSeconds: number): string {
  const [unit, seconds] = UNITS.find((candidate) => periodSeconds % candidate[1] === 0) ?? UNITS[3];
  const count = periodSeconds / seconds;
  return count === 1 ? unit : `${count}${unit}`;
}

function formatOptions(limit: AnyLimit): string {
  const { soft, counts, carry, alerts, reserve, schedule } = limit as Partial<QuotaLimit>;
  const texts = [
    soft === true && "soft",
    counts !== undefined && `counts=${counts}`,
    carry !== undefined && `carry=${formatCarry(carry)}`,
    alerts !== undefined && `alerts=${alerts.join(",")}`,
    reserve !== undefined &&
      `reserve=${Object.entries(reserve)
        .map(([name, amount]) => `${name}:${amount}`)
        .join(",")}`,
    ...(schedule ?? []).map(formatProfile),
  ];
  return texts.map((text) => (text === false ? "" : `[${text}]`)).join("");
}

function formatCarry({ debt, unused }: Carry): string {
  return [debt === true && "debt", unused]
    .filter((part) => part !== false && part !== undefined)
    .join(",");
}
