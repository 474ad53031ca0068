import type { HeaderFields, LimitNames } from "./options.ts";
import { getShownCapacity, msUntilFull, tightest, type ShownLimit } from "./shown-limit.ts";
import { integer } from "./structured-fields.ts";

/**
 * The headers of OpenAI's API: requests and tokens, and the time until each is full, as Go writes
 * durations. Where several limits have the name, the tightest is shown.
 *
 *   x-ratelimit-limit-requests: 60
 *   x-ratelimit-remaining-requests: 59
 *   x-ratelimit-reset-requests: 1s
 */
export function openai(shown: readonly ShownLimit[], names: LimitNames): HeaderFields {
  const fields: Record<string, string> = {};
  for (const kind of ["requests", "tokens"] as const) {
    const limit = tightest(shown.filter((each) => each.limit.name === names[kind]));
    if (limit === undefined) continue;
    fields[`x-ratelimit-limit-${kind}`] = integer(getShownCapacity(limit));
    fields[`x-ratelimit-remaining-${kind}`] = integer(limit.available);
    fields[`x-ratelimit-reset-${kind}`] = duration(msUntilFull(limit));
  }
  return fields;
}

/** A time as Go writes it: `12ms`, `1.5s`, `6m0s`, `24h0m0s`. */
function duration(ms: number): string {
  const whole = Number(integer(ms));
  if (whole === 0) return "0s";
  if (whole < 1000) return `${whole}ms`;
  const seconds = `${(whole % 60_000) / 1000}s`;
  if (whole < 60_000) return seconds;
  const minutes = Math.floor(whole / 60_000);
  return minutes < 60
    ? `${minutes}m${seconds}`
    : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}
