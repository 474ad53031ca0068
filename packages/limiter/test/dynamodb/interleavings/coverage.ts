import { CoverageCounts } from "../../support/seeded/coverage-counts.ts";

/** Every situation that a run must have met, or it has proven less than it says. */
const SITUATIONS = [
  "grant",
  "refusal",
  "unavailable",
  "grant by cascade",
  "grant of a parent's own call",
  "further take",
  "charge",
  "settlement",
  "give-back",
  "end that was tried again",
  "write of a process with several calls under way",
  "write that granted several calls",
  "failed condition",
  "request lost",
  "reply lost",
  "reply lost of an applied write",
  "request never sent",
  "throttled",
  "transaction conflict",
  "batch read at several moments",
  "batch of statements",
  "batch of statements applied at several moments",
  "batch of statements whose reply was lost",
  "reply in part",
  "statement: throttle",
  "statement: throughput",
  "statement: conflict",
  "statement: internal",
  "statement: late-internal",
  "statement: condition",
  "statement: invalid",
  "time-out",
  "late write applied",
  "crash",
  "crash with a write asked",
  "crash with a write applied, not answered",
  "crash with a lease",
  "clock set back",
  "configuration change",
  "call as large as the capacity",
  "split asked",
  "split",
  "split of a debt",
  "call that gathered from several shards",
  "split between decision and write",
  "split between write and reply",
  "split between take and end",
  "merge asked",
  "merge",
  "merge of a debt",
  "merge of different limits",
  "merge between decision and write",
  "merge between write and reply",
  "merge between take and end",
  "late merge applied",
  "late merge refused",
  "late write to a shard that is gone",
  "reply lost of a write to a shard that is gone",
  "bucket merged in the end",
  "window opened",
  "window opened by a gather",
  "split of a quota",
  "merge of a quota",
  "merge of different windows",
] as const;

type Situation = (typeof SITUATIONS)[number];

/** How often each of them happened. */
export type Coverage = CoverageCounts<Situation>;

/** A count that starts at zero. */
export function newCoverage(): Coverage {
  return new CoverageCounts(SITUATIONS);
}
