import type { Amounts } from "../core/amounts.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { OnUnavailable, Policy } from "../core/bucket/policy.ts";
import type { Clock } from "./system-clock.ts";

/** A backend that needs no I/O answers at once; the limiter awaits either. */
export type MaybePromise<T> = T | Promise<T>;

/** What a call wants of one resource. */
export interface ResourceAmounts {
  readonly resource: string;
  readonly amounts: Amounts;
}

/**
 * What one acquire wants. The stored policy is the backend's to ask for: one that decides from
 * memory need not read it first.
 */
export interface ConsumeRequest {
  readonly entityId: string;
  /** The call's own resource first, then further ones; all or none. */
  readonly charges: readonly ResourceAmounts[];
  /** Limits that the call brought along for its entity, in place of the stored ones. */
  readonly override: Policy | undefined;
}

declare const receiptBrand: unique symbol;

/**
 * What was taken from where. Opaque to the limiter, so that shards and versions stay inside a
 * backend. It also makes the end of a lease idempotent: a receipt is settled or given back at most
 * once, however often that is tried.
 */
export interface Receipt {
  readonly [receiptBrand]?: never;
}

/**
 * Granted, with the names of the limits of each charged resource; or refused, with the state of
 * every limit.
 */
export type ConsumeOutcome =
  | {
      readonly granted: true;
      readonly receipt: Receipt;
      readonly limitNames: readonly ReadonlySet<string>[];
    }
  | { readonly granted: false; readonly statuses: readonly LimitStatus[] };

/**
 * What the limiter asks of a backend: requests and outcomes. Each member throws
 * `RateLimiterUnavailable` when, and only when, the store could not answer; that type alone
 * triggers `onUnavailable`.
 */
export interface RepositoryPort {
  readonly clock: Clock;
  /**
   * The stored `onUnavailable` as last seen, without a read: it is asked for when the store cannot
   * answer.
   */
  readonly lastOnUnavailable: OnUnavailable | undefined;
  /**
   * Takes everywhere or nowhere. With `extending`, the taken is added to that receipt, and no
   * further request is counted.
   */
  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
  /**
   * Writes the differences between what was taken and what it really cost; debt is allowed. Only
   * limits that the receipt names.
   */
  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
  /** Puts everything back where it came from; the call does not count as a request. */
  giveBack(receipt: Receipt): MaybePromise<void>;
  /** The state of every limit that a `consume` would look at. Writes nothing. */
  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
}
