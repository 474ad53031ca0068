import type { Amounts } from "../core/amounts.ts";
import type { LimitStatus } from "../core/bucket/decision.ts";
import type { Leave } from "../core/bucket/leave.ts";
import type { OnUnavailable, Policy } from "../core/bucket/policy.ts";
import type { TakenPart } from "../core/bucket/settlement.ts";
import type { Clock } from "./system-clock.ts";

/** A result that a backend returns at once if it needs no I/O. */
export type MaybePromise<T> = T | Promise<T>;

/** What a call takes from one resource. */
export interface ResourceAmounts {
  /** The resource to take from. */
  readonly resource: string;
  /** Whole tokens by limit. */
  readonly amounts: Amounts;
  /** What errors call these amounts, if the caller did not name them `consume`. */
  readonly field?: string;
  /** What the call leaves for others: of all that it takes, now and later. */
  readonly leave?: Leave | undefined;
}

/**
 * What one acquire or charge takes. The backend looks up the stored policy itself: one that decides
 * from memory need not read it first.
 */
export interface ConsumeRequest {
  /** Who makes the call. */
  readonly entityId: string;
  /** The call's own resource first, then further ones. All are charged, or none. */
  readonly resources: readonly ResourceAmounts[];
  /** The call's own limits for its entity, which replace the stored ones. */
  readonly override: Policy | undefined;
  /** The limiter's defaults, for names that no stored level has. The same object in every call. */
  readonly defaults?: Policy | undefined;
}

/**
 * The tokens taken, and from where. A backend keeps more on it, such as shards and versions, which
 * the limiter does not see. It also makes the end of a lease idempotent: a receipt is settled or
 * given back at most once, however often that is tried.
 */
export interface Receipt {
  /**
   * The buckets that were taken from, those of parents included; the limiter wakes the calls that
   * wait for them. Amounts are in the backend's own units.
   */
  readonly parts: readonly TakenPart[];
}

/**
 * Granted, with the policy of each resource: names that it does not know are not limited. Or
 * refused, with the state of every limit.
 */
export type ConsumeOutcome =
  | {
      /** The call was granted. */
      readonly granted: true;
      /** The tokens taken, for `settle` and `giveBack`. */
      readonly receipt: Receipt;
      /** The entity's policy for each resource, in the order of the request. */
      readonly policies: readonly Policy[];
    }
  | {
      /** The call was refused. */
      readonly granted: false;
      /** Every limit of the decision: for each resource the entity's, then its parent's. */
      readonly statuses: readonly LimitStatus[];
    };

/**
 * What the limiter needs from a backend. Every method throws `RateLimiterUnavailable` if, and only
 * if, the store is unavailable; `onUnavailable` applies to that error alone.
 */
export interface RepositoryPort {
  /** The clock of all decisions. The limiter waits by it too. */
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
   * Takes from all resources, or from none. With `extending`, the tokens taken are added to that
   * receipt, and no further request is counted.
   * @example
   * const outcome = await repository.consume({ entityId, resources, override: undefined });
   */
  consume(request: ConsumeRequest, extending?: Receipt): MaybePromise<ConsumeOutcome>;
  /**
   * Charges what has already been consumed, even into debt. It is never refused, nor counted as a
   * request. Writes nothing if all amounts are 0. If it fails after a part of it may have been
   * written, the error says so: charging again could charge twice.
   * @example await repository.charge({ entityId, resources, override: undefined });
   */
  charge(request: ConsumeRequest): MaybePromise<void>;
  /**
   * Writes the differences between the tokens taken and the real cost, which may cause debt. What
   * they name beside the limits of the receipt is only counted.
   * @example await repository.settle(receipt, [{ resource: "gpt-4", amounts: { tpm: -120 } }]);
   */
  settle(receipt: Receipt, deltas: readonly ResourceAmounts[]): MaybePromise<void>;
  /**
   * Returns everything to where it came from. The call then does not count as a request.
   * @example await repository.giveBack(receipt);
   */
  giveBack(receipt: Receipt): MaybePromise<void>;
  /**
   * Whether some level of an entity and a resource has a limit of this name, whether it applies or
   * not. Returns at once, and returns true if it does not know: the work of the lease is done.
   * @example const isKnown = repository.knowsLimit("key-1", "gpt-4", "tpm");
   */
  knowsLimit(entityId: string, resource: string, limitName: string): boolean;
  /**
   * The state of every limit that `consume` would check. Writes nothing.
   * @example const statuses = await repository.read({ entityId, resources, override: undefined });
   */
  read(request: ConsumeRequest): MaybePromise<readonly LimitStatus[]>;
  /**
   * The state of every limit that a receipt took from, under the limits that it was decided with:
   * for each resource the entity's, then its parent's. No amounts are requested. It reports
   * what this process knows, without a request to a remote store, so changes by other processes
   * may be missing.
   * @example const statuses = await repository.remembered(receipt);
   */
  remembered(receipt: Receipt): MaybePromise<readonly LimitStatus[]>;
}
