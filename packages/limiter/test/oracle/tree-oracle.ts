import type { StoredItem } from "./stored-item.ts";

/**
 * What the shards of a bucket are worth, in rationals, read from the raw items. It shares no code
 * with the library, so that the two can only agree where both are right.
 */
export interface LimitWorth {
  /** Millitokens, in units of 1/`unitsPerMilli`. */
  readonly units: bigint;
  readonly unitsPerMilli: bigint;
}

/**
 * The worth of one limit over all shards at a time: each shard holds what is stored and what it
 * earned, up to its own ceiling.
 */
export function worthOf(items: readonly StoredItem[], limitName: string, atMs: number): LimitWorth {
  const periodMs = numberIn(items[0]!, `b_${limitName}_rp`);
  let units = 0n;
  for (const item of items) {
    const [shard, divisor] = [
      BigInt(textIn(item, "PK").split("#").at(-1)!),
      numberIn(item, "shard_count", 1n),
    ];
    const capacity = share(numberIn(item, `b_${limitName}_cp`), shard, divisor);
    const rate = share(numberIn(item, `b_${limitName}_ra`), shard, divisor);
    const elapsedMs = BigInt(atMs) - numberIn(item, "rf");
    // A remainder counts in units of 1/p, where p is the period after the shard's own rate was
    // reduced.
    const remainder = numberIn(item, `b_${limitName}_rm`, 0n) * gcd(rate, periodMs);
    const stored =
      numberIn(item, `b_${limitName}_tk`) * periodMs +
      remainder +
      (elapsedMs > 0n ? elapsedMs * rate : 0n);
    const most = capacity * periodMs;
    units += stored < most ? stored : most;
  }
  return { units, unitsPerMilli: periodMs };
}

/** The shares of the shards of a bucket, which must add up to the whole. */
export function sharesOf(items: readonly StoredItem[], whole: bigint): bigint {
  return items.reduce(
    (sum, item) =>
      sum +
      share(
        whole,
        BigInt(textIn(item, "PK").split("#").at(-1)!),
        numberIn(item, "shard_count", 1n),
      ),
    0n,
  );
}

/** The number of an attribute. */
export function numberIn(item: StoredItem, attribute: string, absent?: bigint): bigint {
  const value = item[attribute];
  if (value !== undefined && "N" in value) return BigInt(value.N as string);
  if (absent === undefined) throw new Error(`${attribute} is missing`);
  return absent;
}

function textIn(item: StoredItem, attribute: string): string {
  return (item[attribute] as { readonly S: string }).S;
}

function share(whole: bigint, shard: bigint, divisor: bigint): bigint {
  return whole / divisor + (shard < whole % divisor ? 1n : 0n);
}

function gcd(left: bigint, right: bigint): bigint {
  return right === 0n ? left : gcd(right, left % right);
}
