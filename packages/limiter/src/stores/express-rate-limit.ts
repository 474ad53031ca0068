import { ValidationError } from "../core/errors.ts";
import { systemClock } from "../repository/system-clock.ts";
import { HitLeases } from "./hit-leases.ts";
import { HitCounter } from "./hit-counter.ts";
import { resolveStoreOptions, type StoreOptions } from "./options.ts";
import { registerLimit } from "./one-limit.ts";
import { buildQuota, type Quota } from "./quota.ts";

/** What the middleware learns about a client. */
export interface HitInfo {
  /** Hits that have not been refilled; more than the limit if the bucket refuses. */
  totalHits: number;
  /** When the bucket is full again; for a refused request, when one fits. */
  resetTime: Date;
}

/** The options of a middleware that a store looks at. */
export interface HitStoreInit {
  /** The length of the window: whole seconds. */
  readonly windowMs: number;
  /** Requests in a window; stored limits decide if it is a function. */
  readonly limit: unknown;
  /** Whether requests that fail are given back. */
  readonly skipFailedRequests?: boolean;
  /** Whether requests that succeed are given back. */
  readonly skipSuccessfulRequests?: boolean;
}

/** A store of express-rate-limit 7 and 8, and of hono-rate-limiter 0.5. The middleware calls it. */
export interface HitStore {
  /**
   * Takes the limit of the middleware. Throws if the store cannot keep it, or if another middleware
   * of the limiter has a different one for the resource.
   * @example store.init({ windowMs: 60_000, limit: 100 });
   */
  init(options: HitStoreInit): void;
  /**
   * What a key has used, or more than the limit if the next request would be refused; undefined if
   * its bucket is full. Nothing is taken.
   * @example const hits = (await store.get("203.0.113.7"))?.totalHits ?? 0;
   */
  get(key: string): Promise<HitInfo | undefined>;
  /**
   * Takes one request.
   * @example const { totalHits, resetTime } = await store.increment("203.0.113.7");
   */
  increment(key: string): Promise<HitInfo>;
  /**
   * Gives one request back; for `skipFailedRequests` and `skipSuccessfulRequests`.
   * @example await store.decrement("203.0.113.7");
   */
  decrement(key: string): Promise<void>;
  /**
   * Rejects: a bucket cannot be reset.
   * @example await store.resetKey("203.0.113.7").catch((error: unknown) => log.warn(error));
   */
  resetKey(key: string): Promise<void>;
  /**
   * Releases the requests that could be given back; they stay counted. The limiter stays open.
   * @example await store.shutdown();
   */
  shutdown(): Promise<void>;
  /** False: stores of one resource share their buckets. */
  readonly localKeys: boolean;
  /** Distinguishes buckets of one key, so that the middleware notices requests that count twice. */
  readonly prefix: string;
}

/**
 * This library as the store of express-rate-limit 7 and 8, and of hono-rate-limiter 0.5. The limit
 * of the middleware is a bucket of that capacity, which refills within the window; limits that are
 * stored for the resource are not consulted. If `limit` is a function, the stored limits of the
 * resource decide. The bucket is carried over when a deployment changes the limit.
 * @example
 * const store = expressRateLimitStore({ limiter, resource: "web" });
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store }));
 */
export function expressRateLimitStore(options: StoreOptions): HitStore {
  return new ExpressRateLimitStore(
    new HitCounter(resolveStoreOptions(options, "expressRateLimitStore")),
  );
}

/** Messages of express-rate-limit show the name of the class. */
class ExpressRateLimitStore implements HitStore {
  readonly localKeys = false;
  readonly #counter: HitCounter;
  #quota: Quota | undefined;
  /** Made if requests may be given back. */
  #held: HitLeases | undefined;
  /** What `init` threw. express-rate-limit only logs it, so every request throws it again. */
  #fault: unknown;

  constructor(counter: HitCounter) {
    this.#counter = counter;
  }

  get prefix(): string {
    const { resource, limitName } = this.#counter.options;
    return `${resource}:${limitName}:`;
  }

  init(options: HitStoreInit): void {
    try {
      const quota = this.#buildQuota(options);
      registerLimit(this.#counter.options, quota, "resource");
      this.#quota = quota;
    } catch (error) {
      this.#fault = error;
      throw error;
    }
    if (options.skipFailedRequests === true || options.skipSuccessfulRequests === true)
      this.#held ??= new HitLeases(this.#counter.options.limiter.clock, options.windowMs);
  }

  async get(key: string): Promise<HitInfo | undefined> {
    const { totalHits, waitMs } = await this.#counter.look(key, this.#getQuota());
    return totalHits === 0 ? undefined : { totalHits, resetTime: dateAfter(waitMs) };
  }

  async increment(key: string): Promise<HitInfo> {
    const quota = this.#getQuota();
    const held = this.#held;
    if (held === undefined) {
      const { totalHits, waitMs } = await this.#counter.count(key, quota);
      return { totalHits, resetTime: dateAfter(waitMs) };
    }
    const { totalHits, waitMs, lease } = await this.#counter.take(key, quota);
    if (lease === undefined) held.noteRefusal(key, waitMs);
    else held.hold(key, lease);
    // express-rate-limit gives nothing back after this time. Every bucket is full within a window.
    return { totalHits, resetTime: dateAfter(lease === undefined ? waitMs : quota.windowMs) };
  }

  async decrement(key: string): Promise<void> {
    if (this.#held === undefined)
      throw new ValidationError(
        "decrement",
        "decrement",
        "nothing is held that could be given back; set skipFailedRequests or skipSuccessfulRequests of the middleware",
      );
    await this.#held.giveBack(key);
  }

  async resetKey(_key: string): Promise<void> {
    throw new ValidationError(
      "resetKey",
      "resetKey",
      "a bucket cannot be reset; it refills by itself within the window",
    );
  }

  async shutdown(): Promise<void> {
    this.#held?.clear();
  }

  #buildQuota({ windowMs, limit }: HitStoreInit): Quota {
    const { options } = this.#counter;
    if (typeof limit === "function")
      return { limit: undefined, windowMs, resource: options.resource, limits: undefined };
    return buildQuota(options, { limit, windowMs }, { limit: "limit", window: "windowMs" });
  }

  #getQuota(): Quota {
    if (this.#fault !== undefined) throw this.#fault;
    if (this.#quota !== undefined) return this.#quota;
    throw new ValidationError(
      "store",
      "store",
      "has no limit yet; pass it to the middleware, which calls init",
    );
  }
}

/** Middlewares subtract the system time, so the limiter's clock does not matter here. */
function dateAfter(waitMs: number): Date {
  return new Date(systemClock.now() + waitMs);
}
