import type { LimitSpec } from "../oracle/terms.ts";

/** `p` and `q` may be parents, `c` and `d` children; any of them may lack a record. */
export const ENTITIES: readonly string[] = ["p", "c", "d", "q"];
/** The resources of all calls. */
export const RESOURCES: readonly string[] = ["r", "s"];

/** One of them is a name that every object has. */
export const LIMIT_NAMES: readonly string[] = ["rpm", "tpm", "constructor"];

/** The middle of an hour, and just before the end of an hour, a day, a month and a year. */
export const START_TIMES_MS: readonly number[] = [
  Date.UTC(2026, 0, 4, 12),
  Date.UTC(2026, 2, 10, 6, 59, 58),
  Date.UTC(2026, 1, 28, 23, 59, 59),
  Date.UTC(2026, 11, 31, 23, 59, 59, 990),
];

const rpm: readonly LimitSpec[] = [
  { name: "rpm", capacity: 10, refillAmount: 10, refillPeriodSeconds: 60 },
  { name: "rpm", capacity: 5, refillAmount: 7, refillPeriodSeconds: 3 },
  { name: "rpm", capacity: 20, refillAmount: 1, refillPeriodSeconds: 1 },
];
const tpm: readonly LimitSpec[] = [
  { name: "tpm", capacity: 30, refillAmount: 1001, refillPeriodSeconds: 86_400 },
  { name: "tpm", capacity: 30, refillAmount: 86_400, refillPeriodSeconds: 86_400 },
  { name: "tpm", capacity: 4, refillAmount: 13, refillPeriodSeconds: 7 },
  { name: "tpm", capacity: 1_000_000_000, refillAmount: 999_983, refillPeriodSeconds: 3600 },
];
const inherited: readonly LimitSpec[] = [
  { name: "constructor", capacity: 3, refillAmount: 1, refillPeriodSeconds: 11 },
  { name: "constructor", capacity: 8, refillAmount: 3, refillPeriodSeconds: 1 },
];

/**
 * What configuration and overrides choose from: limits come, go, rise and fall between any two of
 * them.
 */
export const LIMIT_SETS: readonly (readonly LimitSpec[])[] = [
  ...rpm.map((limit) => [limit]),
  ...tpm.map((limit) => [limit]),
  ...inherited.map((limit) => [limit]),
  ...rpm.flatMap((first) => tpm.map((second) => [first, second])),
  ...rpm.flatMap((first) => inherited.map((second) => [second, first])),
  ...tpm.map((first, index) => [
    first,
    rpm[index % rpm.length]!,
    inherited[index % inherited.length]!,
  ]),
];
