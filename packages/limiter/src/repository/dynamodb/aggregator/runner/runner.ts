import type { AggregatorOptions } from "../aggregator.ts";

/** How a runner works. */
export interface RunnerOptions extends AggregatorOptions {
  /** Whether to end when everything that the stream holds now is counted. @default false */
  readonly once?: boolean;
  /** Ends the runner after the batches that are under way. */
  readonly signal?: AbortSignal;
}
