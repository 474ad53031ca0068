import {
  fraction,
  isLess,
  least,
  minus,
  plus,
  show,
  times,
  ZERO,
  type Fraction,
} from "../../oracle/fraction.ts";
import {
  getCapacity,
  getConsumed,
  getDebt,
  isQuota,
  limitNames,
  NO_BUCKET,
  getRate,
  shardValue,
  type StoredBucket,
  type StoredShard,
} from "../../oracle/stored-bucket.ts";
import { computeShare } from "../../oracle/terms.ts";
import { WindowLedger } from "./window-ledger.ts";

/** A whole bucket from a moment on, in time that really passed. */
export interface BucketState {
  readonly fromMs: number;
  readonly bucket: StoredBucket;
  /** The shards that the write which led here has touched. */
  readonly touched: ReadonlySet<number>;
  /** How long that write was on its way. */
  readonly inFlightMs: number;
  /** Who wrote it, and when that was decided by its own clock. */
  readonly process: number;
  readonly decidedAtMs: number;
}

/** What a call asks of one bucket. */
export interface Asked {
  readonly amounts: ReadonlyMap<string, number>;
  /** Capacities that a process may have decided by: what is stored, and what was configured. */
  readonly capacities: readonly ReadonlyMap<string, number>[];
}

/** From which state, and from when on, by whose clock, and how far that is off. */
export interface Window {
  readonly firstState: number;
  readonly fromMs: number;
  readonly process: number;
  readonly skewMs: number;
}

/** Everything that one bucket ever was. */
export class BucketHistory {
  /** The highest version that each key ever had. */
  readonly #versions = new Map<number, bigint>();
  readonly windows = new WindowLedger();
  readonly states: BucketState[] = [
    {
      fromMs: -Infinity,
      bucket: NO_BUCKET,
      touched: new Set(),
      inFlightMs: 0,
      process: 0,
      decidedAtMs: 0,
    },
  ];

  get now(): StoredBucket {
    return this.states.at(-1)!.bucket;
  }

  /** Whether it ever had several shards. */
  get wasSplit(): boolean {
    return this.#versions.size > 1;
  }

