/*
 * The shards of a bucket are the leaves of a binary tree of residue classes. Shard p with divisor d
 * owns p mod d, and only ever splits into p and p + d, both with divisor 2d:
 *
 *                     0 mod 1
 *            0 mod 2           1 mod 2
 *        0 mod 4  2 mod 4   1 mod 4  3 mod 4
 *
 * The count of a bucket is the divisor of its shard 0, which is split first and merged first; the
 * others are split when a process needs them. A process that needs a shard j < count that does not
 * exist splits the owner of j until it does. While the shards of a level are being merged, some
 * have a larger divisor than shard 0.
 */
import type { Amounts } from "../../../core/amounts.ts";

/**
 * A residue class, `shard` mod `divisor`: a shard as it is, or as it was when something was taken
 * from it.
 */
export interface ShardClass {
  readonly shard: number;
  /** A power of two. */
  readonly divisor: number;
}

/** The divisor of the deepest level that shards exist on. */
export function largestDivisor(shards: readonly ShardClass[]): number {
  return shards.reduce((largest, { divisor }) => Math.max(largest, divisor), 1);
}

/** What one owner gets of what is distributed over a class. */
export interface ClassPart {
  readonly shard: number;
  readonly amounts: Amounts;
}

/** The class that leaves a shard when it splits. */
export function nextHalf({ shard, divisor }: ShardClass): ShardClass {
  return { shard: shard + divisor, divisor: 2 * divisor };
}

/**
 * The existing shard that owns class `wanted` of `count`; returns undefined when not even shard 0
 * is known.
 */
export function findOwner(
  wanted: number,
  count: number,
  exists: (shard: number) => boolean,
): number | undefined {
  for (let divisor = count; divisor >= 1; divisor /= 2)
    if (exists(wanted % divisor)) return wanted % divisor;
  return undefined;
}

/**
 * Which of the existing shards own a class now: those that it was split into, or the one that it
 * was merged into.
 */
export function ownersOfClass<Shard extends ShardClass>(
  { shard, divisor }: ShardClass,
  existing: readonly Shard[],
): readonly Shard[] {
  return existing.filter((other) =>
    other.divisor >= divisor
      ? other.shard % divisor === shard
      : shard % other.divisor === other.shard,
  );
}

/**
 * Distributes amounts that were taken from a class over its owners: each gets the part of its own
 * class, rounded towards 0, and the first also gets the rest, so that the parts add up exactly.
 * Only the first may get an empty part. Amounts are whole numbers of any unit.
 */
export function distribute(
  amounts: Amounts,
  taken: ShardClass,
  owners: readonly ShardClass[],
): readonly ClassPart[] {
  const rests = { ...amounts };
  const parts = owners.map(({ shard, divisor }, index): ClassPart => {
    if (index === 0) return { shard, amounts: rests };
    const own: Record<string, number> = {};
    for (const [name, amount] of Object.entries(amounts)) {
      const part = Math.trunc(amount / Math.max(1, divisor / taken.divisor));
      if (part === 0) continue;
      own[name] = part;
      rests[name] = rests[name]! - part;
    }
    return { shard, amounts: own };
  });
  return parts.filter((part, index) => index === 0 || Object.keys(part.amounts).length > 0);
}
