import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { seededRandom } from "zae-limiter/testing";
import type { Schedule } from "./arrival-worker.ts";

/** Calls that come whether or not those before them have ended. */
export interface Load {
  readonly perSecond: number;
  readonly seconds: number;
  readonly seed: number;
}

/** What became of the calls of a load. */
export interface Reply {
  /** From when a call was due until it was granted, so that a busy client counts as well. */
  readonly latenciesMs: readonly number[];
  readonly failed: number;
  /** All threads of this process, the one that signals arrivals included. */
  readonly cpuMs: number;
}

/** The first call is due this long after the load begins: the thread must have got it. */
const LEAD_MS = 20;

/** Independent arrivals, with exponential gaps that a seed decides. */
export class OpenLoop {
  readonly #worker = new Worker(new URL("arrival-worker.js", import.meta.url));

  /** Makes the calls, each by its number, and waits for all of them. */
  async run(load: Load, call: (index: number) => Promise<void>): Promise<Reply> {
    const startMs = hrtimeMs() + LEAD_MS;
    const dueMs = arrivals(load).map((ms) => startMs + ms);
    const latenciesMs: number[] = [];
    const before = process.cpuUsage();
    let failed = 0;
    const arrive = async (index: number): Promise<void> => {
      try {
        await call(index);
        latenciesMs.push(hrtimeMs() - dueMs[index]!);
      } catch {
        failed += 1;
      }
    };
    const arrived: Promise<void>[] = [];
    await new Promise<void>((resolve) => {
      this.#worker.removeAllListeners("message").on("message", (index: number) => {
        arrived.push(arrive(index));
        if (arrived.length === dueMs.length) resolve();
      });
      // This is a worker, not a window.
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- see above
      this.#worker.postMessage({ dueMs } satisfies Schedule);
    });
    await Promise.all(arrived);
    const { user, system } = process.cpuUsage(before);
    return { latenciesMs, failed, cpuMs: (user + system) / 1000 };
  }

  async close(): Promise<void> {
    const ended = once(this.#worker, "exit");
    await this.#worker.terminate();
    await ended;
  }
}

/** When each call is due, in milliseconds from the begin; at least one is. */
function arrivals({ perSecond, seconds, seed }: Load): readonly number[] {
  const random = seededRandom(seed);
  const dueMs: number[] = [];
  for (let ms = 0; ms < seconds * 1000 || dueMs.length === 0;) {
    dueMs.push(ms);
    ms -= (Math.log(1 - random()) / perSecond) * 1000;
  }
  return dueMs;
}

function hrtimeMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
