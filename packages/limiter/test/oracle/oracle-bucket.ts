import { floorDivide, type Terms } from "./terms.ts";

/**
 * One limit of a bucket. `units` is its balance in 1/period millitoken: an exact rational, never
 * rounded between changes of limits.
 */
export interface Balance {
  readonly terms: Terms;
  readonly units: bigint;
  readonly hidden: boolean;
  readonly consumedMilli: number;
}

/**
 * A bucket as it has to be. A value; limits that left stay in it, hidden, so that nothing starts
 * full twice.
 */
export interface OracleBucket {
  /** Tells one life of a bucket from the next: deleting an entity ends it. */
  readonly life: number;
  readonly stampMs: number;
  readonly balances: readonly Balance[];
}

/** Whole tokens by limit name. */
export type Tokens = Readonly<Record<string, number>>;

/**
 * The tokens of one limit; 0 when it is not named. A limit may be called `constructor`, which every
 * object has.
 */
export function tokensOf(tokens: Tokens, name: string): number {
  return Object.hasOwn(tokens, name) ? tokens[name]! : 0;
}

/** A bucket that nobody has taken from. */
export function newBucket(wanted: readonly Terms[], life: number, nowMs: number): OracleBucket {
  return { life, stampMs: nowMs, balances: wanted.map((terms) => fullBalance(terms)) };
}

/**
 * The balance at a time, in 1/period millitoken. One closed form, so many small refills cannot
 * differ from a large one.
 */
export function unitsAt({ terms, units }: Balance, stampMs: number, nowMs: number): bigint {
  const earned = nowMs > stampMs ? units + terms.amount * BigInt(nowMs - stampMs) : units;
  return earned > terms.ceiling ? terms.ceiling : earned;
}

/** The balance at a time in whole millitokens. */
export function milliAt(balance: Balance, stampMs: number, nowMs: number): bigint {
  return floorDivide(unitsAt(balance, stampMs, nowMs), balance.terms.period);
}

/** Whether a limit holds so many whole tokens at a time. */
export function holds(balance: Balance, stampMs: number, tokens: number, nowMs: number): boolean {
  return unitsAt(balance, stampMs, nowMs) >= BigInt(tokens) * 1000n * balance.terms.period;
}

/** Brings a bucket up to date and charges it; negative costs are given back. */
export function charged(bucket: OracleBucket, costs: Tokens, nowMs: number): OracleBucket {
  const balances = bucket.balances.map((balance) => {
    const { terms } = balance;
    const cost = tokensOf(costs, terms.name);
    const units = unitsAt(balance, bucket.stampMs, nowMs) - BigInt(cost) * 1000n * terms.period;
    const consumedMilli = balance.consumedMilli + cost * 1000;
    return {
      terms,
      units: units > terms.ceiling ? terms.ceiling : units,
      hidden: balance.hidden,
      consumedMilli,
    };
  });
  return { life: bucket.life, stampMs: Math.max(bucket.stampMs, nowMs), balances };
}

/** Whether a bucket was last decided with these limits. */
export function isUnder(bucket: OracleBucket, wanted: readonly Terms[]): boolean {
  let visible = 0;
  for (const { terms, hidden } of bucket.balances) {
    if (hidden) continue;
    visible += 1;
    if (!wanted.includes(terms)) return false;
  }
  return visible === wanted.length;
}

/**
 * The bucket under other limits. `keepCut` is for a refusal, which takes nothing away: what would
 * be cut off keeps its old terms.
 */
export function under(
  bucket: OracleBucket,
  wanted: readonly Terms[],
  nowMs: number,
  keepCut: boolean,
): OracleBucket {
  if (isUnder(bucket, wanted)) return bucket;
  const { balances, stampMs, life } = charged(bucket, {}, nowMs);
  const kept = wanted.map((terms) => {
    const old = balances.find((balance) => balance.terms.name === terms.name);
    if (old === undefined) return fullBalance(terms);
    if (keepCut && milliAt(old, stampMs, stampMs) > terms.capacityMilli)
      return { ...old, hidden: false };
    return converted(old, terms);
  });
  for (const balance of balances) {
    if (!wanted.some(({ name }) => name === balance.terms.name))
      kept.push(balance.hidden ? balance : { ...balance, hidden: true });
  }
  return { life, stampMs, balances: kept };
}

function fullBalance(terms: Terms): Balance {
  return { terms, units: terms.ceiling, hidden: false, consumedMilli: 0 };
}

/**
 * Tokens carry over, a lowered capacity cuts off, and the fraction of a millitoken is kept as far
 * as the new rate can express it.
 */
function converted({ terms: before, units, consumedMilli }: Balance, terms: Terms): Balance {
  const milli = floorDivide(units, before.period);
  if (milli >= terms.capacityMilli)
    return { terms, units: terms.ceiling, hidden: false, consumedMilli };
  const fraction = ((units - milli * before.period) * terms.grain) / before.period;
  return {
    terms,
    units: milli * terms.period + fraction * (terms.period / terms.grain),
    hidden: false,
    consumedMilli,
  };
}
