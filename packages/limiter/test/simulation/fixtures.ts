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
  // Just before the clocks change in Berlin, in Havana, on Lord Howe, and back in Berlin.
  Date.UTC(2026, 2, 29, 0, 59, 59),
  Date.UTC(2026, 2, 8, 4, 59, 58),
  Date.UTC(2026, 3, 4, 14, 40),
  Date.UTC(2026, 9, 25, 0, 30),
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

const daily = { every: "day", zone: "Europe/Berlin" } as const;
const hourly = { every: "hour", zone: "UTC" } as const;
const halfHours = { every: "hour", zone: "Australia/Lord_Howe" } as const;
const shifts = { cron: "30 6,18 * * 1-5", zone: "Europe/Berlin" } as const;
const lastDays = { every: "month", day: 31, zone: "UTC" } as const;
const mondays = { every: "week", at: "06:30", zone: "UTC" } as const;
const withoutMidnight = { every: "day", zone: "America/Havana" } as const;

/** Most share a name with others that differ in one thing: capacity, calendar, carry or kind. */
const windows: readonly LimitSpec[] = [
  { name: "rpm", kind: "quota", capacity: 6, resets: hourly },
  { name: "rpm", kind: "quota", capacity: 11, resets: hourly },
  { name: "rpm", kind: "quota", capacity: 6, resets: halfHours, carry: { debt: true } },
  { name: "rpm", kind: "session", capacity: 5, windowSeconds: 30 },
  { name: "tpm", kind: "quota", capacity: 12, resets: daily },
  { name: "tpm", kind: "quota", capacity: 25, resets: daily },
  { name: "tpm", kind: "quota", capacity: 12, resets: withoutMidnight },
  { name: "tpm", kind: "quota", capacity: 10, resets: halfHours, carry: { debt: true } },
  { name: "tpm", kind: "quota", capacity: 15, resets: halfHours, carry: { debt: true } },
  { name: "tpm", kind: "quota", capacity: 12, resets: daily, carry: { unused: 5 } },
  { name: "tpm", kind: "quota", capacity: 9, resets: daily, carry: { unused: 5 } },
  { name: "tpm", kind: "quota", capacity: 14, resets: shifts, carry: { debt: true, unused: 3 } },
  { name: "tpm", kind: "session", capacity: 12, windowSeconds: 3600 },
  { name: "tpm", kind: "session", capacity: 16, windowSeconds: 600 },
  { name: "tpm", kind: "session", capacity: 12, windowSeconds: 60 },
  { name: "constructor", kind: "quota", capacity: 4, resets: lastDays },
  { name: "constructor", kind: "quota", capacity: 8, resets: mondays },
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
  ...windows.map((limit) => [limit]),
  ...windows.map((limit, index) => [
    limit,
    [...rpm, ...tpm].filter(({ name }) => name !== limit.name)[index % 3]!,
  ]),
  ...windows.slice(4, 15).map((limit, index) => [windows[index % 4]!, limit]),
];

/**
 * The sets that a history chooses from: often all of them, or a few that differ in what one limit
 * is, so that it changes often.
 */
export const THEMES: readonly (readonly number[])[] = [
  listSets(() => true),
  listSets(() => true),
  listSets(({ kind }) => kind === "session"),
  ...["rpm", "tpm"].map((name) =>
    listSets((limit) => limit.name === name && limit.kind !== undefined),
  ),
];

function listSets(isWanted: (limit: LimitSpec) => boolean): readonly number[] {
  return LIMIT_SETS.flatMap((limits, index) => (limits.some(isWanted) ? [index] : []));
}
