import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";

/** Every situation that the fixed seeds must meet, or they prove less than they say. */
const SITUATIONS = [
  "opened",
  "opened by a clock that is ahead",
  "opened by other time zone data",
  "opened with several calls",
  "opened by a statement",
  "opened by the creation",
  "opened by a charge",
  "session opened",
  "given back",
  "rolled back over an end",
  "settled down over an end",
  "settled up over an end",
  "write of the last window landed in the next",
  "unanswered write over an end",
  "late write over an end",
  "capacity raised inside a window",
  "capacity lowered inside a window",
  "definition changed inside a window",
  "definition changed after a window",
  "kind changed",
  "limit left inside a window",
  "limit came back inside a window",
  "ttl set near an end",
  "expired",
  "crash with a lease",
  "grant",
  "refusal",
  "failed condition",
] as const;

/** One of them. */
export type Situation = (typeof SITUATIONS)[number];

/** How often each of them happened. */
export type Coverage = CoverageCounts<Situation>;

/** A count that starts at zero. */
export function newCoverage(): Coverage {
  return new CoverageCounts(SITUATIONS);
}
