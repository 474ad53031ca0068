/** The mean of the input is exact over as many calls; then it forgets slowly. */
const MEMORY_CALLS = 64;

/** A single call counts at most this much: something else than text is in it. */
const MOST_RATIO = 8;

/** How far an answer moves the quantile, on a scale of natural logarithms: about a tenth. */
const STEP = 0.1;

/** What is left of a logarithm's rounding must not become a token. */
const ROUNDING = 1e-6;

/**
 * What was learned of one model.
 *
 * Input: the mean of reported ÷ estimated. It is the same for long and short prompts, and exact
 * from the first call on if they are alike.
 *
 * Output: a quantile, because a few answers are much longer than the others. Whatever the answers
 * are, the share of covered ones cannot stay away from it: each covered answer lowers the
 * reservation by 0.1 · (1 − p), each other one raises it by 0.1 · p, so the share is p plus what
 * the logarithm has moved in all ÷ (0.1 · answers). Steps alone would need hundreds of answers to
 * get from a first guess to answers of ten tokens. So the largest answer counts at first: of n
 * answers it covers n ÷ (n + 1) on average, which is p for the last of them.
 */
export class LearnedModel {
  readonly #quantile: number;
  #inputs = 0;
  #ratio = 1;
  #answers = 0;
  #logOutput = 0;

  constructor(quantile: number) {
    this.#quantile = quantile;
  }

  /** Corrects tokens that were estimated by the text. */
  corrected(tokens: number): number {
    return wholeTokens(tokens * this.#ratio);
  }

  /** Tokens to reserve for one answer that may have any length; undefined before any was seen. */
  get output(): number | undefined {
    return this.#answers === 0 ? undefined : wholeTokens(Math.expm1(this.#logOutput));
  }

  /** Learns what the provider counted for a prompt ÷ what was estimated. */
  learnInput(ratio: number): void {
    const x = Math.min(Math.max(ratio, 1 / MOST_RATIO), MOST_RATIO);
    this.#inputs = Math.min(this.#inputs + 1, MEMORY_CALLS);
    this.#ratio += (x - this.#ratio) / this.#inputs;
  }

  /** Learns the length of an answer, which could have had `most` tokens. */
  learnOutput(output: number, most: number): void {
    const y = Math.log1p(output);
    const isCovered = this.#answers > 0 && y <= this.#logOutput;
    // An answer that was cut off at its maximum says how long it is at least.
    if (isCovered && output >= most) return;
    const p = this.#quantile;
    this.#answers += 1;
    if (this.#answers === 1 || this.#answers / (this.#answers + 1) <= p)
      this.#logOutput = Math.max(y, this.#logOutput);
    else this.#logOutput += STEP * (p - (isCovered ? 1 : 0));
  }
}

/** Rounded up. The logarithm of empty answers may be a little below 0. */
function wholeTokens(tokens: number): number {
  return Math.max(0, Math.ceil(tokens - ROUNDING));
}
