/* What the library itself gains for consumption that has already happened (ADR 004). */

declare module "declared/zae-limiter" {
  export interface ChargeRequest {
    readonly entityId: string;
    readonly resource: string;
    readonly amounts: Amounts; // whole, not negative; only limits that exist
    readonly also?: Readonly<Record<string, Amounts>>;
  }
  export interface RateLimiter {
    /** Records consumption that has already happened: never refused, may cause debt, cascades, counts as usage and not as a request. */
    charge(request: ChargeRequest): Promise<void>;
  }
}
