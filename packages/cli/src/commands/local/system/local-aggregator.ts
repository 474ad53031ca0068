import { setTimeout as sleep } from "node:timers/promises";
import type { RunnerOptions, RunnerProgress } from "zae-limiter/aggregator";
import type { Environment } from "../../../environment.ts";
import { problemText } from "../../support/runner-display.ts";

/** The state of the aggregator of a local system. */
export interface AggregatorStatus {
  readonly state: "starting" | "running" | "failing";
  /** How long ago the oldest record of the last batch was written; 0 when nothing was left. */
  readonly lagMs?: number;
  readonly records?: number;
  readonly counted?: number;
  /** The last failure, unless something has succeeded since. */
  readonly problem?: string;
}

/** Options of the aggregator. */
export interface LocalAggregatorOptions {
  readonly runAggregator: Environment["runAggregator"];
  readonly table: Omit<RunnerOptions, "onProgress" | "onProblem" | "once" | "signal">;
  readonly onProgress: (progress: RunnerProgress) => void;
  readonly onProblem: (text: string) => void;
  /** The pause before a runner that failed is started again; it doubles. @default 1000 */
  readonly firstPauseMs?: number;
}

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;

/** Runs the aggregator of a local system, and starts it again when it fails. */
export class LocalAggregator {
  readonly #options: LocalAggregatorOptions;
  #status: AggregatorStatus = { state: "starting" };

  constructor(options: LocalAggregatorOptions) {
    this.#options = options;
  }

  get status(): AggregatorStatus {
    return this.#status;
  }

  /**
   * Works until the signal aborts. `onBegun` is called once, when it reads the stream. Rejects only
   * if it fails before that, because waiting does not help one that cannot start.
   */
  async run(signal: AbortSignal, onBegun: () => void): Promise<void> {
    const { runAggregator, table, onProgress, firstPauseMs = FIRST_PAUSE_MS } = this.#options;
    let hasBegun = false;
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      try {
        await runAggregator({
          ...table,
          signal,
          onProgress: (progress) => {
            const { lagMs, records, counted } = progress;
            this.#status = { state: "running", lagMs, records, counted };
            pauseMs = firstPauseMs;
            if (!hasBegun) onBegun();
            hasBegun = true;
            onProgress(progress);
          },
          onProblem: (problem) => this.#fail(problemText(problem)),
        });
      } catch (error) {
        if (signal.aborted) return;
        if (!hasBegun) throw error;
        const message = error instanceof Error ? error.message : String(error);
        this.#fail(`The aggregator ended: ${message} Starting it again in ${pauseMs / 1000} s.`);
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  #fail(problem: string): void {
    this.#status = { ...this.#status, state: "failing", problem };
    this.#options.onProblem(problem);
  }
}
