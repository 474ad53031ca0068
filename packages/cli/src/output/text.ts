import type { Amounts, Limit } from "zae-limiter";
import { Limit as Limits } from "zae-limiter";

const NUMBERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });
/**
 * Waiting times are whole milliseconds and are never rounded: a caller that waits for less is
 * refused again.
 */
const SECONDS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 3 });
const GRAPHEMES = new Intl.Segmenter("en", { granularity: "grapheme" });
// Scripts and symbols that terminals draw two cells wide.
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uFF01-\uFF60\u3000-\u303E]/u;
// oxlint-disable-next-line no-control-regex -- it is there to find control characters.
const CONTROL = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g;

/** A number for people: 12,345.67. */
export function numberText(value: number): string {
  if (value === Infinity) return "never";
  return NUMBERS.format(value);
}

/** A time for people, in UTC, to the second. */
export function timeText(time: Date | undefined): string {
  return time === undefined
    ? ""
    : time
        .toISOString()
        .replace("T", " ")
        .replace(/\.\d+Z$/, "Z");
}

/** How often a limit refills, and its options: 10,000/min, 500/day@Europe/Berlin[soft]. */
export function rateText(limit: Limit): string {
  const amount = "refillAmount" in limit ? limit.refillAmount : limit.capacity;
  // The burst of a rate has a column of its own.
  const span = Limits.format(limit).replace(/^[^/]*/, "");
  return `${numberText(amount)}${span.replace(/^(\/\w+):\d+/, "$1")}`;
}

/** Amounts on one line: rpm 1, tpm 500. */
export function amountsText(amounts: Amounts): string {
  return Object.entries(amounts)
    .map(([name, amount]) => `${name} ${numberText(amount)}`)
    .join(", ");
}

const AGES = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
] as const;

/** How long ago something was, for people: 3 hours ago. */
export function ageText(ageMs: number): string {
  const [unit, unitMs] = AGES.find(([, ms]) => ageMs >= ms) ?? ["minute", Infinity];
  const count = Math.floor(ageMs / unitMs);
  return count < 1 ? "less than a minute ago" : `${count} ${unit}${count === 1 ? "" : "s"} ago`;
}

/** A waiting time for people: 30 s, or 34,200 s (9 h 30 min), the second of which is rounded up. */
export function waitText(seconds: number): string {
  if (seconds === 0) return "now";
  if (seconds === Infinity) return "never";
  const exact = `${SECONDS.format(seconds)} s`;
  if (seconds < LONG_SECONDS) return exact;
  const minutes = Math.ceil(seconds / 60);
  const parts = [
    [Math.floor(minutes / 1440), "d"],
    [Math.floor(minutes / 60) % 24, "h"],
    [minutes % 60, "min"],
  ] as const;
  const shown = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`);
  return `${exact} (${shown.join(" ")})`;
}

/** Seconds are hard to read above ten minutes. */
const LONG_SECONDS = 600;

/**
 * Makes stored or given text safe to print: control characters could move the cursor or
 * recolour the terminal, and others change the order in which text is read.
 */
export function printable(text: string): string {
  return text.replace(
    CONTROL,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`,
  );
}

/** How many cells a text takes up in a terminal. */
export function measureWidth(text: string): number {
  // Nearly all text is of this kind, and finding graphemes is a hundred times slower.
  if (/^[\u0020-\u007E]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of GRAPHEMES.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}
