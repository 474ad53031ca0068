import { seededRandom } from "zae-limiter/testing";
import { shrink, type Proposals } from "../support/seeded/shrink.ts";
import { withoutStackTraces } from "../support/seeded/without-stack-traces.ts";
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
  return withoutStackTraces(async () => {
    for (let seed = first; seed < first + count; seed += 1) {
      const history = makeHistory(seededRandom(seed), {
        steadyClock: backend.loose === true,
        ...(mostSteps !== undefined && { mostSteps }),
      });
      steps += history.steps.length;
      const error = await catchError(backend, history, coverage);
      if (error !== undefined)
        return {
          seeds: seed - first + 1,
          steps,
          coverage,
          failure: await explain(backend, seed, history, mostReplays),
        };
    }
    return { seeds: count, steps, coverage, failure: undefined };
  });
}

/** Replays of one failure: each costs a few milliseconds in memory. */
const MOST_REPLAYS = 2000;

/** Leaves out as many steps as it can, halves first, as long as the history still fails. */
function* shorterHistories(history: History): Proposals<History> {
  let shortest = history;
  for (let size = Math.ceil(history.steps.length / 2); size >= 1;) {
    let isShorter = false;
    for (let start = 0; start < shortest.steps.length;) {
      const without = { ...shortest, steps: shortest.steps.toSpliced(start, size) };
      if (yield without) {
        shortest = without;
        isShorter = true;
      } else start += size;
    }
    if (!isShorter || size > 1) size = size === 1 ? 0 : Math.ceil(size / 2);
  }
}

async function explain(
  backend: Backend,
  seed: number,
  history: History,
  mostReplays = MOST_REPLAYS,
): Promise<Failure> {
  const shortest = await shrink(history, shorterHistories(history), {
    stillFails: async (shorter) =>
      (await catchError(backend, shorter, newCoverage())) !== undefined,
    mostReplays,
  });
  const trace: string[] = [];
  const error = await catchError(backend, shortest, newCoverage(), trace);
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

async function catchError(
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
