/* The vendors' own types accept the stores. Compiled by `tsc -b`; nothing here runs. */
import type { FastifyPluginCallback } from "fastify";
import type { FastifyRateLimitStoreCtor, RateLimitPluginOptions } from "@fastify/rate-limit";
import type { ThrottlerModuleOptions, ThrottlerStorage } from "@nestjs/throttler";
import { rateLimit, type Store } from "express-rate-limit";
import { rateLimiter, webSocketLimiter, type Store as HonoStore } from "hono-rate-limiter";
import { expectTypeOf } from "vitest";
import type { RateLimiter } from "zae-limiter";
import {
  expressRateLimitStore,
  fastifyRateLimitStore,
  nestThrottlerStorage,
  type HitStore,
} from "zae-limiter/stores";

declare const limiter: RateLimiter;
declare const plugin: FastifyPluginCallback<RateLimitPluginOptions>;

const options = { limiter, resource: "web" };

expectTypeOf<HitStore>().toExtend<Store>();
expectTypeOf<HitStore>().toExtend<HonoStore>();
expectTypeOf<ReturnType<typeof fastifyRateLimitStore>>().toExtend<FastifyRateLimitStoreCtor>();
expectTypeOf<ReturnType<typeof nestThrottlerStorage>>().toExtend<ThrottlerStorage>();

export const used = [
  rateLimit({ store: expressRateLimitStore(options) }),
  rateLimiter({ store: expressRateLimitStore(options), keyGenerator: () => "key" }),
  rateLimiter<{ Variables: { user: string } }>({
    store: expressRateLimitStore(options),
    keyGenerator: (context) => context.get("user"),
  }),
  webSocketLimiter({ store: expressRateLimitStore(options), keyGenerator: () => "key" }),
  { store: fastifyRateLimitStore(options) } satisfies Parameters<typeof plugin>[1],
  { throttlers: [], storage: nestThrottlerStorage(options) } satisfies ThrottlerModuleOptions,
];
