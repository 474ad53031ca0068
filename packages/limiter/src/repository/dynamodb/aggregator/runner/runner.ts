import { randomUUID } from "node:crypto";
import { checkOptions, optionNames } from "../../../../core/options.ts";
import { AGGREGATOR_OPTIONS, openParts, type AggregatorOptions } from "../aggregator.ts";
import type { RunnerProblem } from "./problem.ts";
import { StreamRunner, type RunnerProgress, type RunnerReport } from "./stream-runner.ts";
import { openTableStream } from "./table-stream.ts";

/** How a runner works. */
export interface RunnerOptions extends AggregatorOptions {
  /** Whether to end when everything that the stream holds now is counted. @default false */
  readonly once?: boolean;
  /** Ends the runner after the batches that are under way. */
  readonly signal?: AbortSignal;
  /**
   * Called after each batch, and when the shards that the runner reads change.
   * @example await runAggregator({ onProgress: ({ lagMs }) => console.log(lagMs) });
   */
  readonly onProgress?: (progress: RunnerProgress) => void;
  /**
   * Called when something fails and will be tried again, and when records were lost.
   * @example await runAggregator({ onProblem: (problem) => log.warn(problem) });
   */
  readonly onProblem?: (problem: RunnerProblem) => void;
}

/**
 * Reads the stream of a table and aggregates it, as Lambda does, until its signal aborts; with
 * `once`, until everything that the stream held at the start is counted. Of several runners one
 * works, and the others stand by until it ends.
 *
 * @example
 * const { counted } = await runAggregator({ stack: "limits", region: "eu-west-1", once: true });
 */
export async function runAggregator(options: RunnerOptions = {}): Promise<RunnerReport> {
  checkOptions(options, OPTION_NAMES, "runAggregator");
  const { once = false, signal, onProgress, onProblem, ...rest } = options;
  const { aggregator, connection } = await openParts(rest);
  try {
    const stream = await openTableStream(connection);
    const runner = new StreamRunner({
      connection,
      // A batch shows how far one shard is, and the runner knows how far all of them are.
      aggregator: { process: async (records) => aggregator.processWithoutHeartbeat(records) },
      heartbeat: aggregator.heartbeat,
      stream,
      runnerId: randomUUID(),
      once,
      onProgress,
      onProblem,
    });
    return await runner.run(signal);
  } finally {
    aggregator.close();
  }
}

const OPTION_NAMES = optionNames<RunnerOptions>({
  ...AGGREGATOR_OPTIONS,
  once: true,
  signal: true,
  onProgress: true,
  onProblem: true,
});
