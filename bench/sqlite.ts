/*
 * The SQLite backend against rate-limiter-flexible's: `npm run bench:sqlite`, or with `-- --quick`
 * to see that it works. One operation of ours is acquire and commit of one limit or of two, with
 * usage recorded; one of the peer's is a consume of one limit, or of a union of two. Both sides use
 * the same driver and the same modes; rounds are interleaved and medians are printed.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import {
  cpuRatio,
  interleave,
  median,
  printCosts,
  printVerdicts,
  speedup,
  type Contestant,
  type Measured,
  type Verdict,
} from "./harness.ts";
import { CONTESTANTS, temporaryFile, type Opened } from "./sqlite-contestants.ts";
import type { WorkerReport } from "./sqlite-worker.ts";

const quick = process.argv.includes("--quick");
const pace = quick ? { rounds: 1, turnMs: 20, warmUp: 50 } : { rounds: 7, turnMs: 800 };

const verdicts: Verdict[] = [];
for (const concurrency of [1, 64]) {
  const title = `one process, ${concurrency === 1 ? "one call after another" : `${concurrency} calls at once`}`;
  judge(title, await oneProcess(concurrency));
}
judge("two processes, 16 calls at once each", await twoProcesses(16));
printVerdicts(`Ours against rate-limiter-flexible (Node ${process.versions.node})`, verdicts);

function judge(title: string, measured: readonly Measured[]): void {
  printCosts(title, measured);
  const [one, two, single, union] = measured as readonly [Measured, Measured, Measured, Measured];
  verdicts.push(
    {
      what: `CPU, two limits against the union, ${title}`,
      ratio: cpuRatio(two, union),
      goal: { atMost: 0.33 },
      cpuNs: [median(two.cpuNs), median(union.cpuNs)],
    },
    {
      what: `speed, one limit against one limit, ${title}`,
      ratio: speedup(one, single),
      goal: { atLeast: 1 },
      cpuNs: [median(one.cpuNs), median(single.cpuNs)],
    },
  );
}

async function oneProcess(concurrency: number): Promise<readonly Measured[]> {
  const file = temporaryFile();
  const opened: Opened[] = [];
  try {
    const contestants: Contestant[] = [];
    for (const [name, open] of Object.entries(CONTESTANTS)) {
      const contestant = await open(`${file.path}.${contestants.length}`);
      opened.push(contestant);
      contestants.push({ name, run: (operations) => contestant.run(operations, concurrency) });
    }
    return await interleave(contestants, pace);
  } finally {
    for (const contestant of opened) await contestant.close();
    file.remove();
  }
}

/**
 * Each round each contestant gets a fresh file and two fresh processes, which start together when
 * both are warm.
 */
async function twoProcesses(concurrency: number): Promise<readonly Measured[]> {
  const measured = Object.keys(CONTESTANTS).map((name) => ({
    name,
    wallNs: [] as number[],
    cpuNs: [] as number[],
  }));
  for (let round = 0; round < Math.min(pace.rounds, 3); round += 1) {
    for (const { name, wallNs, cpuNs } of measured) {
      const reports = await pair(name, concurrency);
      const operations = reports.reduce((sum, report) => sum + report.operations, 0);
      wallNs.push(Math.max(...reports.map((report) => report.wallNs)) / operations);
      cpuNs.push(reports.reduce((sum, report) => sum + report.cpuNs, 0) / operations);
    }
  }
  return measured;
}

async function pair(name: string, concurrency: number): Promise<readonly WorkerReport[]> {
  const file = temporaryFile();
  try {
    // The file exists before both open it: the peer cannot take two processes that create it
    // together.
    await (await CONTESTANTS[name]!(file.path)).close();
    const children = [1, 2].map(() =>
      fork(
        fileURLToPath(new URL("sqlite-worker.js", import.meta.url)),
        [name, file.path, String(concurrency), String(pace.turnMs * 2)],
        {
          execArgv: ["--disable-warning=ExperimentalWarning"],
        },
      ),
    );
    await Promise.all(children.map(nextMessage));
    const reports = children.map(nextMessage);
    for (const child of children) child.send("go");
    return (await Promise.all(reports)) as readonly WorkerReport[];
  } finally {
    file.remove();
  }
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const early = once(child, "exit").then(([code]) =>
    Promise.reject(new Error(`a process ended early with ${code}`)),
  );
  const [message] = (await Promise.race([once(child, "message"), early])) as [unknown];
  return message;
}
