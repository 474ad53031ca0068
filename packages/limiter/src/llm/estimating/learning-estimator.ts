import type { Estimator } from "../tokens/llm-call.ts";
import { simpleEstimator } from "./simple-estimator.ts";

/** How `learningEstimator` learns. */
export interface LearningEstimatorOptions {
  /** What estimates before anything was learned, and what is corrected. @default simpleEstimator() */
  readonly start?: Estimator;
  /** The share of answers that the reservation should cover. @default 0.8 */
  readonly quantile?: number;
  /** Most models that are remembered; the least recently used one goes. @default 1000 */
  readonly maxKeys?: number;
}

/**
 * Learns from what providers report, for each model: the mean of the input's real tokens, and a
 * quantile of the output's.
 * @example limitFetch({ ...metered, estimator: learningEstimator({ quantile: 0.95 }) });
 */
export function learningEstimator(options: LearningEstimatorOptions = {}): Estimator {
  return options.start ?? simpleEstimator(); // to be built
}
