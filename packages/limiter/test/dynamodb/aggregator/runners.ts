import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { runAggregator } from "zae-limiter/aggregator";
import { systemClock } from "../../../src/repository/system-clock.ts";
import type { ProxiedRequest } from "../../support/proxy-server.ts";
import { between } from "../../support/seeded/random-choice.ts";
import type { PlayedHistory } from "./played-history.ts";

const library = fileURLToPath(new URL("../../../dist/", import.meta.url));

/** A runner, whose clock is ahead by so much. */
const RUNNER = `
  const [, library, stack, endpointUrl, aheadMs] = process.argv;
  const { runAggregator } = await import(library + "repository/dynamodb/aggregator/index.js");
  const { setTimeout: sleep } = await import("node:timers/promises");
  const clock = {
    now: () => Date.now() + Number(aheadMs),
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  };
  await runAggregator({ stack, endpointUrl, clock, requestTimeoutMs: 10000 });`;

/** Leases of runners that died end by then. */
const LEASE_MS = 20_000;

/**
 * Lets two runners share the stream and kills one of them at a write; then another one, whose clock
 * is ahead, so that it waits for no lease, and which is killed too; at last one in this process that
 * ends when everything is counted. The other of the first two runs all the time.
 */
export async function killRunners({ table, proxy, random }: PlayedHistory): Promise<void> {
  const start = (aheadMs: number): RunnerProcess =>
    new RunnerProcess([table.tableName, proxy.endpointUrl, String(aheadMs)]);
  /** Kills a runner at the n-th request of a kind, by whomever. */
  const killAt = async (
    runner: RunnerProcess,
    requests: number,
    isMeant: (request: ProxiedRequest) => boolean,
  ): Promise<void> => {
    let left = requests;
    proxy.observe = (request) => {
      if (isMeant(request)) left -= 1;
      if (left === 0) runner.kill();
    };
    await runner.killed();
  };
  const other = start(0);
  await killAt(start(0), between(random, 2, 12), isSnapshotWrite);
  // By now, everything may be counted.
  await killAt(start(LEASE_MS), between(random, 20, 80), () => true);
  proxy.observe = () => {};
  const { ended } = await runAggregator({
    stack: table.tableName,
    endpointUrl: proxy.endpointUrl,
    clock: {
      now: () => systemClock.now() + 2 * LEASE_MS,
      sleep: async (ms, signal) => systemClock.sleep(ms, signal),
    },
    requestTimeoutMs: 10_000,
    once: true,
  });
  expect(ended).toBe("counted");
  other.kill();
  await other.killed();
}

/** A runner in a process of its own. */
class RunnerProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #exit: Promise<unknown>;
  #complaint = "";

  constructor(options: readonly string[]) {
    const args = ["--input-type=module", "-e", RUNNER, library, ...options];
    this.#child = spawn(process.execPath, args);
    this.#child.stderr.on("data", (chunk: Buffer) => (this.#complaint += chunk));
    this.#exit = once(this.#child, "exit");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Waits until it is dead, and expects that it did not end by itself. */
  async killed(): Promise<void> {
    await this.#exit;
    expect(this.#child.signalCode, this.#complaint).toBe("SIGKILL");
  }
}

function isSnapshotWrite({ operation, input: { Key } }: ProxiedRequest): boolean {
  return operation === "UpdateItem" && (Key as { SK: { S: string } }).SK.S.startsWith("#USAGE#");
}
