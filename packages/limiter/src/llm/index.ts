export {
  learningEstimator,
  type LearningEstimatorOptions,
} from "./estimating/learning-estimator.ts";
export { simpleEstimator, type SimpleEstimatorOptions } from "./estimating/simple-estimator.ts";
export { modelResource } from "./model-resource.ts";
export type { MeteredOptions } from "./options.ts";
export type { Estimate, Estimator, LlmCall } from "./tokens/llm-call.ts";
export type { MeteredRecord } from "./tokens/metered-record.ts";
export { METERING, type Metering } from "./tokens/metering.ts";
export type { TokenKind, TokenUsage } from "./tokens/token-usage.ts";
export {
  readUpstreamLimits,
  type UpstreamLimit,
  type UpstreamLimits,
} from "./upstream/upstream-limits.ts";
export type { UpstreamMirror } from "./upstream/upstream-mirror.ts";
