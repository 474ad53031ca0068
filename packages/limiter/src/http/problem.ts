import type { RateLimitExceeded } from "../core/bucket/refusal.ts";

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

/** The frame's placeholder: branch `headers` replaces it. */
export function refusalProblem(refusal: RateLimitExceeded): RefusalProblem {
  return {
    type: "https://iana.org/assignments/http-problem-types#quota-exceeded",
    title: "Quota exceeded",
    status: 429,
    detail: "",
    "violated-policies": refusal.violations.map(({ limitName }) => limitName),
    retry_after_ms: Number.isFinite(refusal.retryAfterSeconds)
      ? Math.round(refusal.retryAfterSeconds * 1000)
      : null,
  };
}
