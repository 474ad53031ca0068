import type { BucketKey } from "../items/bucket-key.ts";
import { SharedRounds } from "./shared-rounds.ts";

/** A bucket that a call takes from, by the key of its shard 0. */
interface ClaimedBucket {
  readonly key: BucketKey;
}

/**
 * The calls of this process that are taking from several buckets. What they have taken may still go
 * back, so no refusal may rest on it.
 */
export class UndecidedCalls {
  readonly #byBucket = new Map<string, Set<Promise<unknown>>>();
  readonly #waits = new SharedRounds<unknown>();

  /** Whether any takes from a bucket. */
  has({ key }: ClaimedBucket): boolean {
    return this.#byBucket.has(key.text);
  }

  /** Notes a call for as long as it is taking. */
  note<T>(claims: readonly ClaimedBucket[], taking: Promise<T>): Promise<T> {
    for (const { key } of claims) {
      const calls = this.#byBucket.get(key.text) ?? new Set();
      this.#byBucket.set(key.text, calls.add(taking));
    }
    return taking.finally(() => {
      for (const { key } of claims) {
        const calls = this.#byBucket.get(key.text)!;
        calls.delete(taking);
        if (calls.size === 0) this.#byBucket.delete(key.text);
      }
    });
  }

  /** Waits until all that take from these buckets now are decided. */
  async wait(claims: readonly ClaimedBucket[]): Promise<void> {
    const whenDecided = (text: string): Promise<unknown> =>
      Promise.allSettled(this.#byBucket.get(text) ?? []);
    await Promise.all(
      claims.map(({ key: { text } }) => this.#waits.join(text, () => whenDecided(text))),
    );
  }
}
