/*
 * Divides the end of a lease that one shard cannot carry out alone: what it gives back goes to the
 * owners of the class that it was taken from, and what it charges is paid by all shards.
 */
import { addAmounts, getAmount, NO_AMOUNTS } from "../../../core/amounts.ts";
import { balanceMilli, ceilingMilli, type Bucket } from "../../../core/bucket/bucket.ts";
import { shardSumMilli } from "../../../core/bucket/shard-sums.ts";
import { filterCosts, positiveCosts, type Costs } from "../write/batch-decision.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { KnownShard } from "../cache/known-buckets.ts";
import type { ReceiptPart } from "./receipt.ts";
import type { BucketIncarnation } from "../write/write-intent.ts";
import {
  distribute,
  ownersOfClass,
  type ClassPart,
  type ShardClass,
} from "../shards/shard-tree.ts";

/** The shard that an end is written to. */
export interface EndTarget extends Pick<ReceiptPart, "key" | "policy" | "isCascaded"> {
  /** Undefined for a charge, which goes to whichever bucket there is. */
  readonly incarnation: BucketIncarnation | undefined;
}

/** What is written to one shard of a bucket. */
interface EndPart {
  readonly part: EndTarget;
  readonly costs: Costs;
  readonly unlimited?: Costs | undefined;
  readonly requests: number;
}

/** The writes to the shards of a bucket that an end is divided into. */
export function divideEnd(
  { part, costs, unlimited, requests }: EndPart,
  shards: readonly KnownShard[],
  nowMs: number,
): readonly EndPart[] {
  const taken = { shard: part.key.shard, divisor: part.incarnation?.divisor ?? 1 };
  const images = shards.map(({ image }) => image);
  const given = filterCosts(costs, (cost) => cost < 0);
  const parts = [
    ...giveToOwners(given, taken, images, nowMs),
    ...payByAll(positiveCosts(costs), taken.shard, images, nowMs),
  ];
  const ends = parts.map(({ shard, amounts }, index) => {
    const { key, image } = shards.find((known) => known.image.shard === shard)!;
    const { divisor, splitAtMs } = image;
    const incarnation = part.incarnation && { ...part.incarnation, divisor, splitAtMs };
    return {
      part: { ...part, key, incarnation },
      costs: amounts,
      unlimited: index === 0 ? unlimited : undefined,
      requests: index === 0 ? requests : 0,
    };
  });
  return ends.filter(writesSomething);
}

function writesSomething({ costs, unlimited, requests }: EndPart): boolean {
  return requests !== 0 || unlimited !== undefined || Object.keys(costs).length > 0;
}

/**
 * Gives each owner of the class its share back. What does not fit into one of them goes to others.
 * Tokens taken while a split was in progress are missing from one half only, so the other half may
 * be full. `given` is negative, and so are the parts.
 */
function giveToOwners(
  given: Costs,
  taken: ShardClass,
  images: readonly BucketImage[],
  nowMs: number,
): readonly ClassPart[] {
  const owners = ownersOfClass(taken, images);
  // Shards that were read while they were merged or split may show no owner. What goes to another
  // then is divided again where that has changed too.
  const [first = images[0]] = owners;
  if (first === undefined) return [];
  const shares = distribute(given, taken, owners);
  let parts: ReadonlyMap<number, Costs> = new Map([[first.shard, NO_AMOUNTS]]);
  for (const name of Object.keys(given)) {
    const findShare = ({ shard }: BucketImage): number =>
      -getAmount(shares.find((share) => share.shard === shard)?.amounts ?? NO_AMOUNTS, name);
    const returned = spreadOverRoom(name, {
      amount: -getAmount(given, name),
      // Each owner gets its share first; the rest goes to owners and then to other shards, as far
      // as they have room.
      offers: [
        ...owners.map((image) => ({ image, most: findShare(image) })),
        ...[...owners, ...images].map((image) => ({ image, most: Infinity })),
      ],
      overflow: first,
      nowMs,
    });
    parts = mergeParts(parts, name, returned);
  }
  return [...parts].map(([shard, amounts]) => ({ shard, amounts }));
}

interface Spread {
  /** What is given back, as a positive number. */
  readonly amount: number;
  /** The shards that it is offered to, in this order, and the most that each of them gets. */
  readonly offers: readonly { readonly image: BucketImage; readonly most: number }[];
  /** The shard that gets what no shard has room for. */
  readonly overflow: BucketImage;
  readonly nowMs: number;
}

/** How much of one limit each shard gets back, by shard. */
function spreadOverRoom(
  name: string,
  { amount, offers, overflow, nowMs }: Spread,
): ReadonlyMap<number, number> {
  const returned = new Map<number, number>();
  let left = amount;
  for (const { image, most } of offers) {
    const held = returned.get(image.shard) ?? 0;
    const part = Math.min(left, most, roomMilli(image.bucket, name, nowMs) - held);
    if (part <= 0) continue;
    returned.set(image.shard, held + part);
    left -= part;
  }
  if (left > 0) returned.set(overflow.shard, (returned.get(overflow.shard) ?? 0) + left);
  return returned;
}

/** The parts with what is given back of one more limit. */
function mergeParts(
  parts: ReadonlyMap<number, Costs>,
  name: string,
  returned: ReadonlyMap<number, number>,
): ReadonlyMap<number, Costs> {
  const result = new Map(parts);
  for (const [shard, amount] of returned)
    result.set(shard, addAmounts(result.get(shard) ?? NO_AMOUNTS, { [name]: -amount }));
  return result;
}

/**
 * Charges are paid with what the shards hold, beginning with the shard that they were meant for.
 * What is still missing is owed by all of them in proportion, so that all earn it back by the same
 * moment, as an undivided bucket would.
 */
function payByAll(
  costs: Costs,
  first: number,
  images: readonly BucketImage[],
  nowMs: number,
): readonly ClassPart[] {
  const payers = images.toSorted(
    (left, right) => Number(left.shard !== first) - Number(right.shard !== first),
  );
  const missing: Record<string, number> = { ...costs };
  const paid = payers.map(({ shard, bucket }): ClassPart => {
    const amounts: Record<string, number> = {};
    for (const name of Object.keys(costs)) {
      const held = Math.max(0, shardSumMilli([bucket], name, nowMs));
      const part = Math.min(missing[name]!, held);
      missing[name]! -= part;
      if (part > 0) amounts[name] = part;
    }
    return { shard, amounts };
  });
  const owed = distribute(missing, WHOLE, payers);
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

/** How much a limit needs until it is full; a window takes back whatever was taken in it. */
function roomMilli(bucket: Bucket, name: string, nowMs: number): number {
  const index = bucket.limits.findIndex(({ limit }) => limit.name === name);
  if (index < 0) return 0;
  if (bucket.limits[index]!.window !== undefined) return Infinity;
  return Math.max(0, ceilingMilli(bucket.limits[index]!) - balanceMilli(bucket, index, nowMs));
}
