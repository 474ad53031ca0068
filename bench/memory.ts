/*
 * The memory backend against rate-limiter-flexible's: `npm run bench`, or `npm run bench --
 * --quick` to see that it works. One operation of ours is acquire and commit of two limits; one of
 * the peer's is a consume of one limit, or of a union of two.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { HeapPerKey } from "./heap-per-key.ts";
import {
  interleave,
  median,
  printCosts,
  printTable,
  printVerdicts,
  speedup,
  whole,
  type Contestant,
  type Verdict,
} from "./harness.ts";
import { CONTESTANTS, keyAt } from "./memory-contestants.ts";

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
  const [usageOn, usageOff, single, union] = measured;
  for (const [what, ours] of [
    [`${title}, usage on`, usageOn!],
    [`${title}, usage off`, usageOff!],
  ] as const) {
    for (const [peer, theirs, atLeast] of [
      ["one limit", single!, 1],
      ["union of two", union!, 3],
    ] as const) {
      verdicts.push({
        what: `speed, ${what}, against ${peer}`,
        ratio: speedup(ours, theirs),
        goal: { atLeast },
        cpuNs: [median(ours.cpuNs), median(theirs.cpuNs)],
      });
    }
  }
}

const [heapOn, heapOff, heapSingle, heapUnion] = Object.keys(CONTESTANTS).map(heapPerKey);
printTable(
  [`Heap, ${whole(MANY_KEYS)} keys`, "bytes/key"],
  [heapOn!, heapOff!, heapSingle!, heapUnion!].map(({ name, bytes }) => [name, whole(bytes)]),
);
for (const [what, ours] of [
  ["bucket alone (usage off)", heapOff!],
  ["bucket and usage", heapOn!],
] as const) {
  verdicts.push({
    what: `heap per key, ${what}, against one limit`,
    ratio: ours.bytes / heapSingle!.bytes,
    // The goal is for the bucket alone; the line with usage is there to be seen.
    goal: ours === heapOff ? { atMost: 0.5 } : undefined,
    cpuNs: [ours.cpuNs, heapSingle!.cpuNs],
  });
}

printVerdicts("Ours against rate-limiter-flexible", verdicts);

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
function heapPerKey(name: string): HeapPerKey {
  const script = fileURLToPath(new URL("heap-per-key.js", import.meta.url));
  const answer = execFileSync(process.execPath, ["--expose-gc", script, name, String(MANY_KEYS)], {
    encoding: "utf8",
  });
  return JSON.parse(answer) as HeapPerKey;
}
