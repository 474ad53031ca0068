import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { expect } from "vitest";
import type { Random } from "zae-limiter";
import { folderArchive, runAggregator } from "zae-limiter/aggregator";
import { systemClock } from "../../../src/repository/system-clock.ts";
import type { ProxiedRequest } from "../../support/proxy-server.ts";
import { between } from "../../support/seeded/random-choice.ts";
import type { PlayedHistory } from "./played-history.ts";

const library = fileURLToPath(new URL("../../../dist/", import.meta.url));

/** A runner, whose clock is ahead by so much. */
const RUNNER = `
  const [, library, stack, endpointUrl, aheadMs, folder] = process.argv;
  const { folderArchive, runAggregator } = await import(library + "repository/dynamodb/aggregator/index.js");
  const { setTimeout: sleep } = await import("node:timers/promises");
  const clock = {
    now: () => Date.now() + Number(aheadMs),
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
  };
  const archive = folderArchive(folder);
  await runAggregator({ stack, endpointUrl, clock, archive, requestTimeoutMs: 10000 });`;

/** Leases of runners that died have ended by then: they last for 20 s. */
const LATER_MS = 30_000;

/** What runners work on. */
export interface RunnerPlace extends Pick<PlayedHistory, "table" | "proxy"> {
  /** Where audit events go when they expire. */
  readonly archive: string;
}

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
 * Kills a runner that has counted while clients were working, starts two others, kills one of
 * them, and at last lets one in this process end when everything is counted. Clocks
 * are ahead of those of the dead, so that none waits for their leases.
 */
export async function killRunners(
  place: RunnerPlace,
  first: RunnerProcess,
  random: Random,
): Promise<void> {
  const { table, proxy, archive } = place;
  first.kill();
  await first.killed();
  const second = new RunnerProcess(place, LATER_MS);
  const other = new RunnerProcess(place, LATER_MS);
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
      now: () => systemClock.now() + 2 * LATER_MS,
      sleep: async (ms, signal) => systemClock.sleep(ms, signal),
    },
    archive: folderArchive(archive),
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

  constructor({ table, proxy, archive }: RunnerPlace, aheadMs = 0) {
    const options = [library, table.tableName, proxy.endpointUrl, String(aheadMs), archive];
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

/** The ids of the events in an archive; one that is there twice counts once. */
export function archivedIds(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const lines = names
    .filter((name) => name.endsWith(".jsonl.gz"))
    .flatMap((name) =>
      gunzipSync(readFileSync(join(folder, name)))
        .toString()
        .trim()
        .split("\n"),
    );
  const ids = lines.map((line) => (JSON.parse(line) as { event_id: string }).event_id);
  return [...new Set(ids)].toSorted();
}

function isSnapshotWrite({ operation, input: { Key } }: ProxiedRequest): boolean {
  return operation === "UpdateItem" && (Key as { SK: { S: string } }).SK.S.startsWith("#USAGE#");
}
