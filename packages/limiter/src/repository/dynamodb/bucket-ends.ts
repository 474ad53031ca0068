import { addAmounts, NO_AMOUNTS } from "../../core/amounts.ts";
import type { TakenPart } from "../../core/settlement.ts";
import type { Costs } from "./bucket-batch.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { BucketLife } from "./bucket-plan.ts";
import { newHistory, type OperationHistory } from "./unresolved.ts";

/** What one take of a lease took from one bucket, in millitokens. */
export interface ReceiptPart extends TakenPart {
  readonly key: BucketKey;
  readonly grants: number;
  readonly life: BucketLife;
}

/** What the end of a lease writes to one bucket. */
export interface BucketEnd {
  readonly part: ReceiptPart;
  readonly costs: Costs;
  readonly grants: number;
  readonly history: OperationHistory;
  done: boolean;
}

/** One write for each bucket, however often the lease took from it. */
export function endsOf(
  shares: readonly { readonly part: ReceiptPart; readonly amounts: Costs; readonly grants?: number }[],
): readonly BucketEnd[] {
  const byBucket = new Map<string, BucketEnd>();
  for (const { part, amounts, grants = 0 } of shares) {
    const held = byBucket.get(part.key.text);
    byBucket.set(part.key.text, {
      part: held?.part ?? part,
      costs: addAmounts(held?.costs ?? NO_AMOUNTS, amounts),
      grants: (held?.grants ?? 0) + grants,
      history: newHistory(),
      done: false,
    });
  }
  return [...byBucket.values()];
}
