import { InvalidArgumentError } from "commander";
import { Limit, ValidationError } from "zae-limiter";

/** The grammar of a limit, as help and errors show it. */
export const LIMIT_GRAMMAR =
  "name:rate[/period][:burst], for example rpm:100 or tpm:10000/min:15000 (periods: sec, min, hour, day, or 5min)";

/** Reads one more `--limit`. */
export function limitArgument(text: string, before: readonly Limit[] = []): readonly Limit[] {
  try {
    const limit = Limit.parse(text);
    if (before.some(({ name }) => name === limit.name))
      throw new InvalidArgumentError(`${limit.name} is named twice.`);
    return [...before, limit];
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const grammar = error.field === "limit" ? "" : `${error.message}. `;
    throw new InvalidArgumentError(`${grammar}A limit is written ${LIMIT_GRAMMAR}.`);
  }
}

/** Reads one more `name=amount`. */
export function amountArgument(
  text: string,
  before: Readonly<Record<string, number>> = {},
): Readonly<Record<string, number>> {
  const [, name, amount] = /^([^=]+)=(\d{1,15})$/.exec(text) ?? [];
  if (name === undefined)
    throw new InvalidArgumentError(
      "An amount is written name=number, for example rpm=1 or tpm=500.",
    );
  if (Object.hasOwn(before, name)) throw new InvalidArgumentError(`${name} is named twice.`);
  return { ...before, [name]: Number(amount) };
}

/** Reads one more `key=value` of metadata. */
export function metadataArgument(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, key, value] = /^([^=]+)=([\s\S]*)$/.exec(text) ?? [];
  if (key === undefined || value === undefined)
    throw new InvalidArgumentError("Metadata is written key=value, for example team=search.");
  return { ...before, [key]: value };
}

/** Reads a whole number from 1. */
export function countArgument(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && Number.isSafeInteger(count)) return count;
  throw new InvalidArgumentError("It must be a whole number from 1.");
}

/** Reads a number of shards. */
export function shardsArgument(text: string): number {
  const shards = Number(text);
  if (/^\d+$/.test(text) && Math.log2(shards) % 1 === 0) return shards;
  throw new InvalidArgumentError(
    "It must be a power of two, such as 8: shards only ever split in halves.",
  );
}

/** Reads seconds, fractions allowed, and answers milliseconds. */
export function durationMsArgument(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) <= LONGEST_SECONDS)
    return Math.round(Number(text) * 1000);
  throw new InvalidArgumentError(
    `It must be a number of seconds from 0 to ${LONGEST_SECONDS}, such as 5 or 0.5.`,
  );
}

/** A day: nobody waits longer for one command. */
const LONGEST_SECONDS = 86_400;

/**
 * Reads a time: a date means its midnight in UTC, and so does a time without zone, because usage
 * windows are UTC.
 */
export function timeArgument(text: string): Date {
  const zoned = /T.*(Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes("T") ? text : `${text}Z`;
  const time = new Date(zoned);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw new InvalidArgumentError(
    "A time is written as in ISO 8601, for example 2026-11-15 or 2026-11-15T06:00:00Z.",
  );
}
