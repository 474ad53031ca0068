/*
 * Buckets as they are stored, read without the code under test. A bucket is the sum of its shards.
 * Every shard stores the parameters of the whole, and holds of each limit, with a/p its share of
 * the rate in lowest terms,
 *
 *   min(share of the capacity, tk + rm/p + a/p for each millisecond since rf)
 *
 * or, of a quota, tk until its window ends at we, and its share of the capacity from then on. What
 * quotas carry over is not known here.
 */
import { fraction, isLess, minus, sum, ZERO, type Fraction } from "./fraction.ts";
import { unitsAt, type Balance } from "./oracle-bucket.ts";
import { exactTerms, termsOfShard, type Terms } from "./terms.ts";

/**
 * An item as the table holds it, as far as an oracle reads it. Declared again here: an oracle
 * shares nothing with the code that it judges, not even a type.
 */
export type StoredItem = { readonly [attribute: string]: object };

/** One limit of a shard, under its share. */
export interface StoredLimit extends Balance {
  /** The parameters of the whole bucket. */
  readonly whole: Terms;
  readonly consumed: bigint;
  /** How much of it by cascade. */
  readonly cascaded: bigint;
  readonly hidden: boolean;
  /** When the window of a quota ends; 0 before the first, undefined for a rate. */
  readonly endMs: number | undefined;
}

/** One item. */
export interface StoredShard {
  /** It owns the class of its number modulo this. */
  readonly divisor: number;
  readonly stampMs: number;
  readonly version: bigint;
  /** Write units, which every write adds to. */
  readonly writes: bigint;
  readonly grants: bigint;
  /** How many of them by cascade. */
  readonly cascadedGrants: bigint;
  /** Takes that were given back because another bucket of their call refused. */
  readonly undone: bigint;
  /** When it may be forgotten; undefined when never. */
  readonly expiresAtMs: number | undefined;
  /** Whose it is, from which creation, and the last operation ids: as text, in a fixed order. */
  readonly identity: string;
  readonly limits: ReadonlyMap<string, StoredLimit>;
}

/** All shards of one bucket, by their number. */
export type StoredBucket = ReadonlyMap<number, StoredShard>;

/** Before the first write. */
export const NO_BUCKET: StoredBucket = new Map();

/** One shard, from its item. Items that are older than shards do not count them. */
export function readShard(item: StoredItem, shard: number): StoredShard {
  const names = Object.keys(item).flatMap((attribute) => /^b_(.+)_cp$/.exec(attribute)?.[1] ?? []);
  const divisor = Number(numberIn(item, "shard_count", 1n));
  return {
    divisor,
    stampMs: Number(numberIn(item, "rf")),
    version: numberIn(item, "sv"),
    writes: numberIn(item, "b_wcu_tc"),
    grants: numberIn(item, "gr", 0n),
    cascadedGrants: numberIn(item, "gc", 0n),
    undone: numberIn(item, "ud", 0n),
    expiresAtMs: item["ttl"] === undefined ? undefined : Number(numberIn(item, "ttl")) * 1000,
    identity: JSON.stringify(
      Object.entries(item)
        .filter(([attribute]) => !CHANGING.test(attribute))
        .sort(([left], [right]) => (left < right ? -1 : 1)),
    ),
    limits: new Map(names.map((name) => [name, readLimit(item, name, { shard, divisor })])),
  };
}

/** What writes, splits and merges may change beside the operation ids. */
const CHANGING = /^(?:b_.*|rf|sv|sd|shard_count|mi|po|gr|gc|ud|ttl)$/;

/** Shards of one bucket, from their items. */
export function readBucket(items: readonly StoredItem[]): StoredBucket {
  return new Map(
    items.map((item) => {
      const { S: partition } = item["PK"] as { readonly S: string };
      const shard = Number(partition.split("#").at(-1));
      return [shard, readShard(item, shard)];
    }),
  );
}

/** The number of an attribute. */
export function numberIn(item: StoredItem, attribute: string, absent?: bigint): bigint {
  const value = item[attribute];
  if (value !== undefined && "N" in value) return BigInt(value.N as string);
  if (absent === undefined) throw new Error(`${attribute} is missing`);
  return absent;
}