  /**
   * A version is never used again at a key, in whichever life of the shard: a write that was meant
   * for an earlier one would be applied to it.
   */
  wrongVersions(): string | undefined {
    const { bucket, touched } = this.states.at(-1)!;
    const before = this.states.at(-2)!.bucket;
    for (const number of touched) {
      const { version, divisor } = bucket.get(number)!;
      const old = before.get(number);
      if (old?.version === version && old.divisor === divisor) continue;
      if (version <= (this.#versions.get(number) ?? 0n))
        return `version ${version} of shard ${number} was used before`;
      this.#versions.set(number, version);
    }
    return undefined;
  }

  /**
   * Promise 1: over every interval that ends with a grant, the tokens taken less those given back
   * are at most the capacity plus those earned, and once those that are earned in the time by which
   * clocks differ and writes were under way. What was charged beyond what a shard held is owed by
   * that shard; the others go on.
   */
  excess(differenceMs: number): string | undefined {
    const last = this.states.length - 1;
    for (const name of limitNames(this.now)) {
      // A quota grants by window: see `WindowLedger`.
      if (isQuota(this.now, name)) continue;
      let taken = 0n;
      let earned = getDebt(this.now, name, this.states[last]!.fromMs - differenceMs);
      let looseMs = 0;
      let fastest = ZERO;
      for (let index = last; index >= 1; index -= 1) {
        const [before, state] = [this.states[index - 1]!, this.states[index]!];
        taken += getConsumed(state.bucket, name) - getConsumed(before.bucket, name);
        looseMs = Math.max(looseMs, state.inFlightMs);
        const rate = getRate(state.bucket, name);
        if (isLess(fastest, rate)) fastest = rate;
        if (index < last)
          earned = plus(earned, times(rate, this.states[index + 1]!.fromMs - state.fromMs));
        const capacity = limitNames(before.bucket).includes(name)
          ? getCapacity(before.bucket, name)
          : getCapacity(state.bucket, name);
        const most = plus(plus(fraction(capacity), earned), times(fastest, looseMs + differenceMs));
        // A fraction of a millitoken may be found: see write-check.ts.
        if (isLess(plus(most, fraction(1n)), fraction(taken)))
          return `${name}: ${taken} millitokens were granted since ${state.fromMs}, where at most ${show(most)} may be`;
      }
    }
    return undefined;
  }

  /**
   * Whether the bucket can have looked as if it did not hold what was asked, by the clock of the
   * process that asked. Shards are seen one by one, not all at the same moment. A write of the same
   * process acts as of its decision: a call that did not fit beside those that it carries is
   * refused as of then. A call on shards that has lost a race is refused as of when it started.
   */
  couldNotHold(asked: Asked, window: Window): boolean {
    const states = this.states.slice(window.firstState);
    const isSplit = states.some(({ bucket }) => bucket.size > 1);
    const names = new Set([
      ...states.flatMap(({ bucket }) => limitNames(bucket)),
      ...asked.amounts.keys(),
    ]);
    return [...names].some((name) => {
      const needed = fraction(BigInt(asked.amounts.get(name) ?? 0) * 1000n);
      return asked.capacities.some((capacities) => {
        const capacity = BigInt(capacities.get(name) ?? 0) * 1000n;
        if (isLess(fraction(capacity), needed)) return true;
        const lowest = new Sightings(isLess);
        for (const state of states)
          for (const [number, shard] of state.bucket)
            lowest.see(
              number,
              shard,
              wholeMillitokens(shard, {
                name,
                number,
                capacity,
                atMs: seenAtMs(state, number, { ...window, isSplit }),
              }),
            );
        const sum = lowest.total();
        return sum !== undefined && isLess(plus(sum, fraction(1n)), needed);
      });
    });
  }

  /**
   * Whether the bucket can have looked as if it held an amount of a limit by a time, whatever
   * single shards owe.
   */
  couldHold(
    name: string,
    milli: bigint,
    { firstState, atMs }: { readonly firstState: number; readonly atMs: number },
  ): boolean {
    const highest = new Sightings((left, right) => isLess(right, left));
    for (const { bucket } of this.states.slice(firstState))
      for (const [number, shard] of bucket)
        if (shard.limits.has(name)) highest.see(number, shard, shardValue(shard, name, atMs));
    const sum = highest.total();
    return sum === undefined || !isLess(sum, fraction(milli));
  }

  /** The state that a bucket was in at a time. */
  stateAt(ms: number): number {
    return this.states.findLastIndex(({ fromMs }) => fromMs <= ms);
  }
}

/** What was seen of each shard, of each divisor that it had, at its lowest or at its highest. */
class Sightings {
  readonly #isBetter: (left: Fraction, right: Fraction) => boolean;
  readonly #values = new Map<string, Fraction>();

  constructor(isBetter: (left: Fraction, right: Fraction) => boolean) {
    this.#isBetter = isBetter;
  }

  see(number: number, { divisor }: StoredShard, value: Fraction): void {
    const place = `${number}/${divisor}`;
    this.#values.set(place, this.#better(this.#values.get(place), value)!);
  }

  /** The best sum over shards that make up a whole bucket; undefined when none do. */
  total(number = 0, divisor = 1): Fraction | undefined {
    const whole = this.#values.get(`${number}/${divisor}`);
    if (divisor > MOST_SHARDS) return whole;
    const [kept, moved] = [
      this.total(number, 2 * divisor),
      this.total(number + divisor, 2 * divisor),
    ];
    return this.#better(
      whole,
      kept === undefined || moved === undefined ? undefined : plus(kept, moved),
    );
  }

  #better(left: Fraction | undefined, right: Fraction | undefined): Fraction | undefined {
    if (left === undefined || right === undefined) return left ?? right;
    return this.#isBetter(right, left) ? right : left;
  }
}

/** No scenario has more. */
const MOST_SHARDS = 8;

/**
 * When a shard that is in a state may have been judged at the earliest. A call that a refill has
 * overtaken is decided as of that refill.
 */
function seenAtMs(
  { fromMs, process, decidedAtMs, touched, bucket }: BucketState,
  number: number,
  { isSplit, ...window }: Window & { readonly isSplit: boolean },
): number {
  // On shards, also on those that were merged since, a call that has lost a race is decided as of
  // when it started: tokens stored since count, tokens merely earned since do not.
  if (isSplit) return window.fromMs + window.skewMs;
  const sinceMs = Math.max(fromMs, window.fromMs) + window.skewMs;
  const { stampMs } = bucket.get(number)!;
  const isOwn = process === window.process && touched.has(number);
  return Math.min(
    sinceMs,
    stampMs >= window.fromMs + window.skewMs ? stampMs : Infinity,
    isOwn ? Math.max(decidedAtMs, window.fromMs + window.skewMs) : Infinity,
  );
}

/**
 * What a shard is sure to give of a limit under a capacity, which cuts off what is above its share:
 * a refill credits whole millitokens. A limit that is not there yet begins full.
 */
function wholeMillitokens(
  shard: StoredShard,
  {
    name,
    number,
    capacity,
    atMs,
  }: {
    readonly name: string;
    readonly number: number;
    readonly capacity: bigint;
    readonly atMs: number;
  },
): Fraction {
  const share = fraction(computeShare(capacity, number, shard.divisor));
  const limit = shard.limits.get(name);
  if (limit?.endMs !== undefined && atMs < limit.endMs)
    // What was used stays used, whatever the capacity.
    return plus(
      share,
      minus(shardValue(shard, name, atMs), fraction(limit.terms.capacityMilli + 1n)),
    );
  const value = limit === undefined ? share : least(share, shardValue(shard, name, atMs));
  return minus(value, fraction(1n));
}
