import type { Amounts } from "zae-limiter";

/*
 * A ledger is one file for each worker, with one record in a line. Times are those of the
 * repository's clock, in milliseconds, because decisions are made by that clock.
 */

/** A worker has opened its repository. Ids of leases and buckets begin anew. */
interface StartRecord {
  readonly kind: "start";
  readonly at: number;
  /** The scheme of the target, such as `sqlite`: only a worker itself sees a store in memory. */
  readonly store: string;
  readonly namespace: string;
}

/** A bucket was seen for the first time, or with other limits than before. */
export interface BucketRecord {
  readonly kind: "bucket";
  readonly id: number;
  readonly entityId: string;
  readonly resource: string;
  /** The limits that the decision was made with, as `Limit.format` writes them. */
  readonly limits: readonly string[];
  /** Whether they were the call's own limits. */
  readonly isOverride: boolean;
}

/** Tokens were granted, from an entity's bucket and perhaps its parent's. */
export interface GrantRecord {
  readonly kind: "grant";
  readonly lease: number;
  readonly buckets: readonly number[];
  readonly amounts: Amounts;
  readonly sent: number;
  readonly answered: number;
}

/** A lease ended; `deltas` is the real cost less the charge, if they differ. */
export interface EndRecord {
  readonly kind: "end";
  readonly lease: number;
  readonly buckets: readonly number[];
  readonly deltas: Amounts;
  readonly sent: number;
  /** Absent if the store did not say whether the end was written. */
  readonly answered?: number | undefined;
}

/** A call failed, so what it did to the usage of this entity is unknown. */
interface DoubtRecord {
  readonly kind: "doubt";
  readonly entityId: string;
}

/** A management call may have changed limits. */
interface ChangeRecord {
  readonly kind: "change";
  readonly call: string;
  readonly sent: number;
  readonly answered: number;
}

/** Calls begin: what follows is complete only up to the next time that the file is written. */
interface BusyRecord {
  readonly kind: "busy";
}

/** No call was under way: the ledger is complete up to here. */
interface IdleRecord {
  readonly kind: "idle";
  readonly at: number;
}

/** One line of a ledger. */
export type LedgerRecord =
  | StartRecord
  | BucketRecord
  | GrantRecord
  | EndRecord
  | DoubtRecord
  | ChangeRecord
  | BusyRecord
  | IdleRecord;
