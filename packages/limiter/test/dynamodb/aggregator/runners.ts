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

/** What runners work on. */
export type RunnerPlace = Pick<PlayedHistory, "table" | "proxy">;

/** Starts a runner that is killed at the n-th write of a snapshot, while clients are working. */
export function startMortalRunner(place: RunnerPlace, writes: number): RunnerProcess {
  const runner = new RunnerProcess(place);
  let left = writes;
  place.proxy.observe = (request) => {
    if (isSnapshotWrite(request)) left -= 1;
    if (left === 0) runner.kill();
  };
  return runner;
}

/**
 * Kills a runner that has counted while clients were working, lets two others share the stream,
 * kills one of them, and at last lets one in this process end when everything is counted. Clocks
 * are ahead of those of the dead, so that nobody waits for their leases.
 */
export async function killRunners(played: PlayedHistory, first: RunnerProcess): Promise<void> {
  const { table, proxy, random } = played;
  first.kill();
  await first.killed();
  const second = new RunnerProcess(played, LEASE_MS);
  const other = new RunnerProcess(played, LEASE_MS);
  let left = between(random, 20, 80);
  proxy.observe = () => {
    left -= 1;
    if (left === 0) second.kill();
  };
  await second.killed();
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

/** A runner in a process of its own, whose clock is ahead by so much. */
export class RunnerProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #exit: Promise<unknown>;
  #complaint = "";

  constructor({ table, proxy }: RunnerPlace, aheadMs = 0) {
    const options = [library, table.tableName, proxy.endpointUrl, String(aheadMs)];
    this.#child = spawn(process.execPath, ["--input-type=module", "-e", RUNNER, ...options]);
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
