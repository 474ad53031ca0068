import type { HeaderFields, LimitNames } from "./options.ts";
import { getShownCapacity, msUntilFull, tightest, type ShownLimit } from "./shown-limit.ts";
import { integer } from "./structured-fields.ts";

/** What each header calls the limit of `names`. */
const KINDS = [
  ["requests", "requests"],
  ["tokens", "tokens"],
  ["input-tokens", "inputTokens"],
  ["output-tokens", "outputTokens"],
] as const;

/**
 * The headers of Anthropic's API: requests and tokens, and when each is full (RFC 3339). Where
 * several limits have the name, the tightest is shown.
 *
 *   anthropic-ratelimit-requests-limit: 60
 *   anthropic-ratelimit-requests-remaining: 59
 *   anthropic-ratelimit-requests-reset: 2026-11-16T15:30:01Z
 */
export function anthropic(
  shown: readonly ShownLimit[],
  names: LimitNames,
  nowMs: number,
): HeaderFields {
  const fields: Record<string, string> = {};
  for (const [kind, name] of KINDS) {
    const limit = tightest(shown.filter((each) => each.limit.name === names[name]));
    if (limit === undefined) continue;
    fields[`anthropic-ratelimit-${kind}-limit`] = integer(getShownCapacity(limit));
    fields[`anthropic-ratelimit-${kind}-remaining`] = integer(limit.available);
    fields[`anthropic-ratelimit-${kind}-reset`] = timestamp(nowMs + msUntilFull(limit));
  }
  return fields;
}

/** The first and the last second that RFC 3339 can write. */
const FIRST_MS = Date.UTC(1970, 0);
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** A time in whole seconds, rounded up: `2026-11-16T15:30:01Z`. */
function timestamp(timeMs: number): string {
  const ms = Math.min(Math.max(Math.ceil(timeMs / 1000) * 1000, FIRST_MS), LAST_MS);
  return `${new Date(ms).toISOString().slice(0, -".000Z".length)}Z`;
}
