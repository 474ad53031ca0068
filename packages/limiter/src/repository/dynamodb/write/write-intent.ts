import type { Leave } from "../../../core/bucket/leave.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import type { BatchStep } from "./batch-decision.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { OperationHistory, ShardIncarnation } from "./unanswered-writes.ts";

/** An operation on one shard of a bucket. */
export interface WriteIntent extends BatchStep {
  /** Granted acquires that this adds to the shard's counter. */
  readonly requests: number;
  /**
   * The limits to decide with. If the shard shows others, all but the ends of leases are decided
   * with those that apply now.
   */
  readonly policy: Policy;
  /** What a take leaves for others, of the whole bucket. */
  readonly leave?: Leave | undefined;
  /** Whether its call has read that the namespace is active. */
  readonly isNamespaceRead?: boolean | undefined;
  /** The bucket that a lease took from: nothing goes back to one that was created after it. */
  readonly incarnation?: BucketIncarnation | undefined;
  /**
   * Whether this shard alone bears an overrun or a charge, even if that puts it into debt;
   * otherwise all shards pay it together.
   */
  readonly mayOwe?: boolean | undefined;
  /**
   * Set by calls that take from several buckets: 0 for a take, 1 for giving it back because another
   * bucket refused. The bucket counts the latter.
   */
  readonly undone?: 0 | 1 | undefined;
  /** Given by a caller that may try again, so that it does not happen twice. */
  readonly operation?: RepeatableOperation | undefined;
}

/** What a caller keeps of an operation that it may try again. Only the writer changes it. */
export interface RepeatableOperation {
  /** Undefined while none of its writes went unanswered. */
  history: OperationHistory | undefined;
}

/** An incarnation, and when the bucket may have expired: an overrun then goes to its successor. */
export interface BucketIncarnation extends ShardIncarnation {
  readonly expiredBySeconds: number | undefined;
}

/** An intent was applied, decided with this policy. */
export interface AppliedOutcome {
  readonly kind: "applied";
  readonly incarnation: BucketIncarnation;
  readonly policy: Policy;
  /** The shard as it is remembered now. */
  readonly image: BucketImage | undefined;
}

/**
 * Applied, or refused as of a time, each with the policy that it was decided with; `gone` when
 * there is no bucket to write to, `split` when it concerns several shards.
 */
export type WriteOutcome =
  | AppliedOutcome
  | { readonly kind: "refused"; readonly atMs: number; readonly policy: Policy }
  | { readonly kind: "gone" }
  | { readonly kind: "split" };
