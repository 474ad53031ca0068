import type { Amounts } from "../../../core/amounts.ts";
import type { Policy } from "../../../core/policy.ts";
import type { MaybePromise } from "../../port.ts";
import type { Costs } from "../write/batch-decision.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";

/** One bucket of a call, and what the call wants of it. */
export interface WantedCharge extends PolicyHolder {
  /** Of shard 0, whose divisor is the number of shards. */
  readonly key: BucketKey;
  readonly amounts: Amounts;
  /** The same in millitokens. */
  readonly costs: Costs;
}

/** Something that is decided with a policy. */
export interface PolicyHolder {
  /** Of the whole bucket, whichever shard is decided. */
  readonly policy: Policy;
  /** Whether the policy is the call's own: that cannot be read again, and counts as just read. */
  readonly isOverride: boolean;
}

/** Chooses the policy for shards that show other limits; see current-policy.ts. */
export interface PolicyChooser {
  on(holder: PolicyHolder, key: BucketKey, image: BucketImage | undefined): MaybePromise<Policy>;
}
