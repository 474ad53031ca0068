import { CoverageCounts } from "../support/seeded/coverage-counts.ts";

/** Every situation that a run must meet at least once to prove what it claims. */
const SITUATIONS = [
  "grant",
  "refusal",
  "refusal of a call that can never fit",
  "refusal by the parent alone",
  "refusal for the debt of a limit that is not named",
  "call with several resources granted",
  "call with a parent granted",
  "call with its own limits granted",
  "invalid call",
  "bucket in debt",
  "further take of a lease granted",
  "further take of a lease refused",
  "charge",
  "charge of nothing",
  "charge of a new bucket",
  "charge that does not fit",
  "charge of a bucket in debt",
  "charge with a parent",
  "invalid charge",
  "request lost before a charge",
  "answer lost after a charge",
  "commit that charges more",
  "commit that gives back",
  "commit that only counts",
  "commit without difference",
  "rollback",
  "callback that throws",
  "lease that ends with its block",
  "crash between acquire and settlement",
  "crash with differences not yet written",
  "crash after a further take",
  "crash within the callback",
  "crash after a lost answer",
  "crash of a client without leases",
  "request lost before a take",
  "answer lost after a take",
  "request lost before a further take",
  "answer lost after a further take",
  "lease granted without the store",
  "end of a lease that needed a second attempt",
  "settlement that never arrived",
  "settlement whose answers were all lost",
  "give-back that never arrived",
  "give-back whose answers were all lost",
  "configuration change",
  "configuration change under a lease",
  "level that inherits",
  "grant under several levels",
  "grant under defaults in code",
  "grant with a name that no limit holds",
  "limit that left and stays hidden",
  "hidden limit that came back",
  "capacity lowered below the balance",
  "entity deleted under a lease",
  "other parent under a lease",
  "other cascade under a lease",
  "clock step forward",
  "clock step backward",
  "clock step of more than a day",
  "skewed clocks",
  "overflow of an idle bucket",
  "retry at the promised time granted",
  "retry a millisecond early refused",
  "usage in several windows",
  "bucket split",
  "bucket merged",
] as const;

/** One kind of thing that can happen. */
export type Situation = (typeof SITUATIONS)[number];

/** How often each of them happened. */
export type Coverage = CoverageCounts<Situation>;

/** A count that starts at zero. */
export function newCoverage(): Coverage {
  return new CoverageCounts(SITUATIONS);
}
