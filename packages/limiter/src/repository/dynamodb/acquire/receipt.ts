import type { TakenPart } from "../../../core/bucket/settlement.ts";
import type { SeenShard } from "../cache/known-buckets.ts";
import type { TableUnavailable } from "../table/table-errors.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { WantedClaim } from "./wanted-claim.ts";
import type { BucketIncarnation } from "../write/write-intent.ts";

/** What one take of a lease took from one shard of a bucket, in millitokens. */
export interface ReceiptPart extends TakenPart {
  readonly key: BucketKey;
  readonly requests: number;
  /** Whether it was taken from the parent of the calling entity: the end counts as the take did. */
  readonly isCascaded: boolean;
  readonly incarnation: BucketIncarnation;
  /** The shard as the take left it, as far as this process knew. */
  readonly seen?: SeenShard | undefined;
}

/** What a call got. */
export interface Taken {
  readonly kind: "taken";
  readonly parts: readonly ReceiptPart[];
}

/** A claim was refused as of a time, under the policy that it has now. */
export interface Refused {
  readonly kind: "refused";
  readonly atMs: number;
  readonly claim: WantedClaim;
}

/** The claim must be decided again, with the policy that it has now. */
export interface Undecided {
  readonly kind: "undecided";
  readonly claim: WantedClaim;
  /** The error of a shard that has more writes than it can take; nothing was taken from it. */
  readonly throttled?: TableUnavailable | undefined;
}
