export {
  expressRateLimitStore,
  type HitInfo,
  type HitStore,
  type HitStoreInit,
} from "./express-rate-limit.ts";
export {
  fastifyRateLimitStore,
  type FastifyHitStore,
  type HitCallback,
} from "./fastify-rate-limit.ts";
export {
  nestThrottlerStorage,
  type ThrottlerHit,
  type ThrottlerHitStorage,
} from "./nest-throttler.ts";
export type { StoreOptions } from "./options.ts";
