/*
 * One of several processes on one bucket. It carries out each assignment that its parent sends, and
 * reports the outcomes. Usage: node worker.js ENDPOINT STACK REQUEST_TIMEOUT_MS
 */
import { setTimeout as sleep } from "node:timers/promises";
import { RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { DynamoRepository, leanTransport, type DynamoTransport } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { CHILDREN, ENTITY, MAX_ATTEMPTS, RESOURCE } from "./hot-bucket.ts";

/** The work that a process is given. */
export interface Assignment {
  /** Callers that each have one call under way. */
  readonly callers: number;
  /** How long they continue, or how many calls each of them makes. */
  readonly until: { readonly seconds: number } | { readonly calls: number };
  /** The share of grants that are rolled back. */
  readonly rollbackShare: number;
  readonly seed: number;
  /** Whether they call for children of the bucket's entity instead of the entity itself. */
  readonly forChildren: boolean;
}

/** The outcomes of its calls. */
export interface CallCounts {
  readonly grants: number;
  readonly refusals: number;
  /** Calls that gave up because others were always faster. */
  readonly contended: number;
  /** Calls that gave up because the table could not be reached, and which were not applied. */
  readonly unavailable: number;
  /** Calls that were not granted, but may have been charged. */
  readonly unknown: number;
  /** Rollbacks that could not be written. */
  readonly failedEnds: number;
  /** Tokens that callers got and did not give back. */
  readonly kept: number;
  readonly splits: number;
  readonly merges: number;
}

/** The same, and how long each grant took. */
export interface WorkerReport extends CallCounts {
  readonly latenciesMs: readonly number[];
}

/** How long a caller who was refused waits before it asks again. */
const AFTER_REFUSAL_MS = 5;

const [endpointUrl, stack, requestTimeoutMs] = process.argv.slice(2) as [string, string, string];
const repository = await DynamoRepository.open("faults", {
  transport: meter(await leanTransport({ endpointUrl, region: "us-east-1" })),
  stack,
  provisioning: "never",
  requestTimeoutMs: Number(requestTimeoutMs),
  maxAttempts: MAX_ATTEMPTS,
});
const limiter = new RateLimiter({ repository });

process.on(
  "message",
  (assignment: Assignment) => void work(assignment).then((report) => process.send?.(report)),
);
// The process that started it has ended, or does not need it any more.
process.once("disconnect", () => process.exit(0));
process.send?.("ready");

async function work(assignment: Assignment): Promise<WorkerReport> {
  const { callers, until, rollbackShare, seed, forChildren } = assignment;
  const counts = { ...NONE };
  const latenciesMs: number[] = [];
  const random = seededRandom(seed);
  const before = events();
  const startedMs = performance.now();
  const isOver = (calls: number): boolean =>
    "calls" in until ? calls >= until.calls : performance.now() - startedMs >= until.seconds * 1000;
  const turn = async (entityId: string): Promise<void> => {
    const askedMs = performance.now();
    const verdict = await limiter
      .tryAcquire({ entityId, resource: RESOURCE, consume: { rps: 1 } })
      .catch(whyUngranted);
    if (typeof verdict === "string") {
      counts[verdict] += 1;
    } else if (!verdict.granted) {
      counts.refusals += 1;
      await sleep(AFTER_REFUSAL_MS);
    } else {
      counts.grants += 1;
      latenciesMs.push(performance.now() - askedMs);
      if (random() >= rollbackShare) {
        counts.kept += 1;
        await verdict.lease.commit();
      } else if ((await verdict.lease.rollback().catch(whyUngranted)) !== undefined) {
        counts.failedEnds += 1;
      }
    }
  };
  const caller = async (number: number): Promise<void> => {
    const entityId = forChildren ? CHILDREN[number % CHILDREN.length]! : ENTITY;
    for (let calls = 0; !isOver(calls); calls += 1) await turn(entityId);
  };
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
  const after = events();
  return {
    ...counts,
    splits: after.splits - before.splits,
    merges: after.merges - before.merges,
    latenciesMs,
  };
}

const NONE = {
  grants: 0,
  refusals: 0,
  contended: 0,
  unavailable: 0,
  unknown: 0,
  failedEnds: 0,
  kept: 0,
};

function whyUngranted(error: unknown): "contended" | "unavailable" | "unknown" {
  if (!(error instanceof RateLimiterUnavailable)) throw error;
  if (/outcome/.test(error.message) || isAmbiguous(error) || isAmbiguous(error.cause))
    return "unknown";
  return /contention/i.test(error.message) ? "contended" : "unavailable";
}

/** The limiter wraps the table's error, which says whether it is ambiguous. */
function isAmbiguous(error: unknown): boolean {
  return (error as { readonly ambiguous?: boolean } | undefined)?.ambiguous === true;
}

function events(): { readonly splits: number; readonly merges: number } {
  return repository.getStatistics();
}

/** Asks the engine to report what each request costs; the proxy reads it. */
function meter(transport: DynamoTransport): DynamoTransport {
  return {
    call: async (operation, input, options) =>
      transport.call(
        operation,
        /Item|Query|Statement/.test(operation)
          ? { ...input, ReturnConsumedCapacity: "TOTAL" }
          : input,
        options,
      ),
    close: () => transport.close(),
  };
}
