import { ValidationError } from "../core/errors.ts";
import type { RateLimiter } from "../limiter/rate-limiter.ts";
import type { StoreOptions } from "./options.ts";
import type { Quota } from "./quota.ts";

/**
 * The limits that middlewares of this process have registered: one for each resource and limit
 * name. Their number is bounded by the middlewares and routes of the application.
 */
const LIMITS_MEMO = new WeakMap<RateLimiter, Map<string, string>>();

/**
 * Throws if another middleware of the limiter has registered a different limit for the bucket: they
 * would replace each other's limit with every request. Other processes may have different limits,
 * as they do during a deployment. `apart` names the options that distinguish two of them.
 */
export function registerLimit(
  { limiter, limitName }: Required<StoreOptions>,
  quota: Quota,
  apart: string,
): void {
  const registered = LIMITS_MEMO.get(limiter) ?? new Map<string, string>();
  LIMITS_MEMO.set(limiter, registered);
  const bucket = `${quota.resource} ${limitName}`;
  const text = quota.limit === undefined ? "stored limits" : limitText(quota.limit, quota.windowMs);
  const known = registered.get(bucket) ?? text;
  if (known !== text)
    throw new ValidationError(
      "resource",
      quota.resource,
      `another middleware of this limiter has ${known} for it, and this one has ${text}; give each its own ${apart}`,
    );
  registered.set(bucket, text);
}

/** A limit for each window, such as `100/60s`. */
export function limitText(limit: number, windowMs: number): string {
  return `${limit}/${windowMs / 1000}s`;
}
