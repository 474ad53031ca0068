import { amountOf } from "../../core/amounts.ts";
import { applyInPlace, holds, type Bucket, type OwnedBucket } from "../../core/bucket.ts";
import { LimitFold } from "./limit-fold.ts";

/** Millitokens by limit name; negative gives back. */
export type Costs = Readonly<Record<string, number>>;

/** What one member does to a bucket, as far as arithmetic cares. */
export interface BatchStep {
  /**
   * `take` refuses what does not fit; `charge` may go into debt; `give` puts back, and its costs
   * are negative; `adopt` takes nothing, but writes the limits that a refusal was decided with.
   */
  readonly kind: "take" | "charge" | "give" | "adopt";
  readonly costs: Costs;
}

/** The members of a batch, decided one after another. */
export interface DecidedBatch {
  /**
   * For each member that was decided, whether it is part of the write. Shorter than the batch when
   * the sums would leave the safe range.
   */
  readonly accepted: readonly boolean[];
  readonly folds: ReadonlyMap<string, LimitFold>;
}

/**
 * Decides members as if they came one after another, in this order, at this time. One that does not
 * fit is left out, and those after it are decided without it: a large call never blocks a small
 * one.
 */
export function decideBatch(
  bucket: Bucket,
  steps: readonly BatchStep[],
  nowMs: number,
): DecidedBatch {
  const running: OwnedBucket = { ...bucket, balances: bucket.balances.slice() };
  const folds = bucket.limits.map(() => new LimitFold());
  const accepted: boolean[] = [];
  for (const { kind, costs } of steps) {
    const costsMilli = costsOf(bucket, costs);
    if (!folds.every(({ netMilli }, index) => Number.isSafeInteger(netMilli + costsMilli[index]!)))
      break;
    const fits = kind !== "take" || holds(running, costsMilli, nowMs);
    accepted.push(fits);
    if (!fits) continue;
    applyInPlace(running, costsMilli, nowMs);
    folds.forEach((fold, index) => {
      if (kind === "take" && !bucket.limits[index]!.hidden) fold.take(costsMilli[index]!);
      else fold.settle(costsMilli[index]!);
    });
  }
  return {
    accepted,
    folds: new Map(bucket.limits.map(({ limit }, index) => [limit.name, folds[index]!])),
  };
}

/** The costs of one kind. */
export function costsThat(costs: Costs, isWanted: (cost: number) => boolean): Costs {
  return Object.fromEntries(Object.entries(costs).filter(([, cost]) => isWanted(cost)));
}

/** What is charged, without what is given back. */
export function chargesOf(costs: Costs): Costs {
  return costsThat(costs, (cost) => cost > 0);
}

/** What each limit of a bucket is charged, in its order. */
export function costsOf({ limits }: Bucket, costs: Costs): number[] {
  return limits.map(({ limit }) => amountOf(costs, limit.name));
}
