import { computeMostHeld, isRate } from "../core/limit-kinds.ts";
import type { SupportedLimit } from "../core/supported-limits.ts";
import type { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { policyName } from "./headers/shown-limit.ts";

/** The body of a 429 response (RFC 9457). It names no entity. */
export interface RefusalProblem {
  /** What kind of problem it is. */
  readonly type: "https://iana.org/assignments/http-problem-types#quota-exceeded";
  /** The kind in words. */
  readonly title: string;
  /** The status of the response. */
  readonly status: 429;
  /** What happened, for people. */
  readonly detail: string;
  /** The limits that refused, named as in the headers. */
  readonly "violated-policies": readonly string[];
  /** Milliseconds until the request fits; null if it never can. */
  readonly retry_after_ms: number | null;
}

/**
 * Makes the body of a 429 response (RFC 9457). Unlike `refusal.toJSON()`, it has no ids and no
 * balances, so any client may see it.
 * @example
 * const body = JSON.stringify(refusalProblem(refusal)); // Content-Type: application/problem+json
 */
export function refusalProblem(refusal: RateLimitExceeded): RefusalProblem {
  const { violations, statuses, retryAfterSeconds } = refusal;
  return {
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Quota Exceeded",
    status: 429,
    detail: formatDetail(refusal),
    "violated-policies": violations.map((violation) => policyName(violation, statuses[0]!)),
    retry_after_ms: Number.isFinite(retryAfterSeconds)
      ? Math.round(retryAfterSeconds * 1000)
      : null,
  };
}

/** The wait is rounded up, as in `Retry-After`: never too early. */
function formatDetail({ primaryViolation, statuses }: RateLimitExceeded): string {
  const { limit, requested, leaves, retryAfterSeconds } = primaryViolation;
  const name = policyName(primaryViolation, statuses[0]!);
  const left = leaves === 0 ? "" : ` and must leave ${leaves}`;
  return Number.isFinite(retryAfterSeconds)
    ? `The request exceeds the ${formatLimit(limit, name)}; retry in ${formatWait(retryAfterSeconds)}.`
    : `The request takes ${requested} of ${name}${left}, which never holds more than ${computeMostHeld(limit)}, so it can never fit.`;
}

function formatLimit(limit: SupportedLimit, name: string): string {
  if (isRate(limit))
    return `limit ${name} of ${limit.refillAmount} every ${limit.refillPeriodSeconds} s`;
  const { capacity } = limit;
  if (limit.kind === "session")
    return `limit ${name} of ${capacity} in the ${formatWait(limit.windowSeconds)} after the first use`;
  const { resets } = limit;
  const window = "cron" in resets ? `window (cron ${resets.cron}, ` : `${resets.every} (`;
  return `quota ${name} of ${capacity} ${window.startsWith("hour") ? "an" : "a"} ${window}${resets.zone})`;
}

/** Seconds, or the largest unit of which there are five: a rounded hour is not one and a minute. */
function formatWait(seconds: number): string {
  const [unit, length] = UNITS.find((candidate) => seconds >= 5 * candidate[1]) ?? ["s", 1];
  return `${Math.ceil(seconds / length)} ${unit}`;
}

const UNITS = [
  ["days", 86_400],
  ["h", 3600],
  ["min", 60],
] as const;
