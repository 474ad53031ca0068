import type { BucketKey } from "../items/bucket-key.ts";
import { SharedRounds } from "./shared-rounds.ts";

/** A bucket that a call takes from, by the key of its shard 0. */
interface Charged {
  readonly key: BucketKey;
}

/**
 * The calls of this process that are taking from several buckets. What they have taken may still go
 * back, so no refusal may rest on it.
 */
export class UndecidedCalls {
  /** By bucket; each resolves to whether its call gave something back. */
  readonly #byBucket = new Map<string, Set<Promise<boolean>>>();
  readonly #waits = new SharedRounds<boolean>();

  /** Whether any takes from one of these buckets. */
  has(charges: readonly Charged[]): boolean {
    return charges.some(({ key }) => this.#byBucket.has(key.text));
  }

  /** Notes a call for as long as it is taking. */
  note<T>(
    charges: readonly Charged[],
    taking: Promise<T>,
    hasUndone: (outcome: T) => boolean,
  ): Promise<T> {
    const decided = taking.then(hasUndone, () => true);
    for (const { key } of charges) {
      const calls = this.#byBucket.get(key.text) ?? new Set();
      this.#byBucket.set(key.text, calls.add(decided));
    }
    return taking.finally(() => {
      for (const { key } of charges) {
        const calls = this.#byBucket.get(key.text)!;
        calls.delete(decided);
        if (calls.size === 0) this.#byBucket.delete(key.text);
      }
    });
  }

  /** Waits for all that take from these buckets now; returns whether any gave something back. */
  async wait(charges: readonly Charged[]): Promise<boolean> {
    const waits = charges.map(({ key: { text } }) =>
      this.#waits.join(text, async () =>
        (await Promise.all(this.#byBucket.get(text) ?? [])).includes(true),
      ),
    );
    return (await Promise.all(waits)).includes(true);
  }
}
