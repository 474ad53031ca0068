/*
 * Decides the members of a batch one after another, in order of arrival (ADR 010). The write that
 * carries them finds a balance that this process has not seen, so the batch is checked against its
 * running balance, not its net amount. For each limit:
 *
 *   need   the most that any acquire requires of the balance at the start, what it leaves for
 *          others included; with less, a member would be granted tokens that were not there
 *   rise   how far give-backs lift the balance before something is charged; above the ceiling they
 *          would have been cut off first
 */
import { addAmounts, getAmount } from "../../../core/amounts.ts";
import {
  applyInPlace,
  holds,
  isReturnLost,
  type Bucket,
  type OwnedBucket,
} from "../../../core/bucket/bucket.ts";
import { addLeaves } from "../../../core/bucket/leave.ts";
import type { WindowEnds } from "../../../core/bucket/windows.ts";

/** Millitokens by limit name; negative gives back. */
export type Costs = Readonly<Record<string, number>>;

/** What one member does to the balances of a bucket. */
export interface BatchStep {
  /**
   * `take` is refused when it does not fit; `charge` is the same even into debt; `overrun` is what
   * the end of a lease takes beyond its estimate, even into debt; `giveBack` has negative costs
   * only; `applyLimits` takes nothing, but writes the limits that a refusal was decided with.
   */
  readonly kind: "take" | "charge" | "overrun" | "giveBack" | "applyLimits";
  readonly costs: Costs;
  /**
   * What the end of a lease only counts, because its take did. What the bucket has no limit for is
   * only counted too: of a take the costs that its policy lacks, of an end those of limits that
   * were dropped since.
   */
  readonly unlimited?: Costs | undefined;
  /**
   * Whether it belongs to a take from the parent of the calling entity. Such steps are also counted
   * separately.
   */
  readonly isCascaded: boolean;
  /** What a take must leave of each limit, in millitokens. */
  readonly leaves?: Costs | undefined;
  /** The windows that its lease took from: nothing goes back to another one. */
  readonly incarnation?: { readonly windowEnds?: WindowEnds | undefined } | undefined;
}

/**
 * The kinds that are decided with the limits that apply now: they bring the bucket under these, and
 * create one that is missing. The end of a lease keeps to what the lease took from.
 */
export const UNDER_POLICY: ReadonlySet<BatchStep["kind"]> = new Set(["take", "charge"]);

/** The kinds that end a lease. */
export const ENDS_LEASE: ReadonlySet<BatchStep["kind"]> = new Set(["overrun", "giveBack"]);

/** The members of a batch, decided one after another. */
export interface DecidedBatch {
  /**
   * For each member that was decided, whether it is part of the write. Shorter than the batch when
   * the sums would leave the safe range.
   */
  readonly accepted: readonly boolean[];
  /** By name: of every limit of the bucket, and of what is only counted. */
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
  // Most batches have one member, after which nothing is left to decide.
  const running: OwnedBucket | undefined =
    steps.length === 1 ? undefined : { ...bucket, balances: bucket.balances.slice() };
  const folds: LimitFold[] = [];
  const byName = new Map<string, LimitFold>();
  for (const { limit } of bucket.limits) {
    const fold = new LimitFold();
    folds.push(fold);
    byName.set(limit.name, fold);
  }
  const accepted: boolean[] = [];
  for (const step of steps) {
    const { kind, costs, isCascaded, leaves } = step;
    const costsMilli = UNDER_POLICY.has(kind) ? listTakes(bucket, costs) : listCosts(bucket, costs);
    const unlimited = findUnlimited(bucket, step);
    if (!folds.every((fold, index) => fold.staysExact(costsMilli[index]!, fold.netMilli))) break;
    if (unlimited !== undefined && !isCountable(byName, unlimited)) break;
    const needs = leaves === undefined ? costsMilli : addLeaves(bucket, costsMilli, leaves);
    const fits = kind !== "take" || holds(running ?? bucket, needs, nowMs);
    accepted.push(fits);
    if (!fits) continue;
    const ends = step.incarnation?.windowEnds;
    folds.forEach((fold, index) => {
      const costMilli = costsMilli[index]!;
      if (costMilli < 0 && isReturnLost(running ?? bucket, index, ends, nowMs))
        fold.count(costMilli, isCascaded);
      else if (kind === "take" && !bucket.limits[index]!.hidden)
        fold.take(costMilli, isCascaded, needs[index]! - costMilli);
      else fold.settle(costMilli, isCascaded);
    });
    if (running !== undefined) applyInPlace(running, costsMilli, nowMs, ends);
    if (unlimited !== undefined) countIn(byName, unlimited, isCascaded);
  }
  return { accepted, folds: byName };
}

/** What a write counts beside amounts. */
export interface CountedCalls {
  /** Granted acquires that it adds, less those that are rolled back. */
  readonly requests: number;
  /** How many of these came by cascade. */
  readonly cascadedRequests: number;
  /** Takes that it undoes; undefined when none of its calls takes from several buckets. */
  readonly undone: number | undefined;
}

/** Counts what the members of a write are. */
export function countCalls(
  members: readonly {
    readonly requests: number;
    readonly isCascaded: boolean;
    readonly undone?: number | undefined;
  }[],
): CountedCalls {
  let [requests, cascadedRequests] = [0, 0];
  let undone: number | undefined;
  for (const member of members) {
    requests += member.requests;
    if (member.isCascaded) cascadedRequests += member.requests;
    if (member.undone !== undefined) undone = (undone ?? 0) + member.undone;
  }
  return { requests, cascadedRequests, undone };
}

