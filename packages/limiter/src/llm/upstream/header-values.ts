/*
 * Parsers of header values, which return undefined for invalid ones. A value that is not positive
 * means nothing: Azure sends -1 and 0 for limits that it does not disclose. A header that came
 * twice is joined by HTTP ("5, 5"), which is not a number either.
 */

/** No limit refills over more than a year. Larger values are dates or mistakes. */
const LONGEST_MS = 366 * 86_400_000;

/** Longer texts are not valid, and are not matched at all. */
const MAX_LENGTH = 64;

const COUNT = /^\d+$/;
const DECIMAL = /^\d+(?:\.\d+)?$/;
const DURATION = /^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h|d))+$/;
const DURATION_PARTS = /(?<amount>[\d.]+)(?<unit>[a-zµ]+)/g;
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;
const HTTP_DATE = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** Parses a whole number, which may be 0. */
export function parseCount(text = ""): number | undefined {
  if (!isText(text, COUNT)) return undefined;
  const count = Number(text);
  return Number.isSafeInteger(count) ? count : undefined;
}

/** Parses the milliseconds of a header such as `retry-after-ms: 1500.5`. */
export function parseMilliseconds(text = ""): number | undefined {
  return isText(text, DECIMAL) ? toTime(Number(text)) : undefined;
}

/** Parses a duration as Go writes it, such as "6m0s", or a bare number of seconds. */
export function parseDuration(text = ""): number | undefined {
  if (isText(text, DECIMAL)) return toTime(Number(text) * 1000);
  if (!isText(text, DURATION)) return undefined;
  let ms = 0;
  for (const { groups } of text.matchAll(DURATION_PARTS))
    ms += Number(groups!["amount"]) * UNIT_MS[groups!["unit"]!]!;
  return toTime(ms);
}

/** Parses a time of RFC 3339, such as "2026-11-16T15:30:01Z", to the milliseconds until then. */
export function parseTimestamp(text = "", nowMs = 0): number | undefined {
  return isText(text, RFC_3339) ? toTime(Date.parse(text) - nowMs) : undefined;
}

/** Parses a `retry-after`: a number of seconds, or an HTTP date. */
export function parseRetryAfter(text = "", nowMs = 0): number | undefined {
  if (isText(text, DECIMAL)) return toTime(Number(text) * 1000);
  return isText(text, HTTP_DATE) ? toTime(Date.parse(text) - nowMs) : undefined;
}

/** `Date.parse` takes almost any text with a number for a date, so the form is checked first. */
function isText(text: string, form: RegExp): boolean {
  return text.length <= MAX_LENGTH && form.test(text);
}

/** Rounds up to whole milliseconds; undefined if there are none, or too many. */
function toTime(ms: number): number | undefined {
  // Rounding errors of decimal fractions must not add a millisecond.
  const whole = Math.ceil(Number(ms.toFixed(3)));
  return whole > 0 && whole <= LONGEST_MS ? whole : undefined;
}
