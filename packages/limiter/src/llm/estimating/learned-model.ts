/** The mean of the input is exact over this many calls; then it forgets slowly. */
const MEMORY_CALLS = 64;

/** The highest ratio that one call may count as. Above it, the prompt holds more than text. */
const MOST_RATIO = 8;

/**
 * Providers add some tokens to each message, so that "hi" has eight of them. If prompts are shorter
 * than this on average, the ratio does not apply to the text of an answer.
 */
const LEAST_MEAN_INPUT = 50;

/** How far an answer moves the quantile, in natural logarithms: about a tenth. */
const STEP = 0.1;

/** Rounding errors of a logarithm must not become a token. */
const ROUNDING = 1e-6;

/**
 * What was learned about one model.
 *
 * Input: the mean of reported ÷ estimated, weighted by the estimate, so that a greeting does not
 * decide how long a document is. For prompts of equal length it is `ratio + (x − ratio) ÷ n`, and
 * from 64 calls on `÷ 64`.
 *
 * Output: a quantile, because a few answers are much longer than the others. Whatever the answers
 * are, the share of covered ones cannot stay away from p: each covered answer lowers the
 * reservation by 0.1 · (1 − p), each other one raises it by 0.1 · p, so the share is p plus what
 * the logarithm has moved in all ÷ (0.1 · answers). Steps alone would need hundreds of answers to
 * get from a first guess to answers of ten tokens. So the largest answer counts at first: of n
 * answers it covers n ÷ (n + 1) on average, which is p for the last of them.
 */
export class LearnedModel {
  readonly #quantile: number;
  #inputs = 0;
  /** Reported and estimated tokens of prompts. Older ones count less. */
  #reported = 0;
  #estimated = 0;
  #answers = 0;
  #logOutput = 0;

  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  /** Corrects tokens that were estimated for a prompt. */
  correctInput(tokens: number): number {
    return this.#inputs === 0 ? tokens : toWholeTokens((tokens * this.#reported) / this.#estimated);
  }

  /** Corrects tokens that were counted by an answer's text. */
  correctOutput(tokens: number): number {
    const isKnown = this.#estimated >= LEAST_MEAN_INPUT * this.#inputs;
    return isKnown ? this.correctInput(tokens) : tokens;
  }

  /** Tokens to reserve for one answer without a maximum; undefined before the first answer. */
  get output(): number | undefined {
    return this.#answers === 0 ? undefined : toWholeTokens(Math.expm1(this.#logOutput));
  }

  /** Learns the reported and the estimated tokens of a prompt. The estimate is not 0. */
  learnInput(reported: number, estimated: number): void {
    const x = Math.min(Math.max(reported / estimated, 1 / MOST_RATIO), MOST_RATIO);
    const isFull = this.#inputs === MEMORY_CALLS;
    const kept = isFull ? 1 - 1 / MEMORY_CALLS : 1;
    if (!isFull) this.#inputs += 1;
    this.#reported = this.#reported * kept + x * estimated;
    this.#estimated = this.#estimated * kept + estimated;
  }

  /** Learns the length of an answer, which could have had `most` tokens. */
  learnOutput(output: number, most: number): void {
    const y = Math.log1p(output);
    const isCovered = this.#answers > 0 && y <= this.#logOutput;
    // An answer that was cut off at its maximum would have been longer.
    if (isCovered && output >= most) return;
    const p = this.#quantile;
    this.#answers += 1;
    if (this.#answers === 1 || this.#answers / (this.#answers + 1) <= p)
      this.#logOutput = Math.max(y, this.#logOutput);
    else this.#logOutput += STEP * (p - (isCovered ? 1 : 0));
  }
}

/** Rounds up. The logarithm of empty answers may be slightly below 0. */
function toWholeTokens(tokens: number): number {
  return Math.max(0, Math.ceil(tokens - ROUNDING));
}
