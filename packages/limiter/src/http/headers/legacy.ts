import type { HeaderFields } from "./options.ts";
import { getShownCapacity, msUntilFull, tightest, type ShownLimit } from "./shown-limit.ts";
import { integer } from "./structured-fields.ts";

/**
 * The headers that many services send: the tightest limit, and when it is full, in seconds since
 * 1970.
 *
 *   X-RateLimit-Limit: 100
 *   X-RateLimit-Remaining: 59
 *   X-RateLimit-Reset: 1794842725
 */
export function legacy(shown: readonly ShownLimit[], nowMs: number): HeaderFields {
  const closest = tightest(shown)!;
  return {
    "X-RateLimit-Limit": integer(getShownCapacity(closest)),
    "X-RateLimit-Remaining": integer(closest.available),
    "X-RateLimit-Reset": integer(Math.ceil((nowMs + msUntilFull(closest)) / 1000)),
  };
}
