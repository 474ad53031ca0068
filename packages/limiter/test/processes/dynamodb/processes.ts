/*
 * Several processes on one bucket of one table: what was granted stays within the capacity and what
 * was earned, and the stored count is what was answered. Exits 1 when something does not hold.
 * Usage: node processes.js --endpoint http://127.0.0.1:8000 [--seconds 10] [--processes 4]
 */
import { fork } from "node:child_process";
import { parseArgs } from "node:util";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { ENTITY, LIMIT, type Report } from "./worker.ts";

/** A rounded clock may add what these milliseconds earn, once. */
const LARGEST_TICK_MS = 100;

const { values } = parseArgs({
  options: {
    endpoint: { type: "string" },
    seconds: { type: "string", default: "10" },
    processes: { type: "string", default: "4" },
  },
});
if (values.endpoint === undefined)
  throw new Error("--endpoint is missing: where does the table live?");
const count = Number(values.processes);
const stack = `processes-${process.pid}-${Date.now().toString(36)}`;
const repository = await DynamoRepository.open("app", {
  endpointUrl: values.endpoint,
  stack,
  provisioning: "table",
  stream: false,
});
await repository.setSystemDefaults([LIMIT]);
const reports = await Promise.all(Array.from({ length: count }, (_, index) => worker(index + 1)));
await verify();
await repository.close();

function worker(seed: number): Promise<Report> {
  return new Promise((resolve, reject) => {
    const child = fork(new URL("worker.js", import.meta.url), [
      values.endpoint!,
      stack,
      values.seconds,
      String(seed),
    ]);
    child.once("message", (report) => resolve(report as Report));
    child.once("exit", (code, signal) =>
      reject(new Error(`a process ended early: ${code ?? signal}`)),
    );
    child.once("error", reject);
  });
}

async function verify(): Promise<void> {
  const [bucket] = await repository.getBuckets(ENTITY);
  const sum = (of: (report: Report) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  const [consumed, unknown, granted] = [
    sum((report) => report.consumed),
    sum((report) => report.unknown),
    sum((report) => report.granted),
  ];
  const stored = (bucket?.totalConsumedMilli ?? 0) / 1000;
  const elapsedMs = Date.now() - Math.min(...reports.map(({ firstMs }) => firstMs));
  // Debt was taken by settlements, which may; everything else has to fit what the bucket held and
  // earned.
  const debt = Math.max(0, -(bucket?.tokensMilli ?? 0)) / 1000;
  const bound =
    LIMIT.capacity +
    (LIMIT.refillAmount * (elapsedMs + LARGEST_TICK_MS)) / (LIMIT.refillPeriodSeconds * 1000) +
    debt;
  const problems = [
    ...(stored < consumed || stored > consumed + unknown
      ? [`${stored} stored, ${consumed} answered and ${unknown} unknown`]
      : []),
    ...(stored > bound ? [`${stored} consumed of at most ${bound}`] : []),
    ...(reports.every((report) => report.granted > 0) ? [] : ["one process was never granted"]),
  ];
  for (const problem of problems) console.error(`FAILED: ${problem}`);
  process.exitCode = problems.length === 0 ? 0 : 1;
  console.log(
    `${count} processes, ${values.seconds} s: ${granted} granted, ${sum((report) => report.refused)} refused, ` +
      `${sum((report) => report.contended)} contended, ${sum((report) => report.failedConditions)} failed conditions; ` +
      `${stored} tokens stored, ${consumed} answered, at most ${Math.floor(bound)}`,
  );
}
