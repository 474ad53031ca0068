import type { RateLimiter } from "../limiter/rate-limiter.ts";

/** What a store needs. */
export interface StoreOptions {
  /** The limiter that decides. */
  readonly limiter: RateLimiter;
  /** What is used, such as the name of the service. */
  readonly resource: string;
  /** The limit that requests are taken from. @default "requests" */
  readonly limitName?: string;
}

/** The frame's placeholder: branch `stores` replaces it. */
export const LIMIT_NAME = "requests";
