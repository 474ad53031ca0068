import { BoundedMap } from "../../core/bounded-map.ts";
import { ValidationError } from "../../core/errors.ts";
import { checkOptions, hasMethod, optionNames } from "../../core/options.ts";
import type { Estimate, Estimator, LlmCall } from "../tokens/llm-call.ts";
import { BYTES_PER_TOKEN, type TokenUsage } from "../tokens/token-usage.ts";
import { LearnedModel } from "./learned-model.ts";
import { simpleEstimator } from "./simple-estimator.ts";
import { isWholeTokens } from "./whole-tokens.ts";

/** How `learningEstimator` learns. */
export interface LearningEstimatorOptions {
  /**
   * Estimates before anything is learned. Later, its estimate of the input is corrected.
   * @default simpleEstimator()
   */
  readonly start?: Estimator;
  /** The share of answers that the reservation should cover. @default 0.8 */
  readonly quantile?: number;
  /** The most models to remember; the least recently used one is dropped. @default 1000 */
  readonly maxKeys?: number;
}

const OPTION_NAMES = optionNames<LearningEstimatorOptions>({
  start: true,
  quantile: true,
  maxKeys: true,
});

const MOST_KEYS = 1_000_000;

/**
 * Learns from what providers report, for each model: the mean of the input's real tokens, and a
 * quantile of the output's.
 * @example limitFetch({ ...metered, estimator: learningEstimator({ quantile: 0.95 }) });
 */
export function learningEstimator(options: LearningEstimatorOptions = {}): Estimator {
  checkLearningOptions(options);
  const { start = simpleEstimator(), quantile = 0.8, maxKeys = 1000 } = options;
  const models = new LearnedModels(quantile, maxKeys);
  /** The estimates of `start`. Tokenizers are slow, so they must not run again to learn. */
  const started = new WeakMap<LlmCall, Estimate>();
  return {
    estimate(call: LlmCall): Estimate {
      const estimate = start.estimate(call);
      started.set(call, estimate);
      const model = models.use(call.model);
      const each = model?.output;
      const most = call.maxOutputTokens ?? Infinity;
      return {
        input: model?.correctInput(estimate.input) ?? estimate.input,
        output: each === undefined ? estimate.output : Math.min(each, most) * call.choices,
      };
    },
    learn(call: LlmCall, _reserved: Estimate, usage: TokenUsage): void {
      const { input, cachedInput, cacheWriteInput, output } = usage;
      if (![input, cachedInput, cacheWriteInput, output].every(isWholeTokens)) return;
      const prompt = input + cachedInput + cacheWriteInput;
      // A prompt has at least one token. A provider that reports none did not count.
      if (prompt === 0) return;
      const model = models.use(call.model) ?? models.add(call.model);
      const estimate = started.get(call) ?? start.estimate(call);
      // The tokens of files do not depend on the text.
      if (call.images === 0 && estimate.input > 0) model.learnInput(prompt, estimate.input);
      const most = call.maxOutputTokens ?? Infinity;
      // Embeddings have no answer, and must not make those of the model look short.
      if (most > 0) model.learnOutput(output / call.choices, most);
    },
    tokensOf(call: LlmCall, textBytes: number): number {
      const tokens = start.tokensOf?.(call, textBytes) ?? Math.ceil(textBytes / BYTES_PER_TOKEN);
      return models.use(call.model)?.correctOutput(tokens) ?? tokens;
    },
  };
}

function checkLearningOptions(options: LearningEstimatorOptions): void {
  checkOptions(options, OPTION_NAMES, "learningEstimator");
  const { start, quantile = 0.8, maxKeys = 1 } = options;
  if (start !== undefined && !hasMethod(start, "estimate"))
    throw new ValidationError("start", start, "must be an estimator, such as simpleEstimator()");
  if (!(typeof quantile === "number" && quantile > 0 && quantile < 1))
    throw new ValidationError(
      "quantile",
      quantile,
      "must be the share of answers to cover, between 0 and 1, such as 0.8",
    );
  if (!(Number.isInteger(maxKeys) && maxKeys >= 1 && maxKeys <= MOST_KEYS))
    throw new ValidationError("maxKeys", maxKeys, `must be a whole number from 1 to ${MOST_KEYS}`);
}

/** What was learned, by model. If there are too many, the least recently used one is dropped. */
class LearnedModels {
  readonly #quantile: number;
  readonly #models: BoundedMap<string, LearnedModel>;

  constructor(quantile: number, maxKeys: number) {
    this.#quantile = quantile;
    this.#models = new BoundedMap(maxKeys);
  }

  use(name: string): LearnedModel | undefined {
    const model = this.#models.get(name);
    if (model !== undefined) this.#models.set(name, model);
    return model;
  }

  add(name: string): LearnedModel {
    const model = new LearnedModel(this.#quantile);
    this.#models.set(name, model);
    return model;
  }
}
