/*
 * npm run chaos                                        every adapter for a minute
 * npm run chaos -- --minutes 10 --adapter fastify      one of them for ten
 * npm run chaos -- --adapter fastify --seed 4711       the rounds from a seed on
 */
import { parseArgs } from "node:util";
import { Chaos, measureHeap } from "./run.ts";
import { ADAPTERS } from "./servers.ts";

/** The heap is first measured after this part of a run, when everything is compiled and cached. */
const WARM_UP = 0.2;

/**
 * How much the heap may grow in the rest of it. Node continues to compile code that becomes hot.
 */
const MOST_GROWTH_BYTES = 1_000_000;

const { values } = parseArgs({
  options: {
    adapter: { type: "string" },
    minutes: { type: "string", default: "1" },
    seed: { type: "string", default: "1" },
  },
});
const runMs = Number(values.minutes) * 60_000;
for (const adapter of values.adapter?.split(",") ?? Object.keys(ADAPTERS)) await run(adapter);

async function run(adapter: string): Promise<void> {
  const chaos = await Chaos.start(adapter);
  const startMs = performance.now();
  let warmHeap: number | undefined;
  for (let seed = Number(values.seed); performance.now() - startMs < runMs; seed += 1) {
    const problems = await chaos.round(seed);
    if (problems.length > 0) {
      fail(
        adapter,
        `${problems.join("\n")}\nAgain: npm run chaos -- --adapter ${adapter} --seed ${seed}`,
      );
      break;
    }
    if (performance.now() - startMs > runMs * WARM_UP) warmHeap ??= measureHeap();
  }
  const heap = measureHeap();
  warmHeap ??= heap;
  await chaos.stop();
  const { rounds, requests, granted, ended, completed, refused } = chaos.totals;
  console.log(
    `${adapter.padEnd(8)} ${rounds} rounds, ${requests} requests: ${granted} leases granted, ${ended} ended ` +
      `(${completed} completed), ${refused} refused; heap ${inMegabytes(warmHeap)} MB, at the end ${inMegabytes(heap)} MB`,
  );
  if (heap - warmHeap > MOST_GROWTH_BYTES) fail(adapter, "the heap has grown");
}

function fail(adapter: string, problem: string): void {
  process.stderr.write(`FAILED ${adapter}: ${problem}\n`);
  process.exitCode = 1;
}

function inMegabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(2);
}