/** Adds what is only counted. */
export function countIn(
  folds: Map<string, LimitFold>,
  unlimited: Costs,
  isCascaded: boolean,
): void {
  for (const [name, milli] of Object.entries(unlimited)) {
    const fold = folds.get(name) ?? new LimitFold();
    folds.set(name, fold);
    fold.count(milli, isCascaded);
  }
}

function isCountable(folds: ReadonlyMap<string, LimitFold>, unlimited: Costs): boolean {
  return Object.entries(unlimited).every(([name, milli]) => {
    const fold = folds.get(name);
    return fold === undefined || fold.staysExact(milli, fold.countedMilli);
  });
}

/** What a take or charge costs each limit: nothing to those that have left the policy. */
function listTakes({ limits }: Bucket, costs: Costs): number[] {
  return limits.map(({ limit, hidden }) => (hidden ? 0 : getAmount(costs, limit.name)));
}

/** What a step only counts; undefined when the bucket limits all of it. */
function findUnlimited(
  { limits }: Bucket,
  { kind, costs, unlimited }: BatchStep,
): Costs | undefined {
  let lacking: Record<string, number> | undefined;
  for (const name in costs)
    if (!isLimited(limits, name, kind)) (lacking ??= {})[name] = costs[name]!;
  return lacking && unlimited ? addAmounts(lacking, unlimited) : (lacking ?? unlimited);
}

/** Whether a limit is charged for what a step names. */
function isLimited(limits: Bucket["limits"], name: string, kind: BatchStep["kind"]): boolean {
  for (const { limit, hidden } of limits)
    if (limit.name === name && !(hidden && UNDER_POLICY.has(kind))) return true;
  return false;
}

/** The costs of one kind. */
export function filterCosts(costs: Costs, isWanted: (cost: number) => boolean): Costs {
  return Object.fromEntries(Object.entries(costs).filter(([, cost]) => isWanted(cost)));
}

/** What is charged, without what is given back. */
export function positiveCosts(costs: Costs): Costs {
  return filterCosts(costs, (cost) => cost > 0);
}

/** A step without what it gives back. */
export function onlyCharged<Step extends Pick<BatchStep, "costs" | "unlimited">>(step: Step): Step {
  const { costs, unlimited } = step;
  return {
    ...step,
    costs: positiveCosts(costs),
    unlimited: unlimited && positiveCosts(unlimited),
  };
}

/** What each limit of a bucket is charged, in its order. */
export function listCosts({ limits }: Bucket, costs: Costs): number[] {
  return limits.map(({ limit }) => getAmount(costs, limit.name));
}

/** What a batch does to one limit. */
export class LimitFold {
  /** What all members take together; negative when they give back more. */
  netMilli = 0;
  /** Undefined when no member requires anything of the balance. */
  needMilli: number | undefined;
  riseMilli = 0;
  /** What is added to the total consumed, and to no balance. */
  countedMilli = 0;
  /** How much of all that is added to the total consumed came by cascade. */
  cascadedMilli = 0;
  /** Whether any member takes, so that it matters where the ceiling cuts off. */
  isCharged = false;
  /** Whether any member gives back, so that it matters which window is open. */
  isReturned = false;
  /** The costs of all members, when there are several: that of a single one is the net amount. */
  #costs: number[] | undefined;

  /**
   * A member that is granted only if the balance holds its cost and what it leaves, or, when that
   * is nothing, is not in debt.
   */
  take(costMilli: number, isCascaded = false, leavesMilli = 0): void {
    this.settle(costMilli, isCascaded);
    this.needMilli = Math.max(this.needMilli ?? -Infinity, this.netMilli + leavesMilli);
  }

  /** A member that is charged or given back whether it fits or not. */
  settle(costMilli: number, isCascaded = false): void {
    if (costMilli === 0) return;
    if (isCascaded) this.cascadedMilli += costMilli;
    if (costMilli > 0) {
      this.isCharged = true;
      this.riseMilli = Math.max(this.riseMilli, -this.netMilli);
    } else this.isReturned = true;
    if (this.#costs !== undefined) this.#costs.push(costMilli);
    else if (this.netMilli !== 0) this.#costs = [this.netMilli, costMilli];
    this.netMilli += costMilli;
  }

  /** Something that is added to the total consumed only. */
  count(milli: number, isCascaded = false): void {
    this.countedMilli += milli;
    if (isCascaded) this.cascadedMilli += milli;
  }

  /** Whether a sum, and what came by cascade, stay exact with one more addition. */
  staysExact(milli: number, sumMilli: number): boolean {
    return (
      Number.isSafeInteger(sumMilli + milli) && Number.isSafeInteger(this.cascadedMilli + milli)
    );
  }

  /**
   * The balance after applying every member in order, capped at the ceiling; `wasFull` when it
   * reached the ceiling, where fractions are lost.
   */
  computeBalanceAfter(
    startMilli: number,
    ceilingMilli: number,
  ): { readonly milli: number; readonly wasFull: boolean } {
    let milli = startMilli;
    let wasFull = startMilli >= ceilingMilli;
    const only = this.netMilli === 0 ? [] : [this.netMilli];
    for (const cost of this.#costs ?? only) {
      milli = Math.max(Math.min(ceilingMilli, milli - cost), Number.MIN_SAFE_INTEGER);
      wasFull ||= milli >= ceilingMilli;
    }
    return { milli, wasFull };
  }
}
