import { seededRandom } from "zae-limiter/testing";
import type { Backend } from "./client.ts";
import { newCoverage, type Coverage } from "./coverage.ts";
import { makeHistory, type History } from "./steps.ts";
import { World } from "./world.ts";

/** A seed that broke a promise, with the shortest history found that still does. */
export interface Failure {
  readonly seed: number;
  readonly error: unknown;
  readonly steps: number;
  readonly story: string;
}

/** What a run of many seeds met. */
export interface Report {
  readonly seeds: number;
  readonly steps: number;
  readonly coverage: Coverage;
  readonly failure: Failure | undefined;
}

/** Runs seeds one after another, until one fails. */
export async function runSeeds(
  backend: Backend,
  {
    first,
    count,
    mostSteps,
    mostReplays,
  }: {
    readonly first: number;
    readonly count: number;
    readonly mostSteps?: number;
    readonly mostReplays?: number;
  },
): Promise<Report> {
  const coverage = newCoverage();
  let steps = 0;
  // Lost requests and refusals are thrown by the thousand here, and a stack trace costs more than
  // the rest of such a step.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    for (let seed = first; seed < first + count; seed += 1) {
      const history = makeHistory(seededRandom(seed), {
        steadyClock: backend.loose === true,
        ...(mostSteps !== undefined && { mostSteps }),
      });
      steps += history.steps.length;
      const error = await errorOf(backend, history, coverage);
      if (error !== undefined)
        return {
          seeds: seed - first + 1,
          steps,
          coverage,
          failure: await explain(backend, seed, history, mostReplays),
        };
    }
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  return { seeds: count, steps, coverage, failure: undefined };
}

/** Replays bounded per shrinking: each costs a few milliseconds in memory. */
const MOST_REPLAYS = 2000;

/** Leaves out as many steps as it can, halves first, as long as the history still fails. */
export async function shorten(
  backend: Backend,
  history: History,
  mostReplays = MOST_REPLAYS,
): Promise<History> {
  let shortest = history;
  let replays = 0;
  for (let size = Math.ceil(history.steps.length / 2); size >= 1 && replays < mostReplays;) {
    let isShorter = false;
    for (let start = 0; start < shortest.steps.length && replays < mostReplays;) {
      const without = { ...shortest, steps: shortest.steps.toSpliced(start, size) };
      replays += 1;
      if ((await errorOf(backend, without, newCoverage())) === undefined) start += size;
      else {
        shortest = without;
        isShorter = true;
      }
    }
    if (!isShorter || size > 1) size = size === 1 ? 0 : Math.ceil(size / 2);
  }
  return shortest;
}

async function explain(
  backend: Backend,
  seed: number,
  history: History,
  mostReplays?: number,
): Promise<Failure> {
  const shortest = await shorten(backend, history, mostReplays);
  const trace: string[] = [];
  const error = await errorOf(backend, shortest, newCoverage(), trace);
  const skews = shortest.skewsMs.some((skewMs) => skewMs !== 0)
    ? `, clocks off by ${shortest.skewsMs.join(", ")} ms`
    : "";
  const head = `Seed ${seed} on ${backend.name} fails; shortest history found (${shortest.steps.length} of ${history.steps.length} steps, from ${shortest.startMs}${skews}):`;
  const story = [
    head,
    ...trace,
    `      ${error instanceof Error ? error.message : String(error)}`,
  ].join("\n");
  return { seed, error, steps: shortest.steps.length, story };
}

async function errorOf(
  backend: Backend,
  history: History,
  coverage: Coverage,
  trace?: string[],
): Promise<unknown> {
  try {
    await new World({ backend, history, coverage, ...(trace !== undefined && { trace }) }).run();
    return undefined;
  } catch (error) {
    return error;
  }
}
