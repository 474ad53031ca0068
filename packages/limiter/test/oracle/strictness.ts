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
  /** How many windows were opened so far. */
  readonly opened: number;
}

/**
 * Promise 1, literally: over every interval that ends with a grant, the tokens taken less what
 * was given back is at most the capacity that held when the interval began plus what was earned
 * since. It is computed from the list of what happened alone, without any balance. Within a window,
 * what was granted less what was given back is at most the capacity in force and what was carried
 * in.
 */
export class Strictness {
  readonly #entries: Entry[] = [];

  /**
   * Remembers a change, and returns what is wrong with it; only grants can be wrong, because
   * settling may cause debt.
   */
  add(
    stampMs: number,
    { tokens, terms, opened = 0 }: { tokens: number; terms: Terms; opened?: number },
    isGrant: boolean,
  ): string | undefined {
    const last = this.#entries.at(-1);
    if (tokens === 0 && last?.terms === terms && last.opened === opened) return undefined;
    this.#entries.push({ atMs: stampMs, netMilli: BigInt(tokens) * 1000n, terms, opened });
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
        earned += earnedMilli(later.terms, underTermsMs) + raisedMilli(entry.terms, later.terms);
        underTermsMs = 0;
      }
      underTermsMs += later.atMs - entry.atMs;
      later = entry;
      net += entry.netMilli;
      const before = entries[index - 1];
      const isOpening = entry.opened !== (before?.opened ?? 0);
      const startMilli = isOpening ? mostMilli(entry.terms) : startBound(before ?? entry, entry);
      if (startMilli === undefined) continue;
      const bound = startMilli + earned + earnedMilli(entry.terms, underTermsMs);
      if (net > bound)
        return `${net} millitokens of ${entry.terms.name} were taken since ${entry.atMs}, where at most ${bound} may be`;
      if (isOpening) return undefined;
    }
    return undefined;
  }
}

/** The most that a window begins with, or that a rate holds. */
function mostMilli({ capacityMilli, window }: Terms): bigint {
  return capacityMilli + (window?.unusedMilli ?? 0n);
}

/** The most that was there before an entry; undefined where only the whole window has a bound. */
function startBound({ terms: before }: Entry, { terms }: Entry): bigint | undefined {
  if (before.window === undefined) return before.capacityMilli;
  return terms.window === undefined ? terms.capacityMilli : undefined;
}

/** What a changed capacity adds to the window that is open. */
function raisedMilli(before: Terms, after: Terms): bigint {
  const isWindow = before.window !== undefined && before.window.kind === after.window?.kind;
  return isWindow ? after.capacityMilli - before.capacityMilli : 0n;
}

function earnedMilli({ amount, period }: Terms, elapsedMs: number): bigint {
  return (amount * BigInt(elapsedMs) + period - 1n) / period;
}
