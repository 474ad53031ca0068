/*
 * The one exact model of a bucket. The tests of the core compare the library's arithmetic with it,
 * the simulation every answer of a backend, and the interleavings the items of a table, shard by
 * shard.
 */
import {
  chargedWindow,
  convertedWindow,
  isOpen,
  windowEndAfter,
  windowUnitsAt,
  type WindowBalance,
} from "./window-balance.ts";
import { floorDivide, type Terms } from "./terms.ts";

/**
 * What one limit holds. `units` is its balance in 1/period millitoken: an exact rational, never
 * rounded between changes of limits.
 */
export type Balance = WindowBalance;

/** One limit of a bucket. */
export interface LimitBalance extends Balance {
  readonly hidden: boolean;
  readonly consumedMilli: bigint;
}

/**
 * A bucket as it has to be. A value; limits that left stay in it, hidden, so that nothing starts
 * full twice.
 */
export interface OracleBucket {
  /** Distinguishes one life of a bucket from the next: deleting an entity ends it. */
  readonly life: number;
  readonly stampMs: number;
  readonly balances: readonly LimitBalance[];
  /** By name, what was consumed while no limit of that name held. */
  readonly countedMilli?: ReadonlyMap<string, bigint>;
}

/** The deepest debt in millitokens: a store could not count further down exactly. */
const LEAST_MILLI = BigInt(Number.MIN_SAFE_INTEGER);

/** Whole tokens by limit name. */
export type Tokens = Readonly<Record<string, number>>;

/**
 * The tokens of one limit; 0 when it is not named. A limit may be called `constructor`, which every
 * object has.
 */
export function listTokens(tokens: Tokens, name: string): number {
  return Object.hasOwn(tokens, name) ? tokens[name]! : 0;
}

/** A bucket that no call has taken from. */
export function newBucket(wanted: readonly Terms[], life: number, nowMs: number): OracleBucket {
  return { life, stampMs: nowMs, balances: wanted.map((terms) => fullBalance(terms)) };
}

/**
 * The balance at a time, in 1/period millitoken. One closed form, so many small refills cannot
 * differ from a large one.
 */
export function unitsAt(balance: Balance, stampMs: number, nowMs: number): bigint {
  const { terms, units } = balance;
  if (terms.window !== undefined) return windowUnitsAt(balance, nowMs);
  const earned = nowMs > stampMs ? units + terms.amount * BigInt(nowMs - stampMs) : units;
  return earned > terms.ceiling ? terms.ceiling : earned;
}

/** The balance at a time in whole millitokens. */
export function milliAt(balance: Balance, stampMs: number, nowMs: number): bigint {
  return floorDivide(unitsAt(balance, stampMs, nowMs), balance.terms.period);
}

/** Whether a limit holds this many whole tokens at a time. */
export function holds(balance: Balance, stampMs: number, tokens: number, nowMs: number): boolean {
  return unitsAt(balance, stampMs, nowMs) >= BigInt(tokens) * 1000n * balance.terms.period;
}

/**
 * Whether a bucket holds these amounts at a time. A limit of which nothing is wanted must not be in
 * debt.
 */
export function holdsAll(
  { balances, stampMs }: OracleBucket,
  tokens: Tokens,
  nowMs: number,
): boolean {
  return balances.every(
    (balance) =>
      balance.hidden || holds(balance, stampMs, listTokens(tokens, balance.terms.name), nowMs),
  );
}

/** By limit, when the windows end that a take was charged in. */
export type Ends = ReadonlyMap<string, number>;

/** The ends that a lease remembers. */
export function listEnds({ balances }: OracleBucket): Ends {
  return new Map(balances.map(({ terms, endMs = 0 }) => [terms.name, endMs]));
}

/** Brings a bucket up to date and charges it; negative costs are given back. */
export function readCharged(
  bucket: OracleBucket,
  costs: Tokens,
  nowMs: number,
  ends?: Ends,
): OracleBucket {
  return chargedMilli(bucket, (name) => BigInt(listTokens(costs, name)) * 1000n, nowMs, ends);
}

/** The same in millitokens, which only the library itself charges. */
export function chargedMilli(
  bucket: OracleBucket,
  costMilliOf: (name: string) => bigint,
  nowMs: number,
  ends?: Ends,
): OracleBucket {
  const balances = bucket.balances.map((balance) => {
    const { terms, hidden } = balance;
    const costMilli = costMilliOf(terms.name);
    const consumedMilli = balance.consumedMilli + costMilli;
    if (terms.window !== undefined) {
      const after = chargedWindow(balance, { costMilli, takenEndMs: ends?.get(terms.name) }, nowMs);
      return { ...after, units: notTooDeep(after.units, 1n), consumedMilli };
    }
    const units = unitsAt(balance, bucket.stampMs, nowMs) - costMilli * terms.period;
    return {
      ...balance,
      terms,
      units: units > terms.ceiling ? terms.ceiling : notTooDeep(units, terms.period),
      hidden,
      consumedMilli,
    };
  });
  return { ...bucket, stampMs: Math.max(bucket.stampMs, nowMs), balances };
}

