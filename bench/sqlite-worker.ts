/*
 * One of two processes on one file. Says when it is warm, works for a while on request, and
 * reports. Usage: node sqlite-worker.js CONTESTANT FILE CONCURRENCY MILLISECONDS
 */
import { CONTESTANTS } from "./sqlite-contestants.ts";
import { measureTime } from "./harness.ts";

/** What one process did. */
export interface WorkerReport {
  readonly operations: number;
  readonly wallNs: number;
  readonly cpuNs: number;
}

const [name, path, concurrency, milliseconds] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
];

/** Operations between two looks at the clock. */
const STEP = 200;

/** Operations before the race: fewer leave half of the code to the interpreter. */
const WARM_UP = 6000;

const contestant = await CONTESTANTS[name]!(path);
await contestant.run(WARM_UP, Number(concurrency));
process.send?.("warm");
process.once("message", () => void race());

async function race(): Promise<void> {
  let operations = 0;
  const untilMs = performance.now() + Number(milliseconds);
  const cost = await measureTime(async () => {
    for (; performance.now() < untilMs; operations += STEP)
      await contestant.run(STEP, Number(concurrency));
  });
  await contestant.close();
  process.send?.({ operations, ...cost } satisfies WorkerReport, () => process.disconnect());
}
