import {
  computeWindowSeconds,
  formatPolicy,
  getShownCapacity,
  secondsUntilMore,
  tightest,
  type ShownLimit,
} from "./shown-limit.ts";
import { integer } from "./structured-fields.ts";

/**
 * The fields of draft-ietf-httpapi-ratelimit-headers-06: the policies without their names, and the
 * tightest limit. The limit is the capacity, so that what remains is never above it. On a refusal
 * the reset is the moment of Retry-After, as the draft asks. The draft requires a reset: that of a
 * full limit is 0, and that of a call that can never fit is the window.
 *
 *   RateLimit-Policy: 100;w=60
 *   RateLimit-Limit: 100
 *   RateLimit-Remaining: 59
 *   RateLimit-Reset: 1
 */
export function draft6(shown: readonly ShownLimit[]): {
  readonly [
    Name in "RateLimit-Policy" | "RateLimit-Limit" | "RateLimit-Remaining" | "RateLimit-Reset"
  ]: string;
} {
  const closest = tightest(shown)!;
  const { limit, exceeded, resetsAt } = closest;
  return {
    "RateLimit-Policy": shown.map((each) => formatPolicy(each)).join(", "),
    "RateLimit-Limit": integer(getShownCapacity(closest)),
    "RateLimit-Remaining": integer(closest.available),
    "RateLimit-Reset": integer(
      secondsUntilMore(closest) ?? (exceeded ? (computeWindowSeconds(limit, resetsAt) ?? 0) : 0),
    ),
  };
}