/** The bucket after so much was consumed that no limit holds: no balance changes. */
export function counting(bucket: OracleBucket, tokens: Tokens): OracleBucket {
  if (Object.keys(tokens).length === 0) return bucket;
  const countedMilli = new Map(bucket.countedMilli);
  for (const name in tokens)
    countedMilli.set(name, (countedMilli.get(name) ?? 0n) + BigInt(tokens[name]!) * 1000n);
  return { ...bucket, countedMilli };
}

/**
 * The fewest milliseconds after `nowMs` at which a limit holds an amount; undefined when it never
 * will.
 */
export function waitMs(
  balance: Balance,
  stampMs: number,
  neededMilli: bigint,
  nowMs: number,
): bigint | undefined {
  const { terms, units } = balance;
  if (neededMilli > terms.capacityMilli) return undefined;
  return fewestMs((ms) => {
    const elapsedMs = BigInt(nowMs) + ms - BigInt(stampMs);
    const held = elapsedMs > 0n ? units + terms.amount * elapsedMs : units;
    return held >= neededMilli * terms.period;
  });
}

/**
 * The fewest milliseconds after which something that stays true becomes true, found by searching
 * and not by inverting a formula.
 */
export function fewestMs(isEnough: (ms: bigint) => boolean): bigint {
  if (isEnough(0n)) return 0n;
  let [tooFew, enough] = [0n, 1n];
  while (!isEnough(enough)) [tooFew, enough] = [enough, enough * 2n];
  while (enough - tooFew > 1n) {
    const middle = (tooFew + enough) / 2n;
    if (isEnough(middle)) enough = middle;
    else tooFew = middle;
  }
  return enough;
}

/** Whether a bucket was last decided with these limits. */
export function hasPolicyLimits(bucket: OracleBucket, wanted: readonly Terms[]): boolean {
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
  if (hasPolicyLimits(bucket, wanted)) return bucket;
  const current = readCharged(bucket, {}, nowMs);
  const { balances, stampMs } = current;
  const kept = wanted.map((terms) => {
    const old = balances.find((balance) => balance.terms.name === terms.name);
    if (old === undefined) return fullBalance(terms);
    if (keepCut && isCut(old, terms, stampMs, nowMs)) return { ...old, hidden: false };
    const { hidden: _, consumedMilli } = old;
    if (terms.window?.kind !== old.terms.window?.kind)
      return { ...ofOtherKind(old, terms, stampMs, nowMs), hidden: false, consumedMilli };
    if (terms.window === undefined) return convert(old, terms);
    return { ...convertedWindow(old, terms, nowMs), hidden: false, consumedMilli };
  });
  for (const balance of balances) {
    if (!wanted.some(({ name }) => name === balance.terms.name))
      kept.push(balance.hidden ? balance : { ...balance, hidden: true });
  }
  return { ...current, balances: kept };
}

/** Whether a rate becomes a smaller one, which no refusal brings about. */
function isCut(old: LimitBalance, terms: Terms, stampMs: number, nowMs: number): boolean {
  if (terms.window !== undefined || old.terms.window !== undefined) return false;
  return milliAt(old, stampMs, nowMs) > terms.capacityMilli;
}

/** A limit of another kind takes its balance along, into a window that opens now. */
function ofOtherKind(
  old: LimitBalance,
  terms: Terms,
  stampMs: number,
  nowMs: number,
): WindowBalance {
  const milli = milliAt(old, stampMs, nowMs);
  const wasOver = old.terms.window !== undefined && !isOpen(old, nowMs);
  return {
    terms,
    units: (milli < terms.capacityMilli ? milli : terms.capacityMilli) * terms.period,
    endMs: terms.window === undefined ? 0 : windowEndAfter(terms.window, nowMs),
    opened: (old.opened ?? 0) + (wasOver ? 1 : 0),
  };
}

function fullBalance(terms: Terms): LimitBalance {
  return { terms, units: terms.capacityMilli * terms.period, hidden: false, consumedMilli: 0n };
}

/** A debt that is too deep loses its whole millitokens below the bound, and keeps its fraction. */
function notTooDeep(units: bigint, period: bigint): bigint {
  if (units >= 0n) return units;
  const milli = floorDivide(units, period);
  return milli < LEAST_MILLI ? units + (LEAST_MILLI - milli) * period : units;
}

/**
 * Tokens carry over, a lowered capacity cuts off, and the fraction of a millitoken is kept as far
 * as the new rate can express it.
 */
function convert(
  { terms: before, units, consumedMilli, opened = 0 }: LimitBalance,
  terms: Terms,
): LimitBalance {
  const milli = floorDivide(units, before.period);
  if (milli >= terms.capacityMilli)
    return { terms, units: terms.ceiling, hidden: false, consumedMilli, opened };
  const fraction = ((units - milli * before.period) * terms.grain) / before.period;
  return {
    terms,
    units: milli * terms.period + fraction * (terms.period / terms.grain),
    hidden: false,
    consumedMilli,
    opened,
  };
}
