/*
 * One contestant in a process of its own, as a program has one limiter: in one process for all,
 * each paid for the objects and the keys of the others. Each message is a number of operations, and
 * is answered with what they cost. Usage: node memory-worker.js CONTESTANT KEYS
 */
import { measureTime } from "./harness.ts";
import { keyAt } from "./memory-contestants.ts";
import { ALL_CONTESTANTS } from "./quotas/memory-contestants.ts";

const [name, count] = process.argv.slice(2) as [keyof typeof ALL_CONTESTANTS, string];
const keys = Array.from({ length: Number(count) }, (_, index) => keyAt(index));
const next = scatterKeys();
const run = await ALL_CONTESTANTS[name]();
// All keys exist before the first round.
await run(keys.length, next);
process.on("message", (operations: number) => {
  void measureTime(() => run(operations, next)).then((cost) => process.send?.(cost));
});

/**
 * Answers the keys in a scattered order, as callers come: neither side may profit from neighbours
 * in memory.
 */
function scatterKeys(): () => string {
  // A prime that does not divide the number of keys visits each of them once per tour.
  const STRIDE = 7919;
  let at = 0;
  return () => {
    at = (at + STRIDE) % keys.length;
    return keys[at]!;
  };
}
