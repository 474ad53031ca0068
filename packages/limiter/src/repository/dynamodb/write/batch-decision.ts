/*
 * Decides the members of a batch one after another, in order of arrival (ADR 020). The write that
 * carries them finds a balance that this process has not seen, so the batch is checked against its
 * running balance, not its net amount. For each limit:
 *
 *   need   the most that any acquire requires of the balance at the start; with less, a member
 *          would be granted tokens that were not there
 *   rise   how far give-backs lift the balance before something is charged; above the ceiling they
 *          would have been cut off first
 */
import { amountOf } from "../../../core/amounts.ts";
import { applyInPlace, holds, type Bucket, type OwnedBucket } from "../../../core/bucket/bucket.ts";

/** Millitokens by limit name; negative gives back. */
export type Costs = Readonly<Record<string, number>>;

/** What one member does to the balances of a bucket. */
export interface BatchStep {
  /**
   * `take` is refused when it does not fit; `overrun` may go into debt; `giveBack` has negative
   * costs only; `applyLimits` takes nothing, but writes the limits that a refusal was decided with.
   */
  readonly kind: "take" | "overrun" | "giveBack" | "applyLimits";
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
export function positiveCosts(costs: Costs): Costs {
  return costsThat(costs, (cost) => cost > 0);
}

/** What each limit of a bucket is charged, in its order. */
export function costsOf({ limits }: Bucket, costs: Costs): number[] {
  return limits.map(({ limit }) => amountOf(costs, limit.name));
}

/** What a batch does to one limit. */
export class LimitFold {
  /** What all members take together; negative when they give back more. */
  netMilli = 0;
  /** Undefined when no member requires anything of the balance. */
  needMilli: number | undefined;
  riseMilli = 0;
  /** Whether any member takes, so that it matters where the ceiling cuts off. */
  isCharged = false;
  readonly #costs: number[] = [];

  /**
   * A member that is granted only if the balance holds its cost, or, when it costs nothing, is not
   * in debt.
   */
  take(costMilli: number): void {
    this.settle(costMilli);
    this.needMilli = Math.max(this.needMilli ?? -Infinity, this.netMilli);
  }

  /** A member that is charged or given back whether it fits or not. */
  settle(costMilli: number): void {
    if (costMilli === 0) return;
    if (costMilli > 0) {
      this.isCharged = true;
      this.riseMilli = Math.max(this.riseMilli, -this.netMilli);
    }
    this.netMilli += costMilli;
    this.#costs.push(costMilli);
  }

  /**
   * The balance after applying every member in order, capped at the ceiling; `wasFull` when it
   * reached the ceiling, where fractions are lost.
   */
  after(
    startMilli: number,
    ceilingMilli: number,
  ): { readonly milli: number; readonly wasFull: boolean } {
    let milli = startMilli;
    let wasFull = startMilli >= ceilingMilli;
    for (const cost of this.#costs) {
      milli = Math.max(Math.min(ceilingMilli, milli - cost), Number.MIN_SAFE_INTEGER);
      wasFull ||= milli >= ceilingMilli;
    }
    return { milli, wasFull };
  }
}
