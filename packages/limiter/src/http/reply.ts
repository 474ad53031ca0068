import { RateLimitExceeded } from "../core/bucket/refusal.ts";
import { RateLimiterUnavailable } from "../core/errors.ts";
import { systemClock } from "../repository/system-clock.ts";
import type { HeaderFields, HeaderOptions } from "./headers/options.ts";
import { toHeaders } from "./headers/rate-limit-headers.ts";
import { refusalProblem } from "./problem.ts";

/** The fields that are lists (RFC 9651): every middleware of a request adds its items. */
export const LIST_FIELDS: ReadonlySet<string> = new Set(["RateLimit-Policy", "RateLimit"]);

/** The fields that say when to retry. They are not balances. */
const RETRY_FIELDS: ReadonlySet<string> = new Set(["Retry-After", "x-should-retry"]);

/** A response in place of the handler's. */
export interface Reply {
  readonly status: 429 | 503;
  readonly headers: HeaderFields;
  /** A problem in JSON (RFC 9457). */
  readonly body: string;
}

const PROBLEM_FIELDS = {
  "Content-Type": "application/problem+json",
  "Cache-Control": "no-store",
} as const;

/** Marks a refusal whose limits are already in the response. */
const SHOWN = Symbol("zae-limiter shown");

/** Marks a refusal whose limits are in the response. `respond` may pass it on as an error. */
export function markShown(refusal: RateLimitExceeded): void {
  // Not enumerable, because it would be printed with the error.
  Object.defineProperty(refusal, SHOWN, { value: true });
}

/** The reply to a request whose handler threw this error; undefined if it is not about limits. */
export function replyToError(error: unknown): Reply | undefined {
  if (error instanceof RateLimitExceeded)
    return buildRefusalReply(error, SHOWN in error ? false : {}, systemClock.now());
  return error instanceof RateLimiterUnavailable ? unavailableReply() : undefined;
}

/** The reply to a request that does not fit. */
export function buildRefusalReply(
  refusal: RateLimitExceeded,
  headers: HeaderOptions | false,
  nowMs: number,
): Reply {
  const fields = toHeaders(refusal.statuses, headers === false ? {} : headers, nowMs);
  // Not by spreading: adding properties to a spread object takes 2 µs in V8.
  const shown: Record<string, string> = Object.assign({}, PROBLEM_FIELDS);
  for (const name in fields)
    if (headers !== false || RETRY_FIELDS.has(name)) shown[name] = fields[name]!;
  return {
    status: 429,
    headers: shown,
    body: JSON.stringify(refusalProblem(refusal)),
  };
}

/** The headers of a reply whose body the application sends, so without our content type. */
export function headersWithoutType({ headers }: Reply): HeaderFields {
  const { "Content-Type": _, ...others } = headers;
  return others;
}

/** The reply when the store is unavailable. */
export function unavailableReply(): Reply {
  return {
    status: 503,
    headers: { ...PROBLEM_FIELDS, "Retry-After": "1" },
    body: JSON.stringify({
      type: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
      title: "Temporary Reduced Capacity",
      status: 503,
      detail: "The limits of this request cannot be checked at the moment.",
    }),
  };
}
