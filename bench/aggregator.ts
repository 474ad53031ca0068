/*
 * The stream aggregator against the original's in Python: `npm run bench:aggregator`, or with `--
 * --quick` to see that it works. One engine, one run; contestants take turns round by round, and
 * what is printed are medians. CPU is all of the process that aggregates, user and system; the
 * engine's is not in it, nor is what made the records. A goal that is missed is printed as MISSED
 * and is not a failure of the benchmark. bench/README.md says how to read it.
 */
import { availableParallelism, loadavg } from "node:os";
import { BucketRecords } from "./aggregator/bucket-records.ts";
import type { Case, Contestant, WriteBill } from "./aggregator/contestant.ts";
import { printMemory } from "./aggregator/memory.ts";
import { original } from "./aggregator/original.ts";
import { ours } from "./aggregator/ours.ts";
import { BillMeter } from "./dynamodb/bill.ts";
import { startEngine } from "./dynamodb/engine.ts";
import { openLeanTransport, openSdkClient } from "./dynamodb/transports.ts";
import {
  interleave,
  median,
  printTable,
  printVerdicts,
  whole,
  type Measured,
  type Verdict,
} from "./harness.ts";

const quick = process.argv.includes("--quick");
const pace = quick
  ? { rounds: 1, turnMs: 50, warmUp: 100 }
  : { rounds: 5, turnMs: 1000, warmUp: 200, warmUpMs: 2000 };
/** How many records are billed. */
const BILLED = quick ? 100 : 2000;
const WATCHDOG_MS = 900_000;
/** For the lean transport, which is what the Lambda function has. */
const CPU_GOAL = 5;

const CASES: readonly Case[] = [
  { id: "hot", title: "one hot entity, batches of 100", entities: 1, batch: 100 },
  {
    id: "many",
    title: "many entities in turn, batches of 100",
    entities: quick ? 100 : 1000,
    batch: 100,
  },
];

const LEGEND = `A record is that of an acquire of two limits. Ours sums it into three windows, hourly, daily and monthly; the original, as it does by
default, into the first two. Both get their records from memory, in the format of their own table, as Lambda passes them in.
`;

// It says once per process that it will want a newer Node, which does not matter here.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] = "true";
setTimeout(() => {
  console.error(`The benchmark did not end within ${WATCHDOG_MS / 1000} s.`);
  process.exit(1);
}, WATCHDOG_MS).unref();
// Child processes are ended when this one exits, which a signal alone does not cause.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

const engine = await startEngine();
const client = openSdkClient(engine);
const lean = await openLeanTransport(engine);
const contestants: Contestant[] = [];
try {
  console.log(
    `Node ${process.versions.node}, ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}, ${quick ? "a quick run: it shows that the benchmark works, and its numbers say nothing" : "full run"}\n`,
  );
  console.log(LEGEND);
  contestants.push(...(await onBoth()));
  const python = await original(engine.endpointUrl, { mayInstall: !quick });
  if ("missing" in python) console.log(`!!! SKIPPED !!! the original: ${python.missing}\n`);
  else contestants.push(python);
  const verdicts: Verdict[] = [];
  for (const race of CASES) verdicts.push(...(await compare(race)));
  printVerdicts("CPU of a record, the original : ours", verdicts);
  await printWrites();
  await printMemory(engine.endpointUrl, quick ? 3000 : 200_000);
} finally {
  for (const contestant of contestants) await contestant.close();
  lean.close();
  client.destroy();
  await engine.stop();
}

async function onBoth(): Promise<readonly Contestant[]> {
  const meter = new BillMeter();
  meter.watch(client);
  const open = async (stack: string): Promise<BucketRecords> => BucketRecords.open(lean, stack);
  return [
    await ours({
      id: "ours-lean",
      name: "zae-limiter, lean transport",
      stack: "bench-lean",
      records: await open("bench-lean"),
      meter,
      connection: { transport: meter.wrap(lean) },
    }),
    await ours({
      id: "ours-sdk",
      name: "zae-limiter, SDK",
      stack: "bench-sdk",
      records: await open("bench-sdk"),
      meter,
      connection: { client },
    }),
  ];
}

async function compare(race: Case): Promise<readonly Verdict[]> {
  const entered = [];
  for (const contestant of contestants) {
    const { id, name } = contestant;
    entered.push({ id, name, entry: await contestant.enter(race) });
  }
  const measured = await interleave(
    entered.map(({ name, entry }) => ({
      name,
      run: async (records: number) => entry.run(records),
    })),
    pace,
  );
  const bills: WriteBill[] = [];
  for (const { entry } of entered) bills.push(await entry.bill(BILLED));
  printTable(
    [race.title, "records/s", "CPU µs each", "requests each", "write units each"],
    measured.map(({ name, wallNs, cpuNs }, index) => [
      name,
      whole(1e9 / median(wallNs)),
      (median(cpuNs) / 1000).toFixed(1),
      (bills[index]!.requests / BILLED).toFixed(3),
      (bills[index]!.writeUnits / BILLED).toFixed(3),
    ]),
  );
  const byId = new Map(entered.map(({ id }, index) => [id, measured[index]!]));
  const theirs = byId.get("original");
  return theirs === undefined
    ? []
    : [
        verdict(`${race.title}, lean`, byId.get("ours-lean")!, theirs, CPU_GOAL),
        verdict(`${race.title}, SDK`, byId.get("ours-sdk")!, theirs),
      ];
}

function verdict(what: string, mine: Measured, theirs: Measured, atLeast?: number): Verdict {
  const ratios = mine.cpuNs.map((cpuNs, round) => theirs.cpuNs[round]! / cpuNs);
  return {
    what,
    ratio: median(ratios),
    goal: atLeast === undefined ? undefined : { atLeast },
    cpuNs: [median(mine.cpuNs), median(theirs.cpuNs)],
  };
}

/** What snapshots cost for each record, by the size of batches: the guide's costs come from it. */
async function printWrites(): Promise<void> {
  const rows: (readonly string[])[] = [];
  for (const batch of quick ? [100] : [100, 1000])
    for (const entities of quick ? [1, 20] : [1, 20, 200, 1000]) {
      const entry = await contestants[0]!.enter({ id: "many", title: "", entities, batch });
      const records = Math.max(2 * batch, entities);
      // The first time, snapshots are created, which their indexes add to.
      await entry.run(records);
      const { requests, writeUnits } = await entry.bill(records);
      rows.push([
        `batches of ${batch}, ${whole(entities)} entities`,
        (requests / records).toFixed(4),
        (writeUnits / records).toFixed(4),
      ]);
    }
  printTable(["ours, writes for each record", "requests", "write units"], rows);
}
