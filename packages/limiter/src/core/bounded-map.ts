/**
 * A map that holds at most `max` entries: the one that was set longest ago is dropped. Reading does
 * not count; a cache that keeps what is used sets it again.
 *
 * @example const known = new BoundedMap<string, Policy>(1000);
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number;
  /**
   * One iteration over all entries, which is continued: a new one would have to skip everything
   * that was dropped before, which took 20 µs for each new key. But V8 keeps every former table of
   * a map for its iterators, so there is a new one after `max` changes: one that was kept forever
   * made a map of 100 entries grow by 60 MB in a million changes.
   */
  #oldest: Iterator<Key, undefined> = this.keys();
  #changes = 0;

  constructor(max: number) {
    super();
    this.#max = max;
  }

  override set(key: Key, value: Value): this {
    this.delete(key);
    super.set(key, value);
    this.#changes += 1;
    if (this.#changes > this.#max) {
      this.#oldest = this.keys();
      this.#changes = 0;
    }
    if (this.size > this.#max) this.delete(this.#oldest.next().value!);
    return this;
  }
}
