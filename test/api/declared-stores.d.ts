// Made by `npm run declare`.

declare module "declared/zae-limiter/stores" {
  import { RateLimiter } from "zae-limiter";
  export function expressRateLimitStore(options: StoreOptions): HitStore;
  export interface HitInfo {
    totalHits: number;
    resetTime: Date;
  }
  export interface HitStore {
    init(options: HitStoreInit): void;
    get(key: string): Promise<HitInfo | undefined>;
    increment(key: string): Promise<HitInfo>;
    decrement(key: string): Promise<void>;
    resetKey(key: string): Promise<void>;
    shutdown(): Promise<void>;
    readonly localKeys: boolean;
    readonly prefix: string;
  }
  export interface HitStoreInit {
    readonly windowMs: number;
    readonly limit: unknown;
    readonly skipFailedRequests?: boolean;
    readonly skipSuccessfulRequests?: boolean;
  }
  export function fastifyRateLimitStore(
    options: StoreOptions,
  ): new (options: object) => FastifyHitStore;
  export interface FastifyHitStore {
    incr(key: string, callback: HitCallback, timeWindow: number, max: number): void;
    read(key: string, callback: HitCallback, timeWindow: number, max: number): void;
    child(routeOptions: object): FastifyHitStore;
  }
  export type HitCallback = (
    error: Error | null,
    result?: {
      current: number;
      ttl: number;
    },
  ) => void;
  export function nestThrottlerStorage(options: StoreOptions): ThrottlerHitStorage;
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
  export interface StoreOptions {
    readonly limiter: RateLimiter;
    readonly resource: string;
    readonly limitName?: string;
  }
}
