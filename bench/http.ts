/*
 * Middlewares on real servers, ours beside those that people use with each framework: `npm run
 * bench:http`, with `-- --quick` to see that it works, or with the name of a framework, such as
 * `-- Fastify`, for that one only. All stores are in memory, and all send headers that say what is
 * left. Each contestant is a server in a process of its own;
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
import {
  FRAMEWORKS,
  KEYS,
  LIMITS,
  PEERS,
  type Framework,
  type Limits,
  type Load,
} from "./http-contestants.ts";
import type { Order } from "./http-load.ts";

// A quick run shows that the benchmark works; it ends before the code is warm, so its numbers say
// nothing.
const quick = process.argv.includes("--quick");
const pace = quick
  ? { rounds: 1, turnMs: 0, operations: 100, warmUp: 100 }
  : { rounds: 11, turnMs: 0, operations: 1500, warmUp: 8000 };
if (quick)
  console.log("A quick run: it shows that the benchmark works, and its numbers say nothing.\n");

const chosen = FRAMEWORKS.filter((framework) => process.argv.includes(framework));
const frameworks = chosen.length > 0 ? chosen : FRAMEWORKS;

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
  for (const framework of frameworks)
    for (const limits of ["one limit", "two limits, parent"] as const) {
      const ours = raced(framework, limits);
      const theirs = raced(framework, "peer");
      verdicts.push({
        what: `${framework}, ${of}: ${limits} against ${PEERS[framework]}`,
        // Requests per CPU second, ours by theirs.
        ratio: cpuRatio(theirs, ours),
        // Refusals need no speed; those lines are for information.
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
  const contestants: (Contestant & { end(): void })[] = [];
  for (const framework of frameworks)
    for (const limits of kinds) contestants.push(await contestant(framework, limits, of));
  const measured = await interleave(contestants, pace);
  for (const one of contestants) one.end();
  const findMeasured = (framework: Framework, limits: Limits): Measured | undefined =>
    measured.find(({ name }) => name === toName(framework, limits));
  printTable(
    [`Requests that are ${of}`, "requests/CPU s", "CPU µs/request", "of bare"],
    frameworks.flatMap((framework) =>
      kinds.map((limits) => {
        const one = findMeasured(framework, limits)!;
        const bare = findMeasured(framework, "bare");
        return [
          one.name,
          whole(1e9 / median(one.cpuNs)),
          (median(one.cpuNs) / 1000).toFixed(1),
          bare === undefined ? "–" : cpuRatio(bare, one).toFixed(2),
        ];
      }),
    ),
  );
  return (framework, limits) => findMeasured(framework, limits)!;
}

function toName(framework: Framework, limits: Limits): string {
  if (limits === "bare") return `${framework}, bare`;
  return `${framework}, ${limits === "peer" ? PEERS[framework] : `ours, ${limits}`}`;
}

async function contestant(
  framework: Framework,
  limits: Limits,
  of: Load,
): Promise<Contestant & { end(): void }> {
  const server = fork(script("http-worker.js"), [framework, limits, of], {
    env: { ...process.env, NODE_ENV: "production" },
  });
  const port = (await readAnswer(server)) as number;
  const sendRequests = async (requests: number, status: number): Promise<void> => {
    load.send({ port, requests, status } satisfies Order);
    const answer = await readAnswer(load);
    if (answer !== "done") throw new Error(`${toName(framework, limits)}: ${String(answer)}`);
  };
  // The first request of each key empties its bucket.
  if (of === "refused") await sendRequests(KEYS, 200);
  const status = of === "granted" ? 200 : 429;
  const readCost = async (): Promise<Cost> => {
    server.send("spent");
    return (await readAnswer(server)) as Cost;
  };
  return {
    name: toName(framework, limits),
    run: async (requests) => {
      await readCost();
      await sendRequests(requests, status);
      return readCost();
    },
    end: () => server.disconnect(),
  };
}

async function readAnswer(child: ChildProcess): Promise<unknown> {
  const [answer] = (await once(child, "message")) as [unknown];
  return answer;
}

function script(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
