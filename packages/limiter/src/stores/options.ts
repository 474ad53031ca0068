import { limitName, resourceName } from "../core/identifiers.ts";
import { checkOptions, optionNames } from "../core/options.ts";
import { checkLimiter } from "../limiter/mistakes.ts";
import type { RateLimiter } from "../limiter/rate-limiter.ts";

/** What a store needs. */
export interface StoreOptions {
  /** The limiter that decides. The caller closes it. */
  readonly limiter: RateLimiter;
  /**
   * What is used, such as the name of the service: buckets are kept under it. Middlewares of one
   * limiter with different limits need a resource each.
   */
  readonly resource: string;
  /** The limit that requests are taken from. @default "requests" */
  readonly limitName?: string;
}

const STORE_NAMES = optionNames<StoreOptions>({ limiter: true, resource: true, limitName: true });

/** Returns checked options with their defaults, or throws. `owner` is the function's name. */
export function resolveStoreOptions(options: StoreOptions, owner: string): Required<StoreOptions> {
  checkOptions(options, STORE_NAMES, owner);
  const { limiter } = options;
  checkLimiter(limiter);
  return {
    limiter,
    resource: resourceName(options.resource),
    limitName: limitName(options.limitName ?? "requests", "limitName"),
  };
}
