/* This library as the store of other middlewares (ADR 022): `zae-limiter/stores`, for people who keep the middleware they have. */

declare module "declared/zae-limiter/stores" {
  import type { RateLimiter } from "zae-limiter";
  export interface StoreOptions {
    readonly limiter: RateLimiter;
    readonly resource: string; // buckets are kept under it; one limit for each resource
    readonly limitName?: string; // "requests"
  }

  // ---- express-rate-limit 7 and 8, hono-rate-limiter 0.5 -------------------------------------------------------------------
  export interface HitInfo {
    totalHits: number;
    resetTime: Date;
  }
  export interface HitStoreInit {
    readonly windowMs: number;
    readonly limit: unknown; // a function: stored limits decide
    readonly skipFailedRequests?: boolean;
    readonly skipSuccessfulRequests?: boolean;
  }
  export interface HitStore {
    init(options: HitStoreInit): void;
    get(key: string): Promise<HitInfo | undefined>;
    increment(key: string): Promise<HitInfo>;
    decrement(key: string): Promise<void>;
    resetKey(key: string): Promise<void>; // rejects
    shutdown(): Promise<void>;
    readonly localKeys: boolean;
    readonly prefix: string;
  }
  export function expressRateLimitStore(options: StoreOptions): HitStore;

  // ---- @fastify/rate-limit 10 and 11 ---------------------------------------------------------------------------------------
  export type HitCallback = (
    error: Error | null,
    result?: { current: number; ttl: number },
  ) => void;
  export interface FastifyHitStore {
    incr(key: string, callback: HitCallback, timeWindow: number, max: number): void;
    read(key: string, callback: HitCallback, timeWindow: number, max: number): void;
    child(routeOptions: object): FastifyHitStore;
  }
  export function fastifyRateLimitStore(
    options: StoreOptions,
  ): new (options: object) => FastifyHitStore;

  // ---- @nestjs/throttler 6 -------------------------------------------------------------------------------------------------
  export interface ThrottlerHit {
    totalHits: number;
    timeToExpire: number;
    isBlocked: boolean;
    timeToBlockExpire: number;
  }
  export interface ThrottlerHitStorage {
    increment(
      key: string,
      ttl: number,
      limit: number,
      blockDuration: number,
      throttlerName: string,
    ): Promise<ThrottlerHit>;
  }
  export function nestThrottlerStorage(options: StoreOptions): ThrottlerHitStorage;
}
