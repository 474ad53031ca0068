/**
 * What time does to a balance: `u → min(high, max(low, u + add))`. A rate earns up to its capacity;
 * a window that is over begins with what `low = high` says. Such maps compose to such maps.
 */
export interface TimeMap {
  readonly low: number;
  readonly add: number;
  /** `add` rounded up, where a fraction of it is pending; otherwise the same. */
  readonly addMost: number;
  readonly high: number;
}

/** The balance after the time of a map. */
export function applyMap({ low, add, high }: TimeMap, milli: number): number {
  return Math.min(high, Math.max(low, milli + add));
}

/** Changes nothing. */
export const IDENTITY: TimeMap = { low: -Infinity, add: 0, addMost: 0, high: Infinity };

/** The same map, and then so much more or less. */
export function shiftMap({ low, add, addMost, high }: TimeMap, byMilli: number): TimeMap {
  return {
    low: low + byMilli,
    add: add + byMilli,
    addMost: addMost + byMilli,
    high: high + byMilli,
  };
}

/** Leaves the same of every balance. */
export function buildConstant(milli: number): TimeMap {
  return { low: milli, add: milli, addMost: milli, high: milli };
}
