/*
 * The memory backend against rate-limiter-flexible's: `npm run bench`, or `npm run bench --
 * --quick` to see that it works. One operation of ours is acquire and commit; one of the peer's is
 * a consume. One limit is compared with one limit, two with a union of two.
 */
import type { HeapPerKey } from "./heap-per-key.ts";
import {
  cpuRatio,
  interleave,
  median,
  printCosts,
  printTable,
  printVerdicts,
  whole,
  type Measured,
  type Verdict,
} from "./harness.ts";
import { CONTESTANTS, type ContestantName } from "./memory-contestants.ts";
import { contestantsOver, heapPerKey } from "./memory-processes.ts";

// A quick run shows that the benchmark works; it ends before the code is warm, so its numbers say
// nothing.
const quick = process.argv.includes("--quick");
const MANY_KEYS = quick ? 1000 : 100_000;
const pace = quick ? { rounds: 1, turnMs: 20 } : { rounds: 11, turnMs: 150, warmUpMs: 500 };
if (quick)
  console.log("A quick run: it shows that the benchmark works, and its numbers say nothing.\n");

const verdicts: Verdict[] = [];
for (const keys of [1, MANY_KEYS]) {
  const title = keys === 1 ? "1 key" : `${whole(keys)} keys`;
  const contestants = contestantsOver(Object.keys(CONTESTANTS), keys);
  const measured = await interleave(contestants, pace);
  for (const contestant of contestants) contestant.end();
  printCosts(title, measured);
  const findMeasured = (name: ContestantName): Measured =>
    measured.find((one) => one.name === name)!;
  for (const usage of ["usage on", "usage off"] as const) {
    const one = findMeasured(`zae-limiter, one limit, ${usage}`);
    const two = findMeasured(`zae-limiter, two limits, ${usage}`);
    const single = findMeasured("rate-limiter-flexible, one limit");
    const union = findMeasured("rate-limiter-flexible, union of two");
    verdicts.push(
      compare(`${title}, ${usage}: one limit against one limit`, one, single, { atLeast: 1 }),
      compare(`${title}, ${usage}: two limits against a union`, two, union, { atLeast: 3 }),
      // What a limiter can save at most; it is there to be seen.
      compare(
        `${title}, ${usage}: one limit against a pair of promises`,
        one,
        findMeasured("a pair of awaited promises"),
      ),
    );
  }
}

const heap = (Object.keys(CONTESTANTS) as ContestantName[])
  .filter((name) => name !== "a pair of awaited promises")
  .map((name) => heapPerKey(name, MANY_KEYS));
printTable(
  [`Heap, ${whole(MANY_KEYS)} keys`, "bytes/key"],
  heap.map(({ name, bytes }) => [name, whole(bytes)]),
);
const findHeap = (name: ContestantName): HeapPerKey => heap.find((one) => one.name === name)!;
const heapSingle = findHeap("rate-limiter-flexible, one limit");
for (const [what, ours] of [
  ["two limits, bucket alone (usage off)", findHeap("zae-limiter, two limits, usage off")],
  ["two limits, bucket and usage", findHeap("zae-limiter, two limits, usage on")],
] as const) {
  verdicts.push({
    what: `heap per key, ${what}, against one limit`,
    ratio: ours.bytes / heapSingle.bytes,
    // The goal is for the bucket alone; the line with usage is there to be seen.
    goal: what.includes("usage off") ? { atMost: 0.5 } : undefined,
    cpuNs: [ours.cpuNs, heapSingle.cpuNs],
  });
}

printVerdicts("Ours against rate-limiter-flexible", verdicts);

/** How many operations of ours a CPU second is enough for, by those of theirs. */
function compare(
  what: string,
  ours: Measured,
  theirs: Measured,
  goal?: { readonly atLeast: number },
): Verdict {
  return {
    what: `CPU, ${what}`,
    ratio: cpuRatio(theirs, ours),
    goal,
    cpuNs: [median(ours.cpuNs), median(theirs.cpuNs)],
  };
}
