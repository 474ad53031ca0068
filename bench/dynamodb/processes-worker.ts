/*
 * One of several processes on one bucket. It works on request, on the entity and for the time of
 * the request, and reports. Usage: node processes-worker.js ENDPOINT STACK
 * tick|no-tick|shards
 */
import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { openLeanTransport } from "./transports.ts";

/** A request to a process. */
export interface Assignment {
  readonly entityId: string;
  readonly seconds: number;
}

/** What it did. */
export interface WorkerReport {
  readonly grants: number;
  readonly refusals: number;
  /** Calls that gave up because others were always faster. */
  readonly unavailable: number;
  readonly writes: number;
  readonly failedWrites: number;
  /** Of each grant. */
  readonly latenciesMs: readonly number[];
}

/**
 * Calls that a process keeps under way: few, so that batches do not hide what processes do to each
 * other.
 */
const CALLS = 4;

/** How long a caller who was refused waits before it asks again. */
const AFTER_REFUSAL_MS = 5;

const [endpointUrl, stack, mode] = process.argv.slice(2) as [
  string,
  string,
  "tick" | "no-tick" | "shards",
];
const repository = await DynamoRepository.open("bench", {
  transport: await openLeanTransport({ endpointUrl }),
  stack,
  provisioning: "never",
  // What the tick does shows on one item only.
  ...(mode !== "shards" && { maxShards: 1 }),
  // There is no switch for the tick, but a clock that was passed in is not rounded.
  ...(mode === "no-tick" && {
    clock: { now: () => Date.now(), sleep: async (ms, signal) => sleep(ms, undefined, { signal }) },
  }),
});
const limiter = new RateLimiter({ repository });

process.on(
  "message",
  (assignment: Assignment) => void work(assignment).then((report) => process.send?.(report)),
);
// Its parent has ended, or does not need it any more.
process.once("disconnect", () => process.exit(0));
process.send?.("ready");

async function work({ entityId, seconds }: Assignment): Promise<WorkerReport> {
  const counts = { grants: 0, refusals: 0, unavailable: 0 };
  const latenciesMs: number[] = [];
  const before = repository.getStatistics();
  const untilMs = performance.now() + seconds * 1000;
  const caller = async (): Promise<void> => {
    while (performance.now() < untilMs) {
      const startedMs = performance.now();
      const verdict = await limiter
        .tryAcquire({ entityId, resource: "gpt-4", consume: { rps: 1 } })
        .catch(onlyUnavailable);
      if (verdict === undefined) counts.unavailable += 1;
      else if (verdict.granted) {
        counts.grants += 1;
        latenciesMs.push(performance.now() - startedMs);
        await verdict.lease.commit();
      } else {
        counts.refusals += 1;
        await sleep(AFTER_REFUSAL_MS);
      }
    }
  };
  await Promise.all(Array.from({ length: CALLS }, caller));
  const after = repository.getStatistics();
  const failedWrites = after.failedConditions - before.failedConditions;
  return {
    ...counts,
    latenciesMs,
    failedWrites,
    writes: after.writes - before.writes + failedWrites,
  };
}

function onlyUnavailable(error: unknown): undefined {
  if (!(error instanceof RateLimiterUnavailable)) throw error;
}
