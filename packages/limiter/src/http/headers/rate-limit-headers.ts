import type { LimitStatus } from "../../core/bucket/decision.ts";
import type { HeaderOptions } from "./options.ts";

/** The frame's placeholder: branch `headers` replaces it. */
export function rateLimitHeaders(
  statuses: readonly LimitStatus[],
  _options: HeaderOptions & { readonly nowMs: number },
): Readonly<Record<string, string>> {
  const waits = statuses.flatMap(({ exceeded, retryAfterSeconds }) =>
    exceeded ? [retryAfterSeconds] : [],
  );
  const longest = Math.max(...waits);
  if (waits.length === 0) return {};
  return Number.isFinite(longest)
    ? { "Retry-After": String(Math.ceil(longest)) }
    : { "x-should-retry": "false" };
}
