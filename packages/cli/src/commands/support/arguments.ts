import { InvalidArgumentError } from "commander";
import { Limit, ValidationError } from "zae-limiter";

/** The grammar of a limit, as help and errors show it. */
export const LIMIT_GRAMMAR =
  "name:rate[/period][:burst], for example rpm:100 or tpm:10000/min:15000 " +
  "(periods: sec, min, hour, day, or 5min), or like tpd:1000000/day@Europe/Berlin " +
  "or messages:45/session(5hour)";

/** Parses limits separated by commas, and adds them to those before them. */
export function limitArgument(text: string, before: readonly Limit[] = []): readonly Limit[] {
  return text.split(BETWEEN_LIMITS).map(parseLimitArgument).reduce(withLimit, before);
}

/** A comma that is not within parentheses or brackets, such as those of `[alerts=50,80]`. */
const BETWEEN_LIMITS = /,(?![^()]*\))(?![^[\]]*\])/;

function withLimit(before: readonly Limit[], limit: Limit): readonly Limit[] {
  if (before.some(({ name }) => name === limit.name))
    throw new InvalidArgumentError(`${limit.name} is given twice.`);
  return [...before, limit];
}

/** No name contains a colon or an equals sign, so `rpm=100` can only mean `rpm:100`. */
function parseLimitArgument(text: string): Limit {
  try {
    return Limit.parse(text.replace(/^([^:=]+)=/, "$1:"));
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const grammar = error.field === "limit" ? "" : `${error.message}. `;
    throw new InvalidArgumentError(`${grammar}A limit is written ${LIMIT_GRAMMAR}.`);
  }
}

/** Parses amounts separated by commas, and adds them to those before them. */
export function amountArgument(
  text: string,
  before: Readonly<Record<string, number>> = {},
): Readonly<Record<string, number>> {
  const amounts = { ...before };
  for (const part of text.split(",")) {
    const [, name, amount] = /^([^:=]+)[:=](\d{1,15})$/.exec(part) ?? [];
    if (name === undefined)
      throw new InvalidArgumentError(
        "An amount is written name=number, for example rpm=1 or tpm=500.",
      );
    if (Object.hasOwn(amounts, name)) throw new InvalidArgumentError(`${name} is given twice.`);
    amounts[name] = Number(amount);
  }
  return amounts;
}

/** Parses one `key=value` of metadata and adds it to those before it. */
export function metadataArgument(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, key, value] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new InvalidArgumentError("Metadata is written key=value, for example team=search.");
  return { ...before, [key]: value };
}

/** Parses a whole number of at least 1. */
export function countArgument(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError("It must be a whole number of at least 1.");
}

/** Parses a number, with or without a fraction. */
export function numberArgument(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a number, such as 5 or 0.5.");
}

/** Parses a number of shards. */
export function shardsArgument(text: string): number {
  const shards = Number(text);
  if (/^\d+$/.test(text) && Math.log2(shards) % 1 === 0) return shards;
  throw new InvalidArgumentError(
    "It must be a power of two, such as 8, because a split divides a shard into two.",
  );
}

/** Parses seconds, with or without a fraction, and returns milliseconds. */
export function durationMsArgument(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) <= MAX_SECONDS)
    return Math.round(Number(text) * 1000);
  throw new InvalidArgumentError(
    `It must be a number of seconds from 0 to ${MAX_SECONDS}, such as 5 or 0.5.`,
  );
}

/** A day: no command needs to wait longer. */
const MAX_SECONDS = 86_400;

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/**
 * Parses a time: an absolute one, or an age such as `7d`, with or without a minus sign. A date
 * means its midnight in UTC, and a time without a zone is in UTC too, because usage windows are in
 * UTC.
 */
export function timeArgument(nowMs: () => number): (text: string) => Date {
  return (text) => {
    const [, count, unit] = /^-?(\d{1,5})([mhdw])$/.exec(text) ?? [];
    if (unit !== undefined)
      return new Date(nowMs() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]);
    const iso = text.replace(/^(\d{4}-\d\d-\d\d) /, "$1T");
    const zoned = /T.*(Z|[+-]\d\d:?\d\d)$/.test(iso) || !iso.includes("T") ? iso : `${iso}Z`;
    const time = new Date(zoned);
    if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())) return time;
    throw new InvalidArgumentError(
      "A time is written in ISO 8601, for example 2026-11-15 or 2026-11-15T06:00:00Z, " +
        "or as an age: 30m, 24h, 7d or 2w.",
    );
  };
}
