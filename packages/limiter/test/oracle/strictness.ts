import type { Terms } from "./terms.ts";

/**
 * What happened to one limit of one bucket. Times never go back: a bucket lives by the latest time
 * that a write showed it.
 */
interface Entry {
  readonly atMs: number;
  readonly netMilli: bigint;
  /** In force from here on. */
  readonly terms: Terms;
}

/**
 * Promise 1, literally: over every interval that ends with a grant, the tokens taken less what
 * was given back is at most the capacity that held when the interval began plus what was earned
 * since. It is computed from the list of what happened alone, without any balance.
 */
export class Strictness {
  readonly #entries: Entry[] = [];

  /**
   * Remembers a change, and returns what is wrong with it; only grants can be wrong, because
   * settling may cause debt.
   */
  add(stampMs: number, tokens: number, terms: Terms, isGrant: boolean): string | undefined {
    if (tokens === 0 && this.#entries.at(-1)?.terms === terms) return undefined;
    this.#entries.push({ atMs: stampMs, netMilli: BigInt(tokens) * 1000n, terms });
    return isGrant && tokens > 0 ? this.#excess() : undefined;
  }

  #excess(): string | undefined {
    const entries = this.#entries;
    let later = entries.at(-1)!;
    let net = 0n;
    /** Earned under terms that ended; rounded up, because it stands in an upper bound. */
    let earned = 0n;
    let underTermsMs = 0;
    for (let index = entries.length - 1; index >= 0; index -= 1) {
      const entry = entries[index]!;
      if (entry.terms !== later.terms) {
        earned += earnedMilli(later.terms, underTermsMs);
        underTermsMs = 0;
      }
      underTermsMs += later.atMs - entry.atMs;
      later = entry;
      net += entry.netMilli;
      const capacityMilli = (entries[index - 1] ?? entry).terms.capacityMilli;
      const bound = capacityMilli + earned + earnedMilli(entry.terms, underTermsMs);
      if (net > bound)
        return `${net} millitokens of ${entry.terms.name} were taken since ${entry.atMs}, where at most ${bound} may be`;
    }
    return undefined;
  }
}

function earnedMilli({ amount, period }: Terms, elapsedMs: number): bigint {
  return (amount * BigInt(elapsedMs) + period - 1n) / period;
}
