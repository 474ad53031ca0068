/*
 * A call may have to leave something of a limit for others: an amount that it names, or what the
 * limit reserves from calls of its priority class. It is granted only if the balance afterwards is
 * at least that. Each shard of a bucket keeps its share.
 */
import { getAmount, MILLI, type Amounts } from "../amounts.ts";
import type { Bucket } from "./bucket.ts";
import { countAmounts } from "./counted-amounts.ts";
import type { Policy } from "./policy.ts";
import { computeShare } from "./shares.ts";

/** What a call leaves for others. */
export interface Leave {
  /** Whole tokens by limit. */
  readonly amounts: Amounts;
  /** The class whose `reserve` it leaves too. */
  readonly priority: string | undefined;
}

/** Whole tokens that a call must leave of each limit of a policy; undefined when nothing. */
export function computeLeaves(policy: Policy, leave: Leave | undefined): Amounts | undefined {
  if (leave === undefined) return undefined;
  const { priority = "" } = leave;
  const amounts = countAmounts(policy, leave.amounts);
  let leaves: Record<string, number> | undefined;
  for (const { name, reserve = {} } of policy.limits) {
    const amount = Math.max(getAmount(amounts, name), getAmount(reserve, priority));
    if (amount > 0) (leaves ??= {})[name] = amount;
  }
  return leaves;
}

/** The place of a shard among all that a bucket could have. */
interface ShardPlace {
  readonly shard: number;
  readonly divisor: number;
}

/** How much of what must be left one shard keeps, in millitokens. */
export function shareLeaves(leaves: Amounts, { shard, divisor }: ShardPlace): Amounts {
  return Object.fromEntries(
    Object.entries(leaves).map(([name, amount]) => [
      name,
      computeShare(amount * MILLI, shard, divisor),
    ]),
  );
}

/** What each limit of a bucket must hold: its cost, and what must be left of it. */
export function addLeaves(
  { limits }: Bucket,
  costsMilli: readonly number[],
  leavesMilli: Amounts,
): readonly number[] {
  return costsMilli.map((cost, index) => cost + getAmount(leavesMilli, limits[index]!.limit.name));
}
