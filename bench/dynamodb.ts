/*
 * The DynamoDB backend against the floor, which is one raw conditional UpdateItem, against
 * rate-limiter-flexible and against the original in Python: `npm run bench:dynamodb`. After `--`
 * come `--quick` to see that it works, `--only many,children` to run a part, `--against floor` to
 * leave the other contestants out, and `--on lean` to leave out a transport; `--table` measures a
 * table instead, on AWS or behind an endpoint (dynamodb/on-a-table.ts). One engine, one run;
 * contestants take turns round by round, and what is printed are medians. CPU is all of the client
 * process, user and system; the engine's is not in it. A goal that is missed is printed as MISSED
 * and is not a failure of the benchmark. bench/README.md says how to read it.
 */
import { availableParallelism } from "node:os";
import { printArrivals } from "./dynamodb/arrivals/arrivals.ts";
import { cases } from "./dynamodb/cases.ts";
import { compare } from "./dynamodb/comparison.ts";
import { openField } from "./dynamodb/contestants/field.ts";
import { startEngine, type Engine } from "./dynamodb/engine.ts";
import { printGoals, type Results } from "./dynamodb/goals.ts";
import { printLatencies } from "./dynamodb/latency.ts";
import { measureTable } from "./dynamodb/on-a-table.ts";
import { printProcesses } from "./dynamodb/processes.ts";
import { readSelection, type Selection } from "./dynamodb/selection.ts";

/**
 * A few thousand operations a second take seconds to be compiled well, which costs as much CPU as
 * they do: on the lean transport ours took 416 µs each after 1500 operations on many entities, and
 * 226 µs after 10 000.
 */
const WARM_UP_MS = 3000;

const { quick, parts, against, on, table } = selectionOrExit();
const pace = quick
  ? { rounds: 1, turnMs: 10, warmUp: 16 }
  : { rounds: 7, turnMs: 500, warmUp: 256, warmUpMs: WARM_UP_MS };

/**
 * The SDK is cold for about three seconds in each process, which the first case must not pay for.
 */
const FIRST_WARM_UP = quick ? 16 : 1500;

/** Operations whose bill is looked at: every key of most cases, several times. */
const BILLED = quick ? 32 : 512;

const SIZES = quick
  ? { calls: 16, manyEntities: 16, fewEntities: 2 }
  : { calls: 64, manyEntities: 1000, fewEntities: 8 };

/** A process that does not answer must not keep the benchmark running. */
const WATCHDOG_MS = quick && table === undefined ? 120_000 : 1_800_000;

/** What the tables do not say by themselves. */
const LEGEND = `An acquire takes two limits and commits. The floor takes one token with one conditional UpdateItem; for a child of a parent two at the
same time. rate-limiter-flexible takes one limit, two as a union, and a child and its parent in two calls. The original runs in a Python process
of its own, without its aggregator: its write counter is set back every 500 acquires, while the clocks stand still, so that its fast path is
what is measured. Refusals: ours and the original remember them for 1 s; the peer only in the row that says so. "Sharing off" is ours with a
request for every write.
`;

// It says once per process that it will want a newer Node, which does not matter here; child
// processes inherit it.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] = "true";

setTimeout(() => {
  console.error(`The benchmark did not end within ${WATCHDOG_MS / 1000} s.`);
  process.exit(1);
}, WATCHDOG_MS).unref();

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    interrupted.abort();
    process.exitCode = 130;
    // Child processes are ended when this one exits, which a signal alone does not cause. A table
    // is cleaned up first.
    if (table === undefined) process.exit();
  });

console.log(
  `Node ${process.versions.node}, ${availableParallelism()} cores, ${quick ? "a quick run: it shows that the benchmark works, and its numbers say nothing" : "full run"}\n`,
);
const races = cases(SIZES).filter(({ id }) => parts.has(id));
if (table === undefined) await runOnEngine();
else
  await measureTable({ table, races, on, signal: interrupted.signal }).catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  });

/** Runs everything that was selected on one engine. */
async function runOnEngine(): Promise<void> {
  const engine = await startEngine();
  try {
    if (races.length > 0 || parts.has("alone")) await runField(engine);
    if (parts.has("arrivals"))
      await printArrivals(
        engine.endpointUrl,
        quick
          ? { entities: 16, perSecond: [500], seconds: 0.05, rounds: 1 }
          : { entities: 1000, perSecond: [200, 1000, 3000], seconds: 0.7, rounds: 5 },
      );
    if (parts.has("processes"))
      await printProcesses(
        engine.endpointUrl,
        quick
          ? { processes: [2], seconds: 0.2, warmUpSeconds: 0.1, rounds: 1 }
          : { processes: [2, 8], seconds: 3, warmUpSeconds: 1, rounds: 2 },
      );
  } finally {
    await engine.stop();
  }
}

/** Runs all contestants on the engine, in one case after another. */
async function runField(engine: Engine): Promise<void> {
  const field = await openField(engine.endpointUrl, { against, on, mayInstall: !quick });
  try {
    console.log(LEGEND);
    for (const reason of field.absent) console.log(`!!! SKIPPED !!! ${reason}\n`);
    const results: { -readonly [id in keyof Results]: Results[id] } = {};
    for (const [index, race] of races.entries())
      results[race.id] = await compare(race, field.contestants, {
        pace: index === 0 ? { ...pace, warmUp: FIRST_WARM_UP } : pace,
        billed: BILLED,
      });
    printGoals(results, on);
    if (parts.has("alone"))
      await printLatencies(
        field.contestants,
        quick ? { warmUp: 16, calls: 16 } : { warmUp: 3000, calls: 1000 },
      );
  } finally {
    await field.close();
  }
}

function selectionOrExit(): Selection {
  try {
    return readSelection(process.argv.slice(2));
  } catch (error) {
    console.error((error as Error).message);
    return process.exit(1);
  }
}
