/*
 * What the channels of `zae-limiter/diagnostics` cost a memory acquire without subscribers: `npm
 * run bench:telemetry`. Two answers: the question for subscribers alone, in a loop; and the library
 * as it is, against a copy whose question was taken out when it was loaded. The copies take short
 * turns in one process. How a process compiles them differs by more than the question costs, so
 * several processes do that, one after another, and the second answer says only that it is lost in
 * that noise.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { median, printTable, printVerdicts, whole, type Verdict } from "./harness.ts";

/** What one process measured. */
interface Race {
  /** CPU of an acquire with channels, by that of one without. */
  readonly ratio: number;
  /** An acquire with channels, one without, and the question alone. */
  readonly cpuNs: readonly [number, number, number];
}

const quick = process.argv.includes("--quick");
const measured = Array.from({ length: quick ? 1 : 12 }, (_, index) => race(index));
printTable(
  ["One key, one limit; CPU ns", "with channels", "without", "ratio", "the question alone"],
  measured.map(({ ratio, cpuNs: [ours, theirs, question] }, index) => [
    `process ${index + 1}`,
    whole(ours),
    whole(theirs),
    ratio.toFixed(3),
    question.toFixed(2),
  ]),
);
printVerdicts("Without subscribers", toVerdicts(measured));

/** What channels without subscribers cost a memory acquire and its commit. */
function toVerdicts(races: readonly Race[]): readonly Verdict[] {
  const cpuNs = [0, 1, 2].map((which) => median(races.map((one) => one.cpuNs[which]!)));
  const [ours, without, difference] = cpuNs as [number, number, number];
  // The difference of two measurements: what is too small to be seen may be below zero.
  const question = Math.max(0, difference);
  return [
    {
      what: "the check for subscribers, by a memory acquire",
      ratio: question / ours,
      goal: { atMost: 0.01 },
      cpuNs: [question, ours] as const,
    },
    {
      what: "a memory acquire with channels without subscribers, by one without channels",
      ratio: median(races.map(({ ratio }) => ratio)),
      goal: undefined,
      cpuNs: [ours, without] as const,
    },
  ];
}

function race(index: number): Race {
  const worker = fileURLToPath(new URL("telemetry-worker.js", import.meta.url));
  const first = index % 2 === 0 ? "with" : "without";
  const args = [worker, first, ...(quick ? ["1", "20", "0"] : ["31", "20", "300"])];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as Race;
}
