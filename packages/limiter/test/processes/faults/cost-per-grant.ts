import type { ProxyCounts } from "./proxy-faults.ts";

/** What a number of grants cost. */
export type GrantCosts = Pick<ProxyCounts, "requests" | "writeUnits" | "readUnits"> & {
  readonly grants: number;
};

/** One thing that is paid for. */
export type Cost = Exclude<keyof GrantCosts, "grants">;

/** What a grant may cost after faults, compared with before. */
const LARGEST_RATIO = 1.3;

/**
 * What counts as before at least. Calls share a write by chance, the more the busier the machine
 * is: eight runs on one item had between 0.89 and 1.19 writes for a grant. And warm processes on
 * one item read next to nothing.
 */
const LEAST_BEFORE: Readonly<Record<Cost, number>> = {
  requests: 1,
  writeUnits: 1,
  readUnits: 0.05,
};

/** What each grant cost. */
export function perGrant(phase: GrantCosts, cost: Cost): number {
  return phase[cost] / phase.grants;
}

/** The most that a grant may cost after faults. */
export function mostPerGrant(before: GrantCosts, cost: Cost): number {
  return LARGEST_RATIO * Math.max(perGrant(before, cost), LEAST_BEFORE[cost]);
}
