/*
 * The memory backend against rate-limiter-flexible's: `npm run bench`, or `npm run bench --
 * --quick` to see that it works. One operation of ours is acquire and commit; one of the peer's is
 * a consume. One limit is compared with one limit, two with a union of two.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { HeapPerKey } from "./heap-per-key.ts";
import {
  cpuRatio,
  interleave,
  median,
  printCosts,
  printTable,
  printVerdicts,
  whole,
  type Contestant,
  type Measured,
  type Verdict,
} from "./harness.ts";
import { CONTESTANTS, keyAt, type ContestantName } from "./memory-contestants.ts";

// A quick run shows that the benchmark works; it ends before the code is warm, so its numbers say
// nothing.
const quick = process.argv.includes("--quick");
const MANY_KEYS = quick ? 1000 : 100_000;
const pace = quick ? { rounds: 1, turnMs: 20 } : { rounds: 11, turnMs: 150 };
if (quick)
  console.log("A quick run: it shows that the benchmark works, and its numbers say nothing.\n");

const verdicts: Verdict[] = [];
for (const keys of [1, MANY_KEYS]) {
  const title = keys === 1 ? "1 key" : `${whole(keys)} keys`;
  const measured = await interleave(await contestantsOver(keys), pace);
  printCosts(title, measured);
  const named = (name: ContestantName): Measured => measured.find((one) => one.name === name)!;
  for (const usage of ["usage on", "usage off"] as const) {
    const one = named(`zae-limiter, one limit, ${usage}`);
    const two = named(`zae-limiter, two limits, ${usage}`);
    const single = named("rate-limiter-flexible, one limit");
    const union = named("rate-limiter-flexible, union of two");
    verdicts.push(
      compared(`${title}, ${usage}: one limit against one limit`, one, single, { atLeast: 1 }),
      compared(`${title}, ${usage}: two limits against a union`, two, union, { atLeast: 3 }),
      // What a limiter can save at most; it is there to be seen.
      compared(
        `${title}, ${usage}: one limit against a pair of promises`,
        one,
        named("a pair of awaited promises"),
      ),
    );
  }
}

const heap = (Object.keys(CONTESTANTS) as ContestantName[])
  .filter((name) => name !== "a pair of awaited promises")
  .map(heapPerKey);
printTable(
  [`Heap, ${whole(MANY_KEYS)} keys`, "bytes/key"],
  heap.map(({ name, bytes }) => [name, whole(bytes)]),
);
const heapOf = (name: ContestantName): HeapPerKey => heap.find((one) => one.name === name)!;
const heapSingle = heapOf("rate-limiter-flexible, one limit");
for (const [what, ours] of [
  ["two limits, bucket alone (usage off)", heapOf("zae-limiter, two limits, usage off")],
  ["two limits, bucket and usage", heapOf("zae-limiter, two limits, usage on")],
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
function compared(
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

/**
 * All contestants, each with its own state, over the same keys, which all exist before the first
 * round.
 */
async function contestantsOver(keys: number): Promise<readonly Contestant[]> {
  const list = Array.from({ length: keys }, (_, index) => keyAt(index));
  const all: Contestant[] = [];
  for (const [name, open] of Object.entries(CONTESTANTS)) {
    const run = await open();
    const next = scattered(list);
    await run(keys, next);
    all.push({ name, run: (operations) => run(operations, next) });
  }
  return all;
}

/**
 * Answers the keys in a scattered order, as callers come: neither side may profit from neighbours
 * in memory.
 */
function scattered(keys: readonly string[]): () => string {
  // A prime that does not divide the number of keys visits each of them once per tour.
  const STRIDE = 7919;
  let at = 0;
  return () => {
    at = (at + STRIDE) % keys.length;
    return keys[at]!;
  };
}

/** Measured in a fresh process, where nothing else was ever on the heap. */
function heapPerKey(name: ContestantName): HeapPerKey {
  const script = fileURLToPath(new URL("heap-per-key.js", import.meta.url));
  const answer = execFileSync(process.execPath, ["--expose-gc", script, name, String(MANY_KEYS)], {
    encoding: "utf8",
  });
  return JSON.parse(answer) as HeapPerKey;
}
