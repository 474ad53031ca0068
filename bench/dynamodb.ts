/*
 * The DynamoDB backend against the floor, which is one raw conditional UpdateItem, against
 * rate-limiter-flexible and against the original in Python: `npm run bench:dynamodb`, or with `--
 * --quick` to see that it works. One engine, one run; contestants take turns round by round, and
 * what is printed are medians. CPU is all of the client process, user and system; the engine's is
 * not in it. A goal that is missed is printed as MISSED and is no failure of the benchmark.
 * docs/benchmarks.md tells how to read it.
 */
import { availableParallelism } from "node:os";
import type { RepositoryStatistics } from "zae-limiter";
import type { Bill } from "./dynamodb/bill.ts";
import { cases, type Case } from "./dynamodb/cases.ts";
import type { Contestant, ContestantId } from "./dynamodb/contestants/contestant.ts";
import { openField } from "./dynamodb/contestants/field.ts";
import { startEngine } from "./dynamodb/engine.ts";
import { perCpuSecond, printGoals, type Results } from "./dynamodb/goals.ts";
import { printProcesses } from "./dynamodb/processes.ts";
import { interleave, median, printTable, whole, type Measured } from "./harness.ts";

/**
 * A few thousand operations a second take seconds to be compiled well, which costs as much CPU as
 * they do: on the lean transport ours took 416 µs each after 1500 operations on many entities, and
 * 226 µs after 10 000.
 */
const WARM_UP_MS = 3000;

const quick = process.argv.includes("--quick");
const pace = quick
  ? { rounds: 1, turnMs: 10, warmUp: 16 }
  : { rounds: 7, turnMs: 500, warmUp: 256, warmUpMs: WARM_UP_MS };

/**
 * The SDK is cold for about three seconds in each process, which the first case must not pay for.
 */
const FIRST_WARM_UP = quick ? 16 : 1500;

/** Operations whose bill is looked at: every key of most cases, several times. */
const BILLED = quick ? 64 : 512;

/** Somebody who does not answer must not keep the benchmark up for ever. */
const WATCHDOG_MS = quick ? 120_000 : 1_200_000;

/** What the tables do not say by themselves. */
const LEGEND = `An acquire takes two limits and commits. The floor takes one token with one conditional UpdateItem; for a child of a parent two at the
same time. rate-limiter-flexible takes one limit, two as a union, and a child and its parent in two calls. The original runs in a Python process
of its own, without its aggregator: its write counter is set back every 500 acquires, while the clocks stand still, so that its fast path is
what is measured. Refusals: ours and the original remember them for 1 s; the peer only in the row that says so.
`;

// It says once per process that it will want a newer Node, which is nobody's concern here; child
// processes inherit it.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] = "true";

setTimeout(() => {
  console.error(`The benchmark did not end within ${WATCHDOG_MS / 1000} s.`);
  process.exit(1);
}, WATCHDOG_MS).unref();
// Whoever has started a process ends it when this one exits, which a signal alone does not tell.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const engine = await startEngine();
try {
  const field = await openField(engine.endpointUrl, { mayInstall: !quick });
  try {
    console.log(
      `Node ${process.versions.node}, ${availableParallelism()} cores, ${quick ? "a quick run: it shows that the benchmark works, and its numbers say nothing" : "full run"}\n`,
    );
    console.log(LEGEND);
    for (const reason of field.absent) console.log(`!!! SKIPPED !!! ${reason}\n`);
    const results: { [id in Case["id"]]?: ReadonlyMap<ContestantId, Measured> } = {};
    for (const race of cases({ manyEntities: quick ? 64 : 1000 }))
      results[race.id] = await compare(race, field.contestants);
    printGoals(results satisfies Results);
  } finally {
    await field.close();
  }
  await printProcesses(
    engine.endpointUrl,
    quick
      ? { processes: [2], seconds: 0.2, warmUpSeconds: 0.1, rounds: 1 }
      : { processes: [2, 8], seconds: 3, warmUpSeconds: 1, rounds: 2 },
  );
} finally {
  await engine.stop();
}

async function compare(
  race: Case,
  contestants: readonly Contestant[],
): Promise<ReadonlyMap<ContestantId, Measured>> {
  const entered = [];
  for (const contestant of contestants) {
    const entry = await contestant.enter(race);
    if (entry !== undefined) entered.push({ id: contestant.id, name: contestant.name, entry });
  }
  const measured = await interleave(
    entered.map(({ name, entry }) => ({
      name,
      run: async (operations: number) => entry.run(operations),
    })),
    race.id === "sequential" ? { ...pace, warmUp: FIRST_WARM_UP } : pace,
  );
  const bills: Bill[] = [];
  for (const { entry } of entered) {
    // What was read from the configuration is believed for a minute on all sides; reading it again
    // is no part of a call's bill.
    await entry.run(BILLED);
    bills.push(await entry.bill(BILLED));
  }
  printCase(race, measured, bills);
  return new Map(entered.map(({ id }, index) => [id, measured[index]!]));
}

function printCase({ title }: Case, measured: readonly Measured[], bills: readonly Bill[]): void {
  printTable(
    [title, "acquires/s", "CPU µs each", "per CPU second", "requests", "write units", "read units"],
    measured.map((result, index) => {
      const { requests, writeUnits, readUnits } = bills[index]!;
      const { name, wallNs, cpuNs } = result;
      const each = [requests, writeUnits, readUnits].map((count) =>
        (count / BILLED).toFixed(count === 0 || count >= BILLED ? 2 : 3),
      );
      return [
        name,
        whole(1e9 / median(wallNs)),
        (median(cpuNs) / 1000).toFixed(1),
        perCpuSecond(result),
        ...each,
      ];
    }),
  );
  const counted = bills.flatMap(({ statistics }, index) =>
    statistics === undefined ? [] : [{ name: measured[index]!.name, statistics }],
  );
  for (const { name, statistics } of counted)
    console.log(`  ${name}, ${BILLED} calls: ${described(statistics)}`);
  console.log("");
}

function described({
  batches,
  batchedOperations,
  refusalsFromMemory,
  writes,
  failedConditions,
  splits,
}: RepositoryStatistics): string {
  const size = batches === 0 ? "" : ` of ${(batchedOperations / batches).toFixed(1)}`;
  const counts = `${writes} writes, ${failedConditions} failed conditions, ${batches} batches${size} (${batchedOperations} operations)`;
  return `${counts}, ${refusalsFromMemory} refusals from memory, ${splits} splits`;
}
