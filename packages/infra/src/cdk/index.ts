export { ZaeLimiter } from "./zae-limiter.ts";
export type { ZaeLimiterProps } from "./zae-limiter.ts";
