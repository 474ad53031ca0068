import { fraction, isLess, plus, shown, ZERO, type Fraction } from "./fraction.ts";
import { bucketValue, capacityOf, consumedOf, limitNames, NO_BUCKET, rateOf, type StoredBucket } from "./stored-bucket.ts";

/** A whole bucket from a moment on, in time that really passed. */
export interface BucketState {
  readonly fromMs: number;
  readonly bucket: StoredBucket;
  /** Whether the write that led here granted something and charged nothing. */
  readonly isGrant: boolean;
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
  readonly states: BucketState[] = [{ fromMs: -Infinity, bucket: NO_BUCKET, isGrant: false, inFlightMs: 0, process: 0, decidedAtMs: 0 }];

  get now(): StoredBucket {
    return this.states.at(-1)!.bucket;
  }

  /**
   * Promise 1: over every interval that ends with a grant, what was taken less what was given back is at most the capacity plus what was earned,
   * and what the time earns by which clocks differ and writes were under way, once.
   */
  excess(differenceMs: number): string | undefined {
    const last = this.states.length - 1;
    for (const name of limitNames(this.now)) {
      let taken = 0n;
      let earned = ZERO;
      let looseMs = 0;
      let fastest = ZERO;
      for (let index = last; index >= 1; index -= 1) {
        const [before, state] = [this.states[index - 1]!, this.states[index]!];
        taken += consumedOf(state.bucket, name) - consumedOf(before.bucket, name);
        looseMs = Math.max(looseMs, state.inFlightMs);
        const rate = rateOf(state.bucket, name);
        if (isLess(fastest, rate)) fastest = rate;
        if (index < last) earned = plus(earned, times(rate, this.states[index + 1]!.fromMs - state.fromMs));
        const capacity = limitNames(before.bucket).includes(name) ? capacityOf(before.bucket, name) : capacityOf(state.bucket, name);
        const most = plus(plus(fraction(capacity), earned), times(fastest, looseMs + differenceMs));
        if (isLess(most, fraction(taken)))
          return `${name}: ${taken} millitokens were granted since ${state.fromMs}, where at most ${shown(most)} may be`;
      }
    }
    return undefined;
  }

  /**
   * Whether there was a moment at which the bucket could not hold what was asked, by the clock of the process that asked. A write of the same
   * process acts as of its decision: a call that did not fit beside those that it carries is refused as of then.
   */
  couldNotHold(asked: Asked, { firstState, fromMs, process, skewMs }: Window): boolean {
    return this.states.slice(firstState).some(({ bucket, decidedAtMs, ...state }) => {
      const sinceMs = Math.max(state.fromMs, fromMs) + skewMs;
      const atMs = state.process === process ? Math.min(sinceMs, Math.max(decidedAtMs, fromMs + skewMs)) : sinceMs;
      const names = new Set([...limitNames(bucket), ...asked.amounts.keys()]);
      return [...names].some((name) => isShort(bucket, name, asked, atMs));
    });
  }

  /** The state that a bucket was in at a time. */
  stateAt(ms: number): number {
    return this.states.findLastIndex(({ fromMs }) => fromMs <= ms);
  }
}

/** A refill credits whole millitokens, and each shard has its own. A limit that is not asked for must not be in debt. */
function isShort(bucket: StoredBucket, name: string, { amounts, capacities }: Asked, atMs: number): boolean {
  const needed = fraction(BigInt(amounts.get(name) ?? 0) * 1000n);
  if (capacities.some((capacity) => isLess(fraction(BigInt(capacity.get(name) ?? 0) * 1000n), needed))) return true;
  if (!limitNames(bucket).includes(name)) return false;
  const rounding = fraction(BigInt(bucket.size - 1));
  return isLess(bucketValue(bucket, name, atMs), plus(needed, rounding));
}

function times({ top, over }: Fraction, factor: number): Fraction {
  return { top: top * BigInt(factor), over };
}
