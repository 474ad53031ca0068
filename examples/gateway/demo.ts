import { rmSync } from "node:fs";
import { openRepository } from "zae-limiter/open";
import { addCounts, type CallLog } from "./call-log.ts";
import { runChecks, type Check } from "./checks.ts";
import { Gateway } from "./gateway.ts";
import { showLiveView } from "./live-view.ts";
import { readBack } from "./read-back.ts";
import { storeScenario } from "./scenario.ts";
import { startSecondProcess } from "./second-process.ts";
import type { Paint } from "./text.ts";
import { nowMs } from "./time-and-random.ts";

/** How to run the demo. */
export interface DemoOptions {
  readonly file: string;
  readonly lengthMs: number;
  readonly fault?: string;
  /** Where the live view goes; undefined for none. */
  readonly output: NodeJS.WriteStream | undefined;
  readonly paint: Paint;
}

/** What the demo did, and whether every promise was kept. */
export interface DemoResult {
  readonly ok: boolean;
  readonly granted: number;
  readonly refused: number;
  readonly failed: number;
  readonly unavailable: number;
  readonly unwritten: number;
  /** Calls granted by each process. */
  readonly byProcess: readonly number[];
  readonly checks: readonly Check[];
}

/**
 * Runs the gateway on a fresh file in two processes, and compares what they did with what a fresh
 * repository reads from the file.
 */
export async function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { file, lengthMs, fault, output, paint } = options;
  const url = `sqlite:${file}`;
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
  const repository = await openRepository(url);
  try {
    await storeScenario(repository);
    const startMs = nowMs();
    const endMs = startMs + lengthMs;
    const second = startSecondProcess(url, endMs, fault);
    const gateway = new Gateway(repository);
    const counts = (): ReturnType<typeof second.counts> =>
      addCounts([gateway.counts, second.counts()]);
    const work = Promise.all([gateway.serve(endMs), second.log]);
    const lowest = await showLiveView({ repository, startMs, endMs, work, counts, output, paint });
    const logs = await work;
    await using fresh = await openRepository(url);
    const calls = logs.flatMap((log) => log.calls);
    return buildResult(logs, runChecks({ calls, stored: await readBack(fresh), lowest }));
  } finally {
    await repository.close();
  }
}

function buildResult(logs: readonly CallLog[], checks: readonly Check[]): DemoResult {
  const counts = Object.values(addCounts(logs.map((log) => log.counts)));
  const sum = (getCount: (log: CallLog) => number): number =>
    logs.reduce((total, log) => total + getCount(log), 0);
  return {
    ok: checks.every(({ ok }) => ok),
    granted: counts.reduce((total, { granted }) => total + granted, 0),
    refused: counts.reduce((total, { refused }) => total + refused, 0),
    failed: counts.reduce((total, { failed }) => total + failed, 0),
    unavailable: sum(({ unavailable }) => unavailable),
    unwritten: sum(({ unwritten }) => unwritten),
    byProcess: logs.map(({ calls }) => calls.length),
    checks,
  };
}
