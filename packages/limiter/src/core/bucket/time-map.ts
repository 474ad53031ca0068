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
