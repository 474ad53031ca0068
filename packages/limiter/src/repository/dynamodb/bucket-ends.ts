import { addAmounts, NO_AMOUNTS } from "../../core/amounts.ts";
import { negated } from "../../core/decision.ts";
import type { TakenPart } from "../../core/settlement.ts";
import type { Costs } from "./bucket-batch.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { BucketLife } from "./bucket-plan.ts";
import type { KnownShard } from "./bucket-shards.ts";
import { distributed, ownersOfClass } from "./shard-tree.ts";
import { newHistory, type OperationHistory } from "./unresolved.ts";

/** What one take of a lease took from one shard of a bucket, in millitokens. */
export interface ReceiptPart extends TakenPart {
  readonly key: BucketKey;
  readonly grants: number;
  readonly life: BucketLife;
}

/** What the end of a lease writes to one shard of a bucket. */
export interface BucketEnd {
  readonly part: ReceiptPart;
  readonly costs: Costs;
  readonly grants: number;
  readonly history: OperationHistory;
  /** What it became when the shard was found to be split since. */
  successors: readonly BucketEnd[] | undefined;
  done: boolean;
}

/** One write for each shard, however often the lease took from it. */
export function endsOf(
  shares: readonly { readonly part: ReceiptPart; readonly amounts: Costs; readonly grants?: number }[],
): readonly BucketEnd[] {
  const byShard = new Map<string, BucketEnd>();
  for (const { part, amounts, grants = 0 } of shares) {
    // A lease that took before a split and after it owes to different classes under one key; before a deletion and after it, to two buckets.
    const id = `${part.key.text}/${part.life.creation}/${part.life.divisor}`;
    const held = byShard.get(id);
    const costs = addAmounts(held?.costs ?? NO_AMOUNTS, amounts);
    byShard.set(id, newEnd(held?.part ?? part, costs, (held?.grants ?? 0) + grants));
  }
  return [...byShard.values()];
}

/** The end that gives back all of one take. */
export function reversal(part: ReceiptPart): BucketEnd {
  return newEnd(part, negated(part.amounts), -part.grants);
}

/** What an end becomes when its shard was split: what it gives goes to the owners of the class, what it charges stays with the shard. */
export function dividedEnd({ part, costs, grants }: BucketEnd, shards: readonly KnownShard[]): readonly BucketEnd[] {
  const taken = { shard: part.key.shard, divisor: part.life.divisor };
  const owners = ownersOfClass(
    taken,
    shards.map(({ image }) => image),
  );
  const [given, charged] = [(cost: number) => cost < 0, (cost: number) => cost > 0].map((wanted) => only(costs, wanted));
  const gives = owners.length === 0 ? [] : distributed(given!, taken, owners);
  const hasKeeper = shards.some(({ image }) => image.shard === taken.shard);
  const charges = hasKeeper && Object.keys(charged!).length > 0 ? [{ shard: taken.shard, amounts: charged! }] : [];
  return [...gives, ...charges].map(({ shard, amounts }, index) => {
    const { key, image } = shards.find((known) => known.image.shard === shard)!;
    return newEnd({ ...part, key, life: { ...part.life, divisor: image.divisor } }, amounts, index === 0 ? grants : 0);
  });
}

function newEnd(part: ReceiptPart, costs: Costs, grants: number): BucketEnd {
  return { part, costs, grants, history: newHistory(), successors: undefined, done: false };
}

function only(costs: Costs, wanted: (cost: number) => boolean): Costs {
  return Object.fromEntries(Object.entries(costs).filter(([, cost]) => wanted(cost)));
}
