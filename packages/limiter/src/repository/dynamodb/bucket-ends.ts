import { addAmounts, amountOf, NO_AMOUNTS } from "../../core/amounts.ts";
import { balanceMilli, ceilingMilli, type Bucket } from "../../core/bucket.ts";
import { negated } from "../../core/decision.ts";
import { shardSumMilli } from "../../core/shard-sums.ts";
import type { TakenPart } from "../../core/settlement.ts";
import { chargesOf, costsThat, type Costs } from "./bucket-batch.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import type { BucketLife } from "./bucket-plan.ts";
import type { KnownShard } from "./bucket-shards.ts";
import { distributed, ownersOfClass, type ClassPart, type ShardClass } from "./shard-tree.ts";
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
  /** Whether a charge is this shard's part of one that it could not pay alone. */
  readonly mayOwe: boolean;
  readonly history: OperationHistory;
  /** What it became when the shard was found to be split since. */
  successors: readonly BucketEnd[] | undefined;
  done: boolean;
}

/**
 * One write for each shard, however often the lease took from it; more where only their parts are
 * exact.
 */
export function endsOf(
  shares: readonly {
    readonly part: ReceiptPart;
    readonly amounts: Costs;
    readonly grants?: number;
  }[],
): readonly BucketEnd[] {
  const byShard = new Map<string, BucketEnd>();
  const complete: BucketEnd[] = [];
  for (const { part, amounts, grants = 0 } of shares) {
    // A lease that took before a split and after it owes to different classes under one key; before
    // a deletion and after it, to two buckets.
    const id = `${part.key.text}/${part.life.creation}/${part.life.divisor}`;
    const held = byShard.get(id);
    const costs = addAmounts(held?.costs ?? NO_AMOUNTS, amounts);
    if (held === undefined || !isExact(costs)) {
      if (held !== undefined) complete.push(held);
      byShard.set(id, newEnd(part, amounts, { grants }));
    } else byShard.set(id, newEnd(held.part, costs, { grants: held.grants + grants }));
  }
  return [...complete, ...byShard.values()];
}

/** The end that gives back all of one take. */
export function reversal(part: ReceiptPart): BucketEnd {
  return newEnd(part, negated(part.amounts), { grants: -part.grants });
}

/**
 * What an end becomes that one shard cannot carry out: what it gives goes to the owners of the
 * class, what it charges is paid by all.
 */
export function dividedEnd(
  { part, costs, grants }: BucketEnd,
  shards: readonly KnownShard[],
  nowMs: number,
): readonly BucketEnd[] {
  const taken = { shard: part.key.shard, divisor: part.life.divisor };
  const now: ShardsNow = { shards, nowMs };
  const given = costsThat(costs, (cost) => cost < 0);
  const parts = [
    ...givenToOwners(given, taken, now),
    ...paidByAll(chargesOf(costs), taken.shard, now),
  ];
  return parts.map(({ shard, amounts }, index) => {
    const { key, image } = shards.find((known) => known.image.shard === shard)!;
    const owner = { ...part, key, life: { ...part.life, divisor: image.divisor } };
    return newEnd(owner, amounts, { grants: index === 0 ? grants : 0, mayOwe: true });
  });
}

/** A bucket as it is shared out. */
interface ShardsNow {
  readonly shards: readonly KnownShard[];
  readonly nowMs: number;
}

/**
 * What goes back, to the owners of the class, each its part; what one of them has no room for goes
 * to others. A split leaves what was taken while it was under way with one half, so the other may
 * be full while that one lacks it all.
 */
function givenToOwners(
  given: Costs,
  taken: ShardClass,
  { shards, nowMs }: ShardsNow,
): readonly ClassPart[] {
  const images = shards.map(({ image }) => image);
  const owners = ownersOfClass(taken, images);
  const [first] = owners;
  if (first === undefined) return [];
  const shares = distributed(given, taken, owners);
  const parts = new Map<number, Costs>([[first.shard, {}]]);
  for (const [name, milli] of Object.entries(given)) {
    let left = milli;
    const give = (shard: number, part: number): void => {
      if (part === 0) return;
      parts.set(shard, addAmounts(parts.get(shard) ?? NO_AMOUNTS, { [name]: part }));
      left -= part;
    };
    const room = ({ shard, bucket }: BucketImage): number =>
      amountOf(parts.get(shard) ?? NO_AMOUNTS, name) + roomMilli(bucket, name, nowMs);
    for (const { shard, amounts } of shares)
      give(
        shard,
        -Math.min(-amountOf(amounts, name), room(images.find((image) => image.shard === shard)!)),
      );
    for (const image of [...owners, ...images]) give(image.shard, -Math.min(-left, room(image)));
    give(first.shard, left);
  }
  return [...parts].map(([shard, amounts]) => ({ shard, amounts }));
}

/**
 * Charges, paid with what the shards hold, beginning with the one that they were meant for. What is
 * missing then all of them owe, each its part, so that all have earned it back at the same moment,
 * as an undivided bucket would.
 */
function paidByAll(
  costs: Costs,
  first: number,
  { shards, nowMs }: ShardsNow,
): readonly ClassPart[] {
  const place = ({ image }: KnownShard): number => (image.shard === first ? 0 : 1);
  const payers = shards.toSorted((left, right) => place(left) - place(right));
  const paid: ClassPart[] = [];
  const missing: Record<string, number> = { ...costs };
  for (const { image } of payers) {
    const amounts: Record<string, number> = {};
    for (const name of Object.keys(costs)) {
      const part = Math.min(
        missing[name]!,
        Math.max(0, shardSumMilli([image.bucket], name, nowMs)),
      );
      missing[name]! -= part;
      if (part > 0) amounts[name] = part;
    }
    paid.push({ shard: image.shard, amounts });
  }
  const owed = distributed(
    missing,
    WHOLE,
    payers.map(({ image }) => image),
  );
  return paid
    .map(({ shard, amounts }) => ({
      shard,
      amounts: addAmounts(
        amounts,
        owed.find((part) => part.shard === shard)?.amounts ?? NO_AMOUNTS,
      ),
    }))
    .filter(({ amounts }) => Object.values(amounts).some((amount) => amount > 0));
}

const WHOLE: ShardClass = { shard: 0, divisor: 1 };

function newEnd(
  part: ReceiptPart,
  costs: Costs,
  { grants, mayOwe = false }: { readonly grants: number; readonly mayOwe?: boolean },
): BucketEnd {
  return { part, costs, grants, mayOwe, history: newHistory(), successors: undefined, done: false };
}

/**
 * A limit may earn more than the safe range while a lease takes from it again and again, and no
 * batch carries a cost beyond it.
 */
function isExact(costs: Costs): boolean {
  return Object.values(costs).every((cost) => Number.isSafeInteger(cost));
}

/** What a limit lacks until it is full. */
function roomMilli(bucket: Bucket, name: string, nowMs: number): number {
  const index = bucket.limits.findIndex(({ limit }) => limit.name === name);
  return index < 0
    ? 0
    : Math.max(0, ceilingMilli(bucket.limits[index]!) - balanceMilli(bucket, index, nowMs));
}
