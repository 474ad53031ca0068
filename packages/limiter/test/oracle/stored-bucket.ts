/*
 * Buckets as they are stored, read without the code under test. A bucket is the sum of its shards,
 * and each limit of a shard holds
 *
 *   min(share of the capacity, tk + rm/p + a/p for each millisecond since rf)       with a/p the rate in lowest terms
 */
import { fraction, isLess, least, minus, plus, type Fraction, sum, ZERO } from "./fraction.ts";
import type { StoredItem } from "./stored-item.ts";

export interface StoredLimit {
  readonly tokens: bigint;
  /** The share of this shard. */
  readonly ceiling: bigint;
  /**
   * The share of the rate, in lowest terms, and the remainder of the refill in units of 1/period.
   */
  readonly amount: bigint;
  readonly period: bigint;
  readonly remainder: bigint;
  readonly consumed: bigint;
  readonly hidden: boolean;
}

/** One item. */
export interface StoredShard {
  /** It owns the class of its number modulo this. */
  readonly divisor: number;
  readonly stampMs: number;
  readonly grants: bigint;
  /** When it may be forgotten; undefined when never. */
  readonly expiresAtMs: number | undefined;
  readonly limits: ReadonlyMap<string, StoredLimit>;
}

/** All shards of one bucket, by their number. */
export type StoredBucket = ReadonlyMap<number, StoredShard>;

export const NO_BUCKET: StoredBucket = new Map();

/**
 * Every shard stores the parameters of the whole; its share of x is how many k < x have k mod
 * divisor = shard.
 */
export function readShard(item: StoredItem, shard: number): StoredShard {
  const names = Object.keys(item).flatMap((attribute) => /^b_(.+)_cp$/.exec(attribute)?.[1] ?? []);
  const divisor = whole(item, "shard_count");
  return {
    divisor: Number(divisor),
    stampMs: Number(whole(item, "rf")),
    grants: whole(item, "gr"),
    expiresAtMs: item["ttl"] === undefined ? undefined : Number(whole(item, "ttl")) * 1000,
    limits: new Map(
      names.map((name) => [name, readLimit(item, name, (x) => shareOf(x, BigInt(shard), divisor))]),
    ),
  };
}

/**
 * What one limit of one shard holds at a time by some clock, in millitokens. Before its stamp it
 * earns nothing.
 */
export function shardValue({ limits, stampMs }: StoredShard, name: string, atMs: number): Fraction {
  const limit = limits.get(name)!;
  const elapsed = BigInt(Math.max(0, atMs - stampMs));
  const earned = fraction(limit.remainder + elapsed * limit.amount, limit.period);
  return least(fraction(limit.ceiling), plus(fraction(limit.tokens), earned));
}

/** What one limit of a shard holds without what it has earned since its stamp. */
export function storedValue({ limits }: StoredShard, name: string): Fraction {
  const { tokens, remainder, period } = limits.get(name)!;
  return plus(fraction(tokens), fraction(remainder, period));
}

/** What one limit of a whole bucket holds. */
export function bucketValue(bucket: StoredBucket, name: string, atMs: number): Fraction {
  return sum(
    [...bucket.values()]
      .filter(({ limits }) => limits.has(name))
      .map((shard) => shardValue(shard, name, atMs)),
  );
}

/** What some shards owe of one limit, the others left out of account. */
export function debtOf(bucket: StoredBucket, name: string, atMs: number): Fraction {
  const values = [...bucket.values()]
    .filter(({ limits }) => limits.has(name))
    .map((shard) => shardValue(shard, name, atMs));
  return minus(ZERO, sum(values.filter((value) => isLess(value, ZERO))));
}

/** Whether every class belongs to exactly one shard. */
export function isPartition(bucket: StoredBucket): boolean {
  const most = Math.max(1, ...[...bucket.values()].map(({ divisor }) => divisor));
  return Array.from({ length: most }, (_, owned) => owned).every(
    (owned) => [...bucket].filter(([shard, { divisor }]) => owned % divisor === shard).length === 1,
  );
}

export function limitNames(bucket: StoredBucket): readonly string[] {
  const names = new Set<string>();
  for (const { limits } of bucket.values()) for (const name of limits.keys()) names.add(name);
  return [...names].sort();
}

/** The whole capacity of a limit. */
export function capacityOf(bucket: StoredBucket, name: string): bigint {
  return total(bucket, (shard) => shard.limits.get(name)?.ceiling ?? 0n);
}

/** What the whole bucket earns of a limit in a millisecond. */
export function rateOf(bucket: StoredBucket, name: string): Fraction {
  return sum([...bucket.values()].map(({ limits }) => rateOfLimit(limits.get(name))));
}

export function consumedOf(bucket: StoredBucket, name: string): bigint {
  return total(bucket, (shard) => shard.limits.get(name)?.consumed ?? 0n);
}

export function grantsOf(bucket: StoredBucket): bigint {
  return total(bucket, ({ grants }) => grants);
}

function rateOfLimit(limit: StoredLimit | undefined): Fraction {
  return limit === undefined ? ZERO : fraction(limit.amount, limit.period);
}

function total(bucket: StoredBucket, part: (shard: StoredShard) => bigint): bigint {
  return [...bucket.values()].reduce((result, shard) => result + part(shard), 0n);
}

function readLimit(item: StoredItem, name: string, share: (whole: bigint) => bigint): StoredLimit {
  const [refillAmount, refillPeriod] = [
    share(whole(item, `b_${name}_ra`)),
    whole(item, `b_${name}_rp`),
  ];
  const divisor = commonDivisor(refillAmount, refillPeriod);
  return {
    tokens: whole(item, `b_${name}_tk`),
    ceiling: share(whole(item, `b_${name}_cp`)),
    amount: refillAmount / divisor,
    period: refillPeriod / divisor,
    remainder: whole(item, `b_${name}_rm`),
    consumed: whole(item, `b_${name}_tc`),
    hidden: item[`b_${name}_hd`] !== undefined,
  };
}

/** How much of `x` belongs to a shard. */
export function shareOf(x: bigint, shard: bigint, divisor: bigint): bigint {
  return x / divisor + (shard < x % divisor ? 1n : 0n);
}

function whole(item: StoredItem, attribute: string): bigint {
  const value = item[attribute];
  return value !== undefined && "N" in value ? BigInt(value.N as string) : 0n;
}

function commonDivisor(left: bigint, right: bigint): bigint {
  return right === 0n ? left : commonDivisor(right, left % right);
}
