import type { Amounts } from "../core/amounts.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { OnUnavailable, Policy } from "../core/bucket/policy.ts";
import type { TakenPart } from "../core/bucket/settlement.ts";
import type { Clock } from "./system-clock.ts";

/** A result that a backend returns at once if it needs no I/O. */
export type MaybePromise<T> = T | Promise<T>;

/** What a call takes from one resource. */
export interface ResourceAmounts {
  readonly resource: string;
  readonly amounts: Amounts;
}

/**
 * What one acquire takes. The backend looks up the stored policy itself: one that decides from
 * memory need not read it first.
 */
export interface ConsumeRequest {
  readonly entityId: string;
  /** The call's own resource first, then further ones. All are charged, or none. */
  readonly resources: readonly ResourceAmounts[];
  /** The call's own limits for its entity, which replace the stored ones. */
  readonly override: Policy | undefined;
}

/**
 * What was taken, and from where. A backend keeps more on it, such as shards and versions, which
 * the limiter does not see. It also makes the end of a lease idempotent: a receipt is settled or
 * given back at most once, however often that is tried.
 */
export interface Receipt {
  /**
   * The buckets that were taken from, those of parents included; the limiter wakes the calls that
   * wait for them. Amounts are in the backend's own unit.
   */
  readonly parts: readonly TakenPart[];
}

/**
 * Granted, with the names of the limits of each resource: what else was named is not limited. Or
 * refused, with the state of every limit.
 */
export type ConsumeOutcome =
  | {
      readonly granted: true;
      readonly receipt: Receipt;
      readonly limitNames: readonly ReadonlySet<string>[];
    }
  | { readonly granted: false; readonly statuses: readonly LimitStatus[] };

/**
 * What the limiter needs from a backend. Every method throws `RateLimiterUnavailable` if, and only
 * if, the store is unavailable; `onUnavailable` applies to that error alone.
 */
export interface RepositoryPort {
  readonly clock: Clock;
  /**
   * Aborts when the repository is closed, with the error that calls then throw: it ends the calls
   * that wait.
   */
  readonly closed: AbortSignal;
  /**
   * The stored `onUnavailable` as last seen. It must not need a read, because it is used when the
   * store is unavailable.
   */
  readonly lastOnUnavailable: OnUnavailable | undefined;
  /**
   * Takes from all resources, or from none. With `extending`, what was taken is added to that
   * receipt, and no further request is counted.
   */
  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
  /**
   * Writes the differences between what was taken and the real cost, which may cause debt. What
   * they name beside the limits of the receipt is only counted.
   */
  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
  /** Returns everything to where it came from. The call then does not count as a request. */
  giveBack(receipt: Receipt): MaybePromise<void>;
  /**
   * Whether some level of an entity and a resource has a limit of this name, whether it applies or
   * not. It answers at once, and says yes if it cannot tell: the work of the lease is done.
   */
  knowsLimit(entityId: string, resource: string, limitName: string): boolean;
  /** The state of every limit that `consume` would check. Writes nothing. */
  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
}
