import { ValidationError } from "./errors.ts";

/** The fields of a limit that its text form holds. */
interface LimitFields {
  readonly name: string;
  readonly capacity: number;
  readonly refillAmount: number;
  readonly refillPeriodSeconds: number;
}

/** `name:rate[/period][:burst]`; a period is `[N]sec`, `[N]min`, `[N]hour` or `[N]day`. */
const GRAMMAR =
  /^(?<name>[^:]+):(?<rate>\d+)(?:\/(?<count>\d*)(?<unit>sec|min|hour|day))?(?::(?<burst>\d+))?$/;

/** Longest first: a period is written in the first unit that divides it. */
const UNITS = [
  ["day", 86_400],
  ["hour", 3600],
  ["min", 60],
  ["sec", 1],
] as const;

const SECONDS: ReadonlyMap<string, number> = new Map(UNITS);

/** Parses the text form of a limit. The caller checks the name and the numbers. */
export function parseLimit(text: string): LimitFields {
  const groups = typeof text === "string" ? GRAMMAR.exec(text.trim())?.groups : undefined;
  if (groups === undefined)
    throw new ValidationError(
      "limit",
      text,
      "must look like name:rate[/period][:burst], for example rpm:100 or tpm:10000/min:15000 (periods: sec, min, hour, day, or 5min)",
    );
  const rate = Number(groups["rate"]);
  const count = groups["count"] ? Number(groups["count"]) : 1;
  const unit = SECONDS.get(groups["unit"] ?? "min") ?? 60;
  return {
    name: groups["name"] ?? "",
    capacity: groups["burst"] === undefined ? rate : Number(groups["burst"]),
    refillAmount: rate,
    refillPeriodSeconds: count * unit,
  };
}

/** Formats a limit so that `parseLimit` returns the same limit. */
export function formatLimit(limit: LimitFields): string {
  const { name, capacity, refillAmount, refillPeriodSeconds } = limit;
  const [unit, seconds] =
    UNITS.find((candidate) => refillPeriodSeconds % candidate[1] === 0) ?? UNITS[3];
  const count = refillPeriodSeconds / seconds;
  const period = count === 1 ? unit : `${count}${unit}`;
  const burst = capacity === refillAmount ? "" : `:${capacity}`;
  return `${name}:${refillAmount}/${period}${burst}`;
}
