/**
 * Most buckets that are remembered at a time, about a megabyte. With more, all of them are
 * forgotten, and attempts that began before are repeated: one unnecessary decision for each, but no
 * returned token is missed.
 */
const MAX_BUCKETS = 10_000;

/**
 * Remembers which buckets got tokens back while attempts to take are in progress. The result of
 * such an attempt may be older than the returned tokens, and only the result says which buckets it
 * depends on.
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

  /** Begins an attempt. Returns a number to compare its result by. */
  begin(): number {
    this.#underWay += 1;
    return this.#returns;
  }

  /** Ends an attempt. After the last one, no return needs to be remembered. */
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
