/** One rate that was tried. */
export interface Trial {
  readonly rate: number;
  readonly passed: boolean;
}

/** Where to search. */
export interface RateSearch {
  /** The first rate that is tried. */
  readonly startRate: number;
  readonly mostRate: number;
  /** Ends the search after the trial that is under way. */
  readonly signal?: AbortSignal;
}

/** The result is this close to the first rate that misses. */
const PRECISION = 0.1;

/** Doubling or halving takes at most 17 trials, and the bisection 4. */
const MOST_TRIALS = 24;

/**
 * Searches for the highest rate that holds: doubles it until one misses, then halves the gap. An
 * answer is only as good as its trials are long. Returns 0 if even a rate of 1 misses.
 */
export async function findHighestRate<T extends Trial>(
  { startRate, mostRate, signal }: RateSearch,
  tryRate: (rate: number) => Promise<T>,
): Promise<{ readonly rate: number; readonly trials: readonly T[] }> {
  const trials: T[] = [];
  let holds = 0;
  let misses: number | undefined;
  let rate = startRate;
  while (trials.length < MOST_TRIALS) {
    const trial = await tryRate(rate);
    // The rate of an interrupted trial is not known to hold.
    if (signal?.aborted === true) break;
    trials.push(trial);
    if (trial.passed) holds = rate;
    else misses = rate;
    if (holds === mostRate) break;
    if (misses !== undefined && misses - holds <= Math.max(1, holds * PRECISION)) break;
    rate = misses === undefined ? Math.min(mostRate, holds * 2) : Math.round((holds + misses) / 2);
  }
  return { rate: holds, trials };
}
