import type { RunnerOptions, RunnerProgress, RunnerReport } from "zae-limiter/aggregator";
import { expect, it } from "vitest";
import { LocalAggregator } from "./local-aggregator.ts";

const PROGRESS = { lagMs: 1500, records: 12, counted: 3 } as RunnerProgress;

/** Runs an aggregator whose runners do what each step says; the last one ends everything. */
async function run(steps: readonly ((options: RunnerOptions) => void)[]): Promise<{
  readonly begun: number;
  readonly started: number;
  readonly problems: readonly string[];
  readonly states: readonly object[];
}> {
  const ending = new AbortController();
  const problems: string[] = [];
  const states: object[] = [];
  let [begun, started] = [0, 0];
  const aggregator = new LocalAggregator({
    table: { stack: "zae-limiter" },
    onProgress: () => {},
    onProblem: (text) => void problems.push(text),
    firstPauseMs: 1,
    runAggregator: async (options) => {
      started += 1;
      try {
        steps[started - 1]!(options!);
      } finally {
        states.push(aggregator.status);
        if (started === steps.length) ending.abort();
      }
      return {} as RunnerReport;
    },
  });
  await aggregator.run(ending.signal, () => (begun += 1));
  return { begun, started, problems, states };
}

const progress = ({ onProgress }: RunnerOptions): void => onProgress?.(PROGRESS);
const crash = (options: RunnerOptions): void => {
  progress(options);
  throw new Error("The table is gone.");
};

const never = (): never => {
  throw new Error("The table has no stream.");
};

it("is started again when it fails, and has begun once", async () => {
  const { begun, started, problems } = await run([crash, crash, progress]);
  expect({ begun, started }).toEqual({ begun: 1, started: 3 });
  expect(problems).toHaveLength(2);
  expect(problems[0]).toBe(
    "The aggregator ended: The table is gone. Starting it again in 0.001 s.",
  );
});

it("fails if it cannot begin", async () => {
  await expect(run([never, progress])).rejects.toThrow("The table has no stream.");
});

it("tells what fails until something succeeds", async () => {
  const error = new Error("Throttled.");
  const trouble = {
    kind: "retry",
    error,
    attempts: 1,
    retryInMs: 500,
    shardId: undefined,
  } as const;
  const { states } = await run([
    (options) => {
      progress(options);
      options.onProblem?.(trouble);
    },
    progress,
  ]);
  expect(states).toEqual([
    { state: "failing", ...PROGRESS, problem: "Throttled. Trying again in 0.5 s." },
    { state: "running", ...PROGRESS },
  ]);
});
