/*
 * The part of RFC 9651 (Structured Field Values) that the headers need: Integers, Strings and
 * Parameters.
 */

/** The largest Integer of a structured field. */
const MAX_INTEGER = 999_999_999_999_999;

/** What a String may hold as it is: printable ASCII, except for `"`, `\` and `%`. */
const PLAIN = /^[ !#$&-[\]-~]*$/;

/**
 * A whole number from 0 up as an Integer. Numbers beyond the range of an Integer become the largest
 * one.
 */
export function integer(value: number): string {
  // A comparison with NaN is false, so it becomes 0.
  return String(value > 0 ? Math.min(Math.floor(value), MAX_INTEGER) : 0);
}

/**
 * A text as a String. A String holds ASCII only: the UTF-8 bytes of other characters are
 * percent-encoded, as in a Display String, and so is the percent sign. No name of a limit needs it.
 */
export function text(value: string): string {
  return PLAIN.test(value) ? `"${value}"` : `"${escapeText(value)}"`;
}

function escapeText(value: string): string {
  let result = "";
  for (const byte of new TextEncoder().encode(value)) {
    const character = String.fromCharCode(byte);
    if (character === '"' || character === "\\") result += `\\${character}`;
    else if (PLAIN.test(character)) result += character;
    else result += `%${byte.toString(16).padStart(2, "0")}`;
  }
  return result;
}
