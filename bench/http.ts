/*
 * Middlewares on real servers, ours beside those that people use with each framework: `npm run
 * bench:http`, or `npm run bench:http -- --quick` to see that it works. All stores are in memory,
 * and all send headers that say what is left. Each contestant is a server in a process of its own;
 * one more process has the clients. What is compared is the CPU time of the servers.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import {
  cpuRatio,
  interleave,
  median,
  printTable,
  printVerdicts,
  whole,
  type Contestant,
  type Cost,
  type Measured,
  type Verdict,
} from "./harness.ts";
import { FRAMEWORKS, KEYS, LIMITS, PEERS, type Framework, type Limits, type Load } from "./http-contestants.ts";
import type { Order } from "./http-load.ts";

const quick = process.argv.includes("--quick");
const pace = quick ? { rounds: 1, turnMs: 20 } : { rounds: 9, turnMs: 200, warmUpMs: 1000 };
if (quick)
  console.log("A quick run: it shows that the benchmark works, and its numbers say nothing.\n");

const GOALS = { "one limit": { atLeast: 0.9 }, "two limits, parent": { atLeast: 0.8 } } as const;

const load = fork(script("http-load.js"));
const granted = await race("granted", LIMITS);
const refused = await race("refused", ["one limit", "two limits, parent", "peer"]);
load.disconnect();

const verdicts: Verdict[] = [];
for (const [of, raced] of [
  ["granted", granted],
  ["refused", refused],
] as const)
  for (const framework of FRAMEWORKS)
    for (const limits of ["one limit", "two limits, parent"] as const) {
      const ours = raced(framework, limits);
      const theirs = raced(framework, "peer");
      verdicts.push({
        what: `${framework}, ${of}: ${limits} against ${PEERS[framework]}`,
        // Requests per CPU second, ours by theirs.
        ratio: cpuRatio(theirs, ours),
        // Nobody is in a hurry to be refused; those lines are there to be seen.
        goal: of === "granted" ? GOALS[limits] : undefined,
        cpuNs: [median(ours.cpuNs), median(theirs.cpuNs)],
      });
    }
printVerdicts("Ours against its peers", verdicts);

/** Lets all contestants of a load take turns; returns what each has cost. */
async function race(
  of: Load,
  kinds: readonly Limits[],
): Promise<(framework: Framework, limits: Limits) => Measured> {
  const contestants = await Promise.all(
    FRAMEWORKS.flatMap((framework) => kinds.map((limits) => contestant(framework, limits, of))),
  );
  const measured = await interleave(contestants, pace);
  for (const { end } of contestants) end();
  printTable(
    [`Requests that are ${of}`, "requests/CPU s", "CPU µs/request", "of bare"],
    measured.map((one) => {
      const bare = granted0(measured, one);
      return [
        one.name,
        whole(1e9 / median(one.cpuNs)),
        (median(one.cpuNs) / 1000).toFixed(1),
        bare === undefined ? "–" : cpuRatio(bare, one).toFixed(2),
      ];
    }),
  );
  return (framework, limits) => measured.find(({ name }) => name === nameOf(framework, limits))!;
}
