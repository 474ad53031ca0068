import { ValidationError } from "../core/errors.ts";
import { isResourceName } from "../core/identifiers.ts";
import { positive } from "../core/check-limit.ts";
import { Limit } from "../core/limit.ts";
import { hashedId } from "../http/identity/ids.ts";

/** The middleware's names for its limit and window, for errors. */
export interface QuotaWords {
  readonly limit: string;
  readonly window: string;
}

/** A number of requests in a window, and the bucket that counts them. */
export interface Quota {
  /** Undefined if the store does not know it; then stored limits decide. */
  readonly limit: number | undefined;
  readonly windowMs: number;
  /** Where requests are counted. */
  readonly resource: string;
  /** The call's own limits: the only one of the bucket. Undefined if stored limits decide. */
  readonly limits: readonly Limit[] | undefined;
}

/**
 * A limit per window as a bucket of that capacity, which refills at that rate. `scope` is what a
 * middleware counts separately within the resource, such as a route. The limit is not part of the
 * bucket's name, so the bucket is carried over when the limit changes.
 */
export function buildQuota(
  base: { readonly resource: string; readonly limitName: string },
  given: {
    readonly limit: unknown;
    readonly windowMs: unknown;
    readonly scope?: string | undefined;
  },
  words: QuotaWords,
): Quota {
  const windowMs = wholeSeconds(given.windowMs, words.window);
  const limit = given.limit === 0 ? 0 : positive(given.limit, words.limit);
  return {
    limit,
    windowMs,
    resource: given.scope === undefined ? base.resource : buildName(base.resource, given.scope),
    limits:
      limit === 0
        ? []
        : [
            Limit.custom({
              name: base.limitName,
              capacity: limit,
              refillAmount: limit,
              refillPeriodSeconds: windowMs / 1000,
            }),
          ],
  };
}

function wholeSeconds(windowMs: unknown, field: string): number {
  if (typeof windowMs === "number" && windowMs > 0 && Number.isSafeInteger(windowMs / 1000))
    return windowMs;
  throw new ValidationError(
    field,
    windowMs,
    "must be whole seconds in milliseconds, such as 60000: buckets refill in periods of whole seconds",
  );
}

/** With the dash and the 32 digits of a hash, this is as long as a resource's name may be. */
const HASHED_BASE_LENGTH = 31;

/**
 * Names what is counted separately. The paths of routes may be anything, and are hashed if
 * necessary.
 */
function buildName(base: string, scope: string): string {
  const text = `${base}:${scope}`;
  if (isResourceName(text)) return text;
  return hashedId(base.slice(0, HASHED_BASE_LENGTH).replaceAll(/[^\w.-]/g, "-"), text);
}
