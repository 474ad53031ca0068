/*
 * Several processes on one file, for ten seconds each number of them: what was granted stays within
 * the bound, usage equals consumption, no call waits for the lock longer than its deadline, and no
 * driver call blocks for it. Exits 1 when something does not hold. Usage: node processes.js
 * [--seconds 10] [--processes 2,4]
 */
import { fork, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ENTITIES, LIMIT, LOCK_TIMEOUT_MS, type Report } from "./worker.ts";

/** A driver that waits for the lock is slow each time; a machine that stands still, only once. */
const LARGEST_SHARE_OF_SLOW_BUSY_CALLS = 0.01;

/** Timers fire a little late, and the last attempt takes its time. */
const LATE_MS = 500;

/** A checkpoint follows every 4 MB; readers of other processes may delay it. */
const LARGEST_WAL_BYTES = 64 * 1024 * 1024;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "10" },
    processes: { type: "string", default: "2,4" },
  },
});
const problems: string[] = [];
for (const count of values.processes.split(",").map(Number))
  await race(count, Number(values.seconds));
for (const problem of problems) console.error(`FAILED: ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;

async function race(count: number, seconds: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-processes-"));
  const path = join(folder, "limits.db");
  try {
    const repository = await SqliteRepository.open(path);
    await repository.setSystemDefaults([LIMIT]);
    await repository.createEntity("project");
    await repository.createEntity("warm", { parentId: "project", cascade: true });
    const wal = watchWal(path);
    const workers = await Promise.all(
      Array.from({ length: count }, (_, index) => readyWorker(path, seconds, index + 1)),
    );
    const reports = await Promise.all(workers.map(requestReport));
    const largestWal = wal.stop();
    await verify(repository, count, reports);
    expect(
      largestWal <= LARGEST_WAL_BYTES,
      `${count} processes: the WAL grew to ${largestWal} bytes`,
    );
    print(count, seconds, reports, largestWal);
    await repository.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function readyWorker(path: string, seconds: number, seed: number): Promise<ChildProcess> {
  const child = fork(new URL("worker.js", import.meta.url), [path, String(seconds), String(seed)], {
    env: { ...process.env, NODE_NO_WARNINGS: "1" },
  });
  await nextMessage(child);
  return child;
}

async function requestReport(worker: ChildProcess): Promise<Report> {
  worker.send("go");
  return (await nextMessage(worker)) as Report;
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once("message", resolve);
    child.once("exit", (code, signal) =>
      reject(new Error(`a process ended early: ${code ?? signal}`)),
    );
    child.once("error", reject);
  });
}

async function verify(
  repository: SqliteRepository,
  count: number,
  reports: readonly Report[],
): Promise<void> {
  const firstMs = Math.min(...reports.map((report) => report.firstMs));
  for (const entityId of ENTITIES) {
    const answered = sum(reports.map(({ consumed }) => consumed[entityId] ?? 0));
    const requests = sum(reports.map((report) => report.requests[entityId] ?? 0));
    const [bucket] = await repository.getBuckets(entityId);
    const usage = await repository.getUsageSummary({ entityId, window: "monthly" });
    const name = `${count} processes, ${entityId}`;
    expect(
      bucket?.totalConsumedMilli === answered * 1000,
      `${name}: ${bucket?.totalConsumedMilli} stored, ${answered * 1000} answered`,
    );
    expect(
      usage.total["tps"] === answered,
      `${name}: usage is ${usage.total["tps"]}, consumption ${answered}`,
    );
    expect(
      usage.requests === requests,
      `${name}: ${usage.requests} requests stored, ${requests} answered`,
    );
    if (bucket === undefined) continue;
    // Debt was taken by settlements, which may; everything else has to fit what the bucket held and
    // earned.
    const earnedMilli =
      ((bucket.lastRefillMs - firstMs) * bucket.refillAmountMilli) / bucket.refillPeriodMs;
    const boundMilli = bucket.capacityMilli + earnedMilli + Math.max(0, -bucket.tokensMilli);
    expect(
      bucket.totalConsumedMilli <= boundMilli,
      `${name}: consumed ${bucket.totalConsumedMilli} of at most ${boundMilli}`,
    );
  }
  const longestCallMs = Math.max(...reports.map((report) => report.longestCallMs));
  const busyCalls = sum(reports.map((report) => report.busyCalls));
  const slowBusyCalls = sum(reports.map((report) => report.slowBusyCalls));
  expect(
    longestCallMs <= LOCK_TIMEOUT_MS + LATE_MS,
    `${count} processes: a call took ${longestCallMs} ms`,
  );
  expect(
    slowBusyCalls <= busyCalls * LARGEST_SHARE_OF_SLOW_BUSY_CALLS,
    `${count} processes: ${slowBusyCalls} of ${busyCalls} driver calls that ended with busy had waited`,
  );
  expect(busyCalls > 0, `${count} processes: the lock was never contended, so nothing was shown`);
  expect(
    reports.every(({ granted, refused }) => granted > 0 && refused > 0),
    `${count} processes: one was never granted or never refused`,
  );
}

function print(
  count: number,
  seconds: number,
  reports: readonly Report[],
  largestWal: number,
): void {
  const total = (of: (report: Report) => number): number => sum(reports.map(of));
  const longest = (of: (report: Report) => number): string =>
    Math.max(...reports.map(of)).toFixed(1);
  console.log(
    `${count} processes, ${seconds} s: ${total(({ granted }) => granted)} granted (by process: ${reports.map(({ granted }) => granted).join(", ")}), ` +
      `${total(({ refused }) => refused)} refused; the lock was taken ${total(({ busyCalls }) => busyCalls)} times, ` +
      `the driver was slow to say so ${total(({ slowBusyCalls }) => slowBusyCalls)} times; a call took at most ${longest(({ longestCallMs }) => longestCallMs)} ms; ` +
      `WAL at most ${(largestWal / 2 ** 20).toFixed(1)} MB`,
  );
}

function watchWal(path: string): { stop(): number } {
  let largest = 0;
  const look = (): void => {
    largest = Math.max(largest, statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0);
  };
  const timer = setInterval(look, 100);
  return {
    stop: () => {
      clearInterval(timer);
      look();
      return largest;
    },
  };
}

function expect(holds: boolean, problem: string): void {
  if (!holds) problems.push(problem);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
