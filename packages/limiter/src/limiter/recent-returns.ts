/**
 * Most buckets that are remembered at a time, about a megabyte. With more, all of them are
 * forgotten, and attempts that began before are made again: one decision too many for each, but no
 * token is missed.
 */
const MAX_BUCKETS = 10_000;

/**
 * Remembers which buckets got tokens back while attempts to take are under way. The result of such
 * an attempt may be older than the tokens, and only the result says which buckets it depends on.
 */
export class RecentReturns {
  readonly #maxBuckets: number;
  /** When each bucket last got tokens back, counted in returns. */
  readonly #returnedAt = new Map<string, number>();
  #returns = 0;
  #forgottenAt = 0;
  #underWay = 0;

  constructor(maxBuckets = MAX_BUCKETS) {
    this.#maxBuckets = maxBuckets;
  }

  /** Begins an attempt; its result is compared by the number that this returns. */
  begin(): number {
    this.#underWay += 1;
    return this.#returns;
  }

  /** Ends an attempt. Returns matter to no caller once no attempt is left. */
  end(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#returnedAt.clear();
  }

  note(bucket: string): void {
    if (this.#underWay === 0) return;
    this.#returns += 1;
    if (this.#returnedAt.size >= this.#maxBuckets) {
      this.#returnedAt.clear();
      this.#forgottenAt = this.#returns;
    }
    this.#returnedAt.set(bucket, this.#returns);
  }

  /** Whether one of the buckets got tokens back after an attempt began, as far as is known. */
  isAnySince(begun: number, buckets: Iterable<string>): boolean {
    if (begun < this.#forgottenAt) return true;
    for (const bucket of buckets) if ((this.#returnedAt.get(bucket) ?? 0) > begun) return true;
    return false;
  }
}
