// Runs in a fresh process with --expose-gc: `node --expose-gc heap-per-key.js <contestant> <keys>`.
// Touches every key once and prints, as JSON, the heap that each one left behind. The keys are made
// on the way and held by nothing else, so what a limiter keeps of them counts.
import { measureTime } from "./harness.ts";
import { keyAt } from "./memory-contestants.ts";
import { ALL_CONTESTANTS } from "./quotas/memory-contestants.ts";

/** What this process prints. */
export interface HeapPerKey {
  readonly name: string;
  readonly bytes: number;
  readonly cpuNs: number;
}

const WARM_UP_KEYS = 2000;

const [name = "", count = "0"] = process.argv.slice(2);
const keys = Number(count);
const run = await ALL_CONTESTANTS[name as keyof typeof ALL_CONTESTANTS]();
let made = 0;
const next = (): string => keyAt(made++);

// The first keys bring the code, its types and the first tables into being; they are not what a key
// costs.
await run(WARM_UP_KEYS, next);
const before = measureHeap();
const { cpuNs } = await measureTime(() => run(keys, next));
const bytes = measureHeap() - before;
// One more, so that nothing of it could be collected before it was counted.
await run(1, next);
const answer: HeapPerKey = { name, bytes: bytes / keys, cpuNs: cpuNs / keys };
console.log(JSON.stringify(answer));

function measureHeap(): number {
  if (globalThis.gc === undefined) throw new Error("run with --expose-gc");
  // Two collections: the first may leave what finalizers and weak references still hold.
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
}
