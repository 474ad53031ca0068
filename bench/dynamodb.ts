/*
 * The DynamoDB backend against the floor, one raw conditional UpdateItem, and against rate-limiter-flexible's: `npm run bench:dynamodb`, or
 * with `-- --quick` to see that it works. One operation of ours is acquire and commit of two limits; one of the peer's is a consume of one
 * limit, or of a union of two. All share one client and one engine; rounds are interleaved and medians are printed. CPU is this process's:
 * the engine's is not in it.
 */
import { openContestants, sharedClient, type Run, type SharedClient } from "./dynamodb-contestants.ts";
import { startEngine } from "./dynamodb-engine.ts";
import { interleave, median, printCosts, printTable, printVerdicts, speedup, type Measured, type Verdict } from "./harness.ts";

const quick = process.argv.includes("--quick");
const pace = quick ? { rounds: 3, turnMs: 150, warmUp: 100 } : { rounds: 9, turnMs: 1000, warmUp: 500 };

/** Operations whose bill is looked at: every key, a few times. */
const BILLED = quick ? 128 : 512;

const engine = await startEngine();
try {
  const shared = sharedClient(engine.endpointUrl);
  const contestants = await openContestants(shared);
  await printBills(shared, contestants);
  const verdicts: Verdict[] = [];
  for (const concurrency of [1, 64]) {
    const title = concurrency === 1 ? "one call after another" : `${concurrency} calls at once`;
    const racing = Object.entries(contestants).map(([name, run]) => ({ name, run: (operations: number) => run(operations, concurrency) }));
    const measured = await interleave(racing, pace);
    printCosts(title, measured);
    verdicts.push(...judged(title, measured));
  }
  printVerdicts(`Ours, two limits, against the others (Node ${process.versions.node})`, verdicts);
  shared.client.destroy();
} finally {
  await engine.stop();
}

async function printBills(shared: SharedClient, contestants: Readonly<Record<string, Run>>): Promise<void> {
  const rows: string[][] = [];
  for (const [name, run] of Object.entries(contestants)) {
    // Once unmeasured: the items exist then, and the first calls are no part of the bill.
    await run(BILLED, 1);
    const { requests, writeUnits, readUnits } = await shared.measured(() => run(BILLED, 1));
    rows.push([name, ...[requests, writeUnits, readUnits].map((count) => (count / BILLED).toFixed(2))]);
  }
  printTable(["what one call is billed", "requests", "write units", "read units"], rows);
}

function judged(title: string, [floor, ours, single, union]: readonly Measured[]): readonly Verdict[] {
  const compare = (name: string, theirs: Measured): readonly Verdict[] => {
    const cpuNs = [median(ours!.cpuNs), median(theirs.cpuNs)] as const;
    const cpuRatio = median(ours!.cpuNs.map((cpu, round) => cpu / theirs.cpuNs[round]!));
    return [
      { what: `CPU against ${name}, ${title}`, ratio: cpuRatio, goal: undefined, cpuNs },
      { what: `speed against ${name}, ${title}`, ratio: speedup(ours!, theirs), goal: undefined, cpuNs },
    ];
  };
  return [...compare("the floor", floor!), ...compare("one limit", single!), ...compare("the union", union!)];
}
