/*
 * Middlewares count hits in a window and compare the count with their limit. Here a bucket decides,
 * and the count is what makes the middleware decide the same:
 *
 *   granted   capacity − available: 1 at least, and never more than the limit
 *   refused   one more than the limit
 *
 * A refused request takes nothing. A look returns what the next request would be compared with: if
 * that fits, the hits before it.
 */
import { isRate } from "../core/limit-kinds.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import { ValidationError } from "../core/errors.ts";
import { toId } from "../http/identity/ids.ts";
import type { Lease } from "../limiter/lease.ts";
import type { StoreOptions } from "./options.ts";
import type { Quota } from "./quota.ts";

/** The count of a refused request if only the middleware knows the limit: more than any limit. */
const MORE_THAN_ANY_LIMIT = 2 ** 31;

/** One request, as a middleware counts it. */
export interface Hit {
  readonly totalHits: number;
  /** Until the bucket is full; for a refused request, until one fits. */
  readonly waitMs: number;
  /** Holds the tokens taken; undefined if the request was refused. */
  readonly lease: Lease | undefined;
}

/** Counts the requests of one store by asking the limiter. */
export class HitCounter {
  readonly options: Required<StoreOptions>;

  constructor(options: Required<StoreOptions>) {
    this.options = options;
  }

  /** Takes one request of a key. The caller ends the lease. */
  async take(key: unknown, quota: Quota): Promise<Hit> {
    if (quota.limit === 0)
      return { ...toRefusedHit(quota, quota.windowMs / 1000), lease: undefined };
    const result = await this.options.limiter.tryAcquire(this.#request(key, quota));
    if (!result.granted)
      return { ...toRefusedHit(quota, result.refusal.retryAfterSeconds), lease: undefined };
    const { lease } = result;
    try {
      const status = this.#own(await lease.statuses(), lease.entityId);
      // A charge may have put the bucket into debt since: what was granted stays granted.
      const totalHits = Math.min(Math.max(1, hitsIn(status)), quota.limit ?? Infinity);
      return { totalHits, waitMs: fullAfterMs(status), lease };
    } catch (error) {
      await lease.finish("rollback");
      throw error;
    }
  }

  /** Takes one request of a key and commits it. */
  async count(key: unknown, quota: Quota): Promise<Hit> {
    const hit = await this.take(key, quota);
    await hit.lease?.commit();
    return hit;
  }

  /** Looks at a key's bucket: its hits, or that it refuses. Nothing is taken. */
  async look(key: unknown, quota: Quota): Promise<Omit<Hit, "lease">> {
    if (quota.limit === 0) return toRefusedHit(quota, quota.windowMs / 1000);
    const request = this.#request(key, quota);
    const { allowed, retryAfterSeconds, statuses } = await this.options.limiter.check(request);
    if (!allowed) return toRefusedHit(quota, retryAfterSeconds);
    const status = this.#own(statuses, request.entityId);
    return { totalHits: hitsIn(status), waitMs: fullAfterMs(status) };
  }

  #request(key: unknown, { resource, limits }: Quota) {
    return {
      entityId: toEntity(key),
      resource,
      consume: { [this.options.limitName]: 1 },
      ...(limits !== undefined && { limits }),
    };
  }

  /** A parent's limits are in the list too. */
  #own(statuses: readonly LimitStatus[], entityId: string): LimitStatus | undefined {
    return statuses.find(
      (status) => status.entityId === entityId && status.limitName === this.options.limitName,
    );
  }
}

/** More than the limit, which the middleware refuses. */
function toRefusedHit({ limit }: Quota, retryAfterSeconds: number): Omit<Hit, "lease"> {
  return {
    totalHits: limit === undefined ? MORE_THAN_ANY_LIMIT : limit + 1,
    waitMs: Math.round(retryAfterSeconds * 1000),
  };
}

/** A key generator that returns nothing would put all clients into one bucket. */
function toEntity(key: unknown): string {
  if (typeof key === "string" || typeof key === "number") return toId(String(key));
  throw new ValidationError(
    "key",
    key,
    `must be a text, not ${key === null ? "null" : typeof key}: see what the key generator of the middleware returns`,
  );
}

/** Without a status the call was granted without the store, or the limit is not in the policy. */
function hitsIn(status: LimitStatus | undefined): number {
  return status === undefined ? 0 : status.limit.capacity - status.available;
}

function fullAfterMs(status: LimitStatus | undefined): number {
  if (status === undefined) return 0;
  const { limit, resetsInSeconds = 0 } = status;
  return isRate(limit)
    ? Math.ceil((hitsIn(status) * limit.refillPeriodSeconds * 1000) / limit.refillAmount)
    : Math.ceil(resetsInSeconds * 1000);
}
