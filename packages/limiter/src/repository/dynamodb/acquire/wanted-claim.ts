import type { Amounts } from "../../../core/amounts.ts";
import type { Levels } from "../../../core/bucket/decision.ts";
import type { Leave } from "../../../core/bucket/leave.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import type { Costs } from "../write/batch-decision.ts";
import type { BucketKey } from "../items/bucket-key.ts";

/** One bucket of a call, and what the call wants from it. */
export interface WantedClaim {
  /** The key of shard 0, whose divisor is the number of shards. */
  readonly key: BucketKey;
  /**
   * As the call states them, not as limits count them. Includes limits that only other levels have:
   * the policy that decides may have them again.
   */
  readonly amounts: Amounts;
  /** The same in millitokens. */
  readonly costs: Costs;
  /** The policy of the whole bucket, whichever shard it is decided on. */
  readonly policy: Policy;
  /** What the call leaves for others. */
  readonly leave?: Leave | undefined;
  /** What the other levels store; only when the policy lacks a name of the call. */
  readonly levels?: Levels;
  /** The parent that the call also takes from; undefined in the parent's own claim. */
  readonly parentId: string | undefined;
  /** Whether it is the claim on the parent of the calling entity. */
  readonly isCascaded: boolean;
  /** Whether the call has read that its namespace is active, together with the bucket. */
  readonly isNamespaceRead?: boolean;
}
