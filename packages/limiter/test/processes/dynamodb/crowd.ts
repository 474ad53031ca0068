/*
 * Several processes whose children share one parent that none of them has met: what fits is
 * granted, round after round, each with a new parent and new children. Prints granted ÷ possible
 * and what a grant costs; exits 1 when a round granted less than is possible, or more. Usage: node
 * crowd.js --endpoint http://127.0.0.1:8000 [--rounds 50] [--processes 8]
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { Limit } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import {
  CHILDREN,
  idOfChild,
  idOfParent,
  PROVISIONED,
  type Round,
  type Tally,
} from "./crowd-worker.ts";

/** More than its parent holds, and more than some children do. */
const CALLS = 1500;
// The SDK says in every process that it will want a newer Node.
const env = { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" };
const SLOW = { name: "n", refillAmount: 1, refillPeriodSeconds: 86_400 };
const PARENT_HOLDS = 600;
const CHILD_HOLDS = 2;

const { values } = parseArgs({
  options: {
    endpoint: { type: "string" },
    rounds: { type: "string", default: "50" },
    processes: { type: "string", default: "8" },
  },
});
if (values.endpoint === undefined)
  throw new Error("--endpoint is missing: where does the table live?");
const endpointUrl = values.endpoint;
const stack = `crowd-${process.pid}-${Date.now().toString(36)}`;
const repository = await DynamoRepository.open("app", {
  endpointUrl,
  stack,
  provisioning: "table",
  stream: false,
});
await repository.setSystemDefaults([Limit.custom({ ...SLOW, capacity: CHILD_HOLDS })]);
const rounds: RoundResult[] = [];
for (let number = 1; number <= Number(values.rounds); number += 1) {
  const result = await playRound(number);
  rounds.push(result);
  if (result.granted !== result.possible) console.log(`round ${number}: ${JSON.stringify(result)}`);
}
await repository.close();
report();

interface RoundResult extends Tally {
  readonly possible: number;
}

/** Each round has processes of its own, which know nothing. */
async function playRound(number: number): Promise<RoundResult> {
  const parentId = idOfParent(number);
  await repository.createEntity(parentId);
  await repository.setLimits(parentId, [Limit.custom({ ...SLOW, capacity: PARENT_HOLDS })]);
  const children = Array.from({ length: CHILDREN }, (_, child) => idOfChild(number, child));
  for (let done = 0; done < CHILDREN; done += PROVISIONED)
    await Promise.all(
      children
        .slice(done, done + PROVISIONED)
        .map((id) => repository.createEntity(id, { parentId, cascade: true })),
    );
  const calls = Array.from({ length: CALLS }, (_, call) => (call * 7919 + number * 31) % CHILDREN);
  const asked = new Map<number, number>();
  for (const child of calls) asked.set(child, (asked.get(child) ?? 0) + 1);
  const possible = [...asked.values()].reduce(
    (sum, times) => sum + Math.min(CHILD_HOLDS, times),
    0,
  );
  const count = Number(values.processes);
  const workers = Array.from({ length: count }, () =>
    fork(new URL("crowd-worker.js", import.meta.url), [endpointUrl, stack], { env }),
  );
  await Promise.all(workers.map((worker) => once(worker, "message")));
  const tallies = await Promise.all(
    workers.map((worker, index) => {
      const own = calls.filter((_, call) => call % count === index);
      return play(worker, { number, children: own });
    }),
  );
  const sum = (name: keyof Tally): number =>
    tallies.reduce((total, tally) => total + tally[name], 0);
  return {
    possible: Math.min(PARENT_HOLDS, possible),
    granted: sum("granted"),
    refused: sum("refused"),
    unavailable: sum("unavailable"),
    requests: sum("requests"),
    writeUnits: sum("writeUnits"),
    longestMs: Math.max(...tallies.map(({ longestMs }) => longestMs)),
  };
}

async function play(worker: ChildProcess, round: Round): Promise<Tally> {
  worker.send(round);
  const [tally] = (await once(worker, "message")) as [Tally];
  await once(worker, "exit");
  return tally;
}

function report(): void {
  const exact = rounds.filter(({ granted, possible }) => granted === possible).length;
  const sum = (name: keyof RoundResult): number =>
    rounds.reduce((total, round) => total + round[name], 0);
  const each = (name: "requests" | "writeUnits"): string => (sum(name) / sum("granted")).toFixed(2);
  console.log(
    `${values.processes} processes, ${CHILDREN} children of one parent: granted all of what is possible in ` +
      `${exact} of ${rounds.length} rounds, ${(sum("granted") / sum("possible")).toFixed(4)} in all; ` +
      `${sum("unavailable")} contended; for each grant ${each("requests")} requests and ${each("writeUnits")} write units; ` +
      `longest call ${Math.round(Math.max(...rounds.map(({ longestMs }) => longestMs)))} ms`,
  );
  process.exitCode = exact === rounds.length ? 0 : 1;
}
