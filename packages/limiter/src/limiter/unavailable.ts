import { RateLimiterUnavailable } from "../core/errors.ts";
import type { AcquireRequest } from "./call.ts";

/** Adds the call to an error of the store, unless the backend has done so. */
export function withCall(
  error: RateLimiterUnavailable,
  { entityId, resource }: Pick<AcquireRequest, "entityId" | "resource">,
): RateLimiterUnavailable {
  if (error.entityId !== undefined) return error;
  return new RateLimiterUnavailable(error.message, {
    entityId,
    resource,
    ...(error.stackName !== undefined && { stackName: error.stackName }),
    cause: error,
  });
}

/** The error of calls on a limiter that was closed. */
export function buildLimiterClosedError(): RateLimiterUnavailable {
  return new RateLimiterUnavailable("This limiter was closed. Make a new one.");
}
