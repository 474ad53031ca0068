import { ValidationError } from "../core/errors.ts";
import { HitCounter } from "./hit-counter.ts";
import { resolveStoreOptions, type StoreOptions } from "./options.ts";
import { buildQuota } from "./quota.ts";

/** What the guard learns about a client. */
export interface ThrottlerHit {
  /** Hits that count against the limit. */
  totalHits: number;
  /** Whole seconds until the bucket is full. */
  timeToExpire: number;
  /** Whether the request is refused. */
  isBlocked: boolean;
  /** Whole seconds until a request fits; 0 if this one did. */
  timeToBlockExpire: number;
}

/** A storage of @nestjs/throttler 6. The guard calls it. */
export interface ThrottlerHitStorage {
  /**
   * Takes one request. Times are in milliseconds. Each throttler counts separately: `default` under
   * the resource, any other under the resource and its name, such as `api:short`.
   * @example const { isBlocked } = await storage.increment("key", 60_000, 100, 60_000, "default");
   */
  increment(
    key: string,
    ttl: number,
    limit: number,
    blockDuration: number,
    throttlerName: string,
  ): Promise<ThrottlerHit>;
}

/**
 * This library as the storage of @nestjs/throttler 6. The limit of each throttler is a bucket of
 * that capacity, which refills within its ttl; limits that are stored for the resource are not
 * consulted. The guard passes its limits only with each request, so they apply to the key's bucket.
 * @example
 * const storage = nestThrottlerStorage({ limiter, resource: "api" });
 * ThrottlerModule.forRoot({ throttlers: [{ ttl: 60_000, limit: 100 }], storage });
 */
export function nestThrottlerStorage(options: StoreOptions): ThrottlerHitStorage {
  const counter = new HitCounter(resolveStoreOptions(options, "nestThrottlerStorage"));
  return {
    async increment(key, ttl, limit, blockDuration, throttlerName) {
      checkBlock(blockDuration, ttl);
      const scope = throttlerName === "default" ? undefined : throttlerName;
      const quota = buildQuota(
        counter.options,
        { limit, windowMs: ttl, scope },
        { limit: "limit", window: "ttl" },
      );
      const { totalHits, waitMs, lease } = await counter.count(key, quota);
      const seconds = Math.ceil(waitMs / 1000);
      const isBlocked = lease === undefined;
      return {
        totalHits,
        timeToExpire: seconds,
        isBlocked,
        timeToBlockExpire: isBlocked ? seconds : 0,
      };
    },
  };
}

/** The guard passes the ttl if no duration was set. A shorter duration has no effect. */
function checkBlock(blockDuration: number, ttl: number): void {
  if (blockDuration > ttl)
    throw new ValidationError(
      "blockDuration",
      blockDuration,
      "must not be longer than the ttl: this storage refuses until a request fits, and does not block for longer; leave it out",
    );
}
