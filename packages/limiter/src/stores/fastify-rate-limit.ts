import { ValidationError } from "../core/errors.ts";
import { HitCounter, type Hit } from "./hit-counter.ts";
import { resolveStoreOptions, type StoreOptions } from "./options.ts";
import { registerLimit, limitText } from "./one-limit.ts";
import { buildQuota, type Quota } from "./quota.ts";

/** What the plugin gets: hits that count against the maximum, and the milliseconds to wait. */
export type HitCallback = (
  error: Error | null,
  result?: {
    /** Hits that have not been refilled; more than the maximum if the bucket refuses. */
    current: number;
    /** Milliseconds until the bucket is full; for a refused request, until one fits. */
    ttl: number;
  },
) => void;

/** A store of @fastify/rate-limit 10 and 11. The plugin calls it. */
export interface FastifyHitStore {
  /**
   * Takes one request.
   * @example store.incr("203.0.113.7", (error, hits) => log.warn(error ?? hits), 60_000, 100);
   */
  incr(key: string, callback: HitCallback, timeWindow: number, max: number): void;
  /**
   * Reports what a key has used, or more than the maximum if the next request would be refused.
   * Nothing is taken.
   * @example store.read("203.0.113.7", (error, hits) => log.warn(error ?? hits), 60_000, 100);
   */
  read(key: string, callback: HitCallback, timeWindow: number, max: number): void;
  /**
   * The store of a route that has options of its own. Each route and each group counts separately.
   * @example store.child({ max: 5, routeInfo: { method: "POST", url: "/login" } });
   */
  child(routeOptions: object): FastifyHitStore;
}

/**
 * This library as the store of @fastify/rate-limit 10 and 11: a class that the plugin makes
 * instances of. The maximum is a bucket of that capacity, which refills within the time window;
 * limits that are stored for the resource are not consulted. Numbers are checked when the plugin or
 * a route is registered; what functions return applies to the bucket with each request.
 * @example
 * const store = fastifyRateLimitStore({ limiter, resource: "web" });
 * await app.register(fastifyRateLimit, { max: 100, timeWindow: "1 minute", store });
 */
export function fastifyRateLimitStore(
  options: StoreOptions,
): new (options: object) => FastifyHitStore {
  const counter = new HitCounter(resolveStoreOptions(options, "fastifyRateLimitStore"));
  return class extends ScopedStore {
    constructor(pluginOptions: object) {
      super(counter, undefined, pluginOptions);
    }
  };
}

/** The options of the plugin and of routes that a store looks at. */
interface LimitedOptions {
  readonly max?: unknown;
  readonly timeWindow?: unknown;
  readonly ban?: unknown;
  readonly continueExceeding?: unknown;
  readonly exponentialBackoff?: unknown;
  readonly groupId?: unknown;
  readonly routeInfo?: { readonly method?: string | readonly string[]; readonly url?: string };
}

/** Counts what belongs to one scope: the plugin's own, a route or a group. */
class ScopedStore implements FastifyHitStore {
  readonly #counter: HitCounter;
  readonly #scope: string | undefined;

  constructor(counter: HitCounter, scope: string | undefined, options: LimitedOptions) {
    this.#counter = counter;
    this.#scope = scope;
    checkExpressible(options);
    // What functions return is known only with each request.
    const { max, timeWindow } = options;
    if (typeof max === "number" && typeof timeWindow === "number")
      registerLimit(counter.options, this.#quota(timeWindow, max), "resource or groupId");
  }

  incr(key: string, callback: HitCallback, timeWindow: number, max: number): void {
    callBack(callback, async () => this.#counter.count(key, this.#quota(timeWindow, max)));
  }

  read(key: string, callback: HitCallback, timeWindow: number, max: number): void {
    callBack(callback, async () => this.#counter.look(key, this.#quota(timeWindow, max)));
  }

  child(routeOptions: object): FastifyHitStore {
    return new ScopedStore(this.#counter, chooseScope(routeOptions), routeOptions);
  }

  #quota(timeWindow: number, max: number): Quota {
    // Nothing else distinguishes limiters that were made by hand.
    const isNamedByLimit = this.#scope === WITHOUT_ROUTE;
    const scope = isNamedByLimit ? `${this.#scope}:${limitText(max, timeWindow)}` : this.#scope;
    return buildQuota(
      this.#counter.options,
      { limit: max, windowMs: timeWindow, scope },
      { limit: "max", window: "timeWindow" },
    );
  }
}

/** Refused requests take nothing, so what the plugin would count beyond its maximum is lost. */
function checkExpressible({ ban, continueExceeding, exponentialBackoff }: LimitedOptions): void {
  if (typeof ban === "number" && ban > 0)
    throw new ValidationError(
      "ban",
      ban,
      "cannot be kept by this store, which does not count refused requests; leave it out, or set 0 to ban with the first",
    );
  const extended = continueExceeding === true ? "continueExceeding" : "exponentialBackoff";
  if (continueExceeding === true || exponentialBackoff === true)
    throw new ValidationError(
      extended,
      extended,
      "cannot be kept by this store: a bucket refills while it refuses; leave it out",
    );
}

/** A limiter made by `fastify.rateLimit(options)` has no route. */
const WITHOUT_ROUTE = "by-hand";

function chooseScope({ groupId, routeInfo }: LimitedOptions): string {
  if (typeof groupId === "string" && groupId !== "") return `group:${groupId}`;
  if (routeInfo?.url === undefined) return WITHOUT_ROUTE;
  return `${[routeInfo.method].flat().join(".")}${routeInfo.url}`;
}

/** Passes the hits to the plugin, or the error. */
function callBack(callback: HitCallback, hits: () => Promise<Omit<Hit, "lease">>): void {
  hits().then(
    ({ totalHits, waitMs }) => callback(null, { current: totalHits, ttl: waitMs }),
    (error: Error) => callback(error),
  );
}
