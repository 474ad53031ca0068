/*
 * Several processes on one hot bucket, with the adaptive tick, without it, and with both tick
 * and shards. A bucket that others refill is the one place where processes disturb each other.
 * Takes from a bucket that holds enough do not: only one that is nearly empty or nearly full is
 * refilled all the while. So its rate is set a little below what the same processes were just seen
 * to take from a bucket without end, and its burst to a fraction of a second: the balance stays
 * near the ground.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Limit } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { median, printTable, whole } from "../harness.ts";
import { NEVER_REACHED } from "./cases.ts";
import type { Assignment, WorkerReport } from "./processes-worker.ts";

/** How long and how often each setting is looked at. */
export interface ProcessesPace {
  /** How many processes there are, in one setting after another. */
  readonly processes: readonly number[];
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly rounds: number;
}

interface Setting {
  readonly processes: number;
  readonly mode: keyof typeof MODES;
}

interface Total {
  readonly limit: number;
  readonly reports: readonly WorkerReport[];
}

const STACK = "bench-processes";
/** Cold code would make the offered load look smaller than it is, so there are two. */
const WARM_UPS = ["cold", "warm"] as const;
const RATE_OF_OFFERED = 0.95;
const BURST_SECONDS = 0.25;
/** A process that says nothing for so long is not going to. */
const REPORT_TIMEOUT_MS = 60_000;

const MODES = {
  tick: "adaptive tick",
  "no-tick": "without the tick",
  shards: "adaptive tick, shards",
};

/** Measures every setting, taking turns, and prints the table. */
export async function printProcesses(endpointUrl: string, pace: ProcessesPace): Promise<void> {
  const repository = await DynamoRepository.open("bench", {
    endpointUrl,
    stack: STACK,
    stream: false,
  });
  try {
    await repository.setSystemDefaults([Limit.perSecond("rps", NEVER_REACHED)]);
    const totals = new Map<Setting, Total[]>(settings(pace).map((setting) => [setting, []]));
    for (let round = 0; round < pace.rounds; round += 1)
      for (const [setting, total] of totals)
        total.push(await together(repository, setting, { endpointUrl, pace, round }));
    printTable(
      [
        "processes on one hot bucket, lean",
        "limit/s",
        "grants/s",
        "refused",
        "gave up",
        "failed writes",
        "writes per grant",
        "median ms",
        "worst ms",
      ],
      [...totals].map(([setting, total]) => row(setting, total, pace.seconds)),
    );
  } finally {
    await repository.close();
  }
}

function settings({ processes }: ProcessesPace): readonly Setting[] {
  return processes.flatMap((count) =>
    (["tick", "no-tick", "shards"] as const).map((mode) => ({ processes: count, mode })),
  );
}

async function together(
  repository: DynamoRepository,
  { processes, mode }: Setting,
  {
    endpointUrl,
    pace,
    round,
  }: { readonly endpointUrl: string; readonly pace: ProcessesPace; readonly round: number },
): Promise<Total> {
  const worker = fileURLToPath(new URL("processes-worker.js", import.meta.url));
  const children = Array.from({ length: processes }, () =>
    fork(worker, [endpointUrl, STACK, mode], { execArgv: [] }),
  );
  const kill = (): void => children.forEach((child) => void child.kill("SIGKILL"));
  process.once("exit", kill);
  try {
    await Promise.all(children.map(nextMessage));
    const name = `${processes}-${mode}-${round}`;
    let offered = 0;
    for (const warmUp of WARM_UPS) {
      const reports = await assign(children, {
        entityId: `${warmUp}-${name}`,
        seconds: pace.warmUpSeconds,
      });
      offered = sumGrants(reports) / pace.warmUpSeconds;
    }
    const limit = Math.max(1, Math.round(offered * RATE_OF_OFFERED));
    const burst = Math.max(1, Math.round(limit * BURST_SECONDS));
    await repository.setLimits(`hot-${name}`, [Limit.perSecond("rps", limit, { burst })], {
      resource: "gpt-4",
    });
    return {
      limit,
      reports: await assign(children, { entityId: `hot-${name}`, seconds: pace.seconds }),
    };
  } finally {
    for (const child of children) if (child.connected) child.disconnect();
    kill();
    process.off("exit", kill);
  }
}

async function assign(
  children: readonly ChildProcess[],
  assignment: Assignment,
): Promise<readonly WorkerReport[]> {
  const reports = children.map(nextMessage);
  for (const child of children) child.send(assignment);
  return (await Promise.all(reports)) as readonly WorkerReport[];
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  const timeout = setTimeout(() => over.abort(), REPORT_TIMEOUT_MS);
  try {
    const early = once(child, "exit", { signal: over.signal }).then(([code]) =>
      Promise.reject(new Error(`a process ended early with ${code}`)),
    );
    const [message] = (await Promise.race([
      once(child, "message", { signal: over.signal }),
      early,
    ])) as [unknown];
    return message;
  } finally {
    clearTimeout(timeout);
    over.abort();
  }
}

function row(
  { processes, mode }: Setting,
  totals: readonly Total[],
  seconds: number,
): readonly string[] {
  const reports = totals.flatMap((total) => total.reports);
  const sum = (count: (report: WorkerReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0);
  const grants = sumGrants(reports);
  const writes = sum((report) => report.writes);
  const latenciesMs = reports.flatMap((report) => report.latenciesMs);
  const asked = grants + sum((report) => report.refusals + report.unavailable);
  return [
    `${processes} processes, ${MODES[mode]}`,
    whole(median(totals.map((total) => total.limit))),
    whole(grants / (seconds * totals.length)),
    percent(sum((report) => report.refusals) / asked),
    whole(sum((report) => report.unavailable)),
    percent(sum((report) => report.failedWrites) / writes),
    (writes / grants).toFixed(2),
    median(latenciesMs).toFixed(1),
    whole(latenciesMs.reduce((worst, latencyMs) => Math.max(worst, latencyMs), 0)),
  ];
}

function sumGrants(reports: readonly WorkerReport[]): number {
  return reports.reduce((total, { grants }) => total + grants, 0);
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}