/**
 * What one limit of one shard holds at a time by some clock, in millitokens. Before its stamp it
 * earns nothing.
 */
export function shardValue({ limits, stampMs }: StoredShard, name: string, atMs: number): Fraction {
  const limit = limits.get(name)!;
  const { endMs, terms, units } = limit;
  if (endMs !== undefined) return fraction(atMs < endMs ? units : terms.capacityMilli);
  return fraction(unitsAt(limit, stampMs, atMs), terms.period);
}

/** What one limit of a shard holds without what it has earned since its stamp. */
export function storedValue({ limits }: StoredShard, name: string): Fraction {
  const { units, terms } = limits.get(name)!;
  return fraction(units, terms.period);
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
export function getDebt(bucket: StoredBucket, name: string, atMs: number): Fraction {
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

/** Whether a limit is a quota on any shard. */
export function isQuota(bucket: StoredBucket, name: string): boolean {
  return [...bucket.values()].some(({ limits }) => limits.get(name)?.endMs !== undefined);
}

/** The names of all limits, hidden ones too. */
export function limitNames(bucket: StoredBucket): readonly string[] {
  const names = new Set<string>();
  for (const { limits } of bucket.values()) for (const name of limits.keys()) names.add(name);
  return [...names].sort();
}

/** The whole capacity of a limit. */
export function getCapacity(bucket: StoredBucket, name: string): bigint {
  return total(bucket, (shard) => shard.limits.get(name)?.terms.capacityMilli ?? 0n);
}

/** What the whole bucket earns of a limit in a millisecond. */
export function getRate(bucket: StoredBucket, name: string): Fraction {
  return sum([...bucket.values()].map(({ limits }) => rateOfLimit(limits.get(name))));
}

/** What was consumed of a limit, over all shards. */
export function getConsumed(bucket: StoredBucket, name: string): bigint {
  return total(bucket, (shard) => shard.limits.get(name)?.consumed ?? 0n);
}

/** How much of it by cascade. */
export function getCascaded(bucket: StoredBucket, name: string): bigint {
  return total(bucket, (shard) => shard.limits.get(name)?.cascaded ?? 0n);
}

/** How many calls were granted, over all shards. */
export function listGrants(bucket: StoredBucket): bigint {
  return total(bucket, ({ grants }) => grants);
}

/** How many of them by cascade. */
export function listCascadedGrants(bucket: StoredBucket): bigint {
  return total(bucket, ({ cascadedGrants }) => cascadedGrants);
}

function rateOfLimit(limit: StoredLimit | undefined): Fraction {
  return limit === undefined ? ZERO : fraction(limit.terms.amount, limit.terms.period);
}

function total(bucket: StoredBucket, part: (shard: StoredShard) => bigint): bigint {
  return [...bucket.values()].reduce((result, shard) => result + part(shard), 0n);
}

function readLimit(
  item: StoredItem,
  name: string,
  { shard, divisor }: { readonly shard: number; readonly divisor: number },
): StoredLimit {
  const isRate = item[`b_${name}_kd`] === undefined;
  const whole = exactTerms({
    name,
    capacityMilli: numberIn(item, `b_${name}_cp`),
    amount: isRate ? numberIn(item, `b_${name}_ra`) : 0n,
    period: isRate ? numberIn(item, `b_${name}_rp`) : 1n,
  });
  const terms = termsOfShard(whole, shard, divisor);
  // A remainder counts in units of the period after the shard's own rate was reduced.
  const remainder = numberIn(item, `b_${name}_rm`, 0n) * (terms.period / terms.grain);
  return {
    whole,
    terms,
    units: numberIn(item, `b_${name}_tk`) * terms.period + remainder,
    consumed: numberIn(item, `b_${name}_tc`, 0n),
    cascaded: numberIn(item, `b_${name}_cc`, 0n),
    hidden: item[`b_${name}_hd`] !== undefined,
    endMs: isRate ? undefined : Number(numberIn(item, `b_${name}_we`, 0n)),
  };
}
