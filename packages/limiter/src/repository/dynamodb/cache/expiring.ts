import { BoundedMap } from "../../../core/bounded-map.ts";
import type { MaybePromise } from "../../port.ts";
import type { Clock } from "../../system-clock.ts";

/** The most values that are kept, by default. */
const MAX_VALUES = 10_000;

interface Held<Value> {
  readonly value: Value;
  readonly readAtMs: number;
}

/**
 * Caches values by key for a while. Calls that ask for a key while it is being read share the read,
 * and a read that began before `forget` or `learn` does not overwrite what came after it.
 *
 * @example
 * const parents = new Expiring({ read: (id) => readParent(id), clock, ttlMs: 60_000 });
 * const parent = parents.fresh("key-1") ?? (await parents.get("key-1"));
 */
export class Expiring<Value> {
  readonly #held: BoundedMap<string, Held<Value>>;
  readonly #reads = new Map<string, Promise<Value>>();
  readonly #read: (key: string) => Promise<Value>;
  readonly #clock: Clock;
  readonly #ttlMs: number;

  constructor(options: {
    readonly read: (key: string) => Promise<Value>;
    readonly clock: Clock;
    readonly ttlMs: number;
    readonly maxValues?: number;
  }) {
    this.#read = options.read;
    this.#clock = options.clock;
    this.#ttlMs = options.ttlMs;
    this.#held = new BoundedMap(options.maxValues ?? MAX_VALUES);
  }

  /**
   * The cached value while it is fresh. A value from the future is not: the clock was set back, and
   * the value would stay fresh until the clock has caught up.
   */
  fresh(key: string, nowMs = this.#clock.now()): Value | undefined {
    const held = this.#held.get(key);
    if (held === undefined) return undefined;
    const ageMs = nowMs - held.readAtMs;
    return ageMs >= 0 && ageMs < this.#ttlMs ? held.value : undefined;
  }

  /** The cached value, or the one that is read now. */
  get(key: string): MaybePromise<Value> {
    return this.fresh(key) ?? this.#reads.get(key) ?? this.#startReading(key);
  }

  /** Reads a value now. The cached one serves until then, and longer if the read fails. */
  renew(key: string): Promise<Value> {
    return this.#startReading(key);
  }

  /** Notes what this process has just stored. */
  learn(key: string, value: Value): void {
    this.forget(key);
    this.#held.set(key, { value, readAtMs: this.#clock.now() });
  }

  /** Forgets a value, so that the next call reads it again. */
  forget(key: string): void {
    this.#held.delete(key);
    this.#reads.delete(key);
  }

  #startReading(key: string): Promise<Value> {
    const readAtMs = this.#clock.now();
    const reading = this.#read(key);
    this.#reads.set(key, reading);
    const endReading = (): boolean => this.#reads.get(key) === reading && this.#reads.delete(key);
    reading.then(
      (value) => endReading() && this.#held.set(key, { value, readAtMs }),
      // Callers that share the read get its error; the next call reads again.
      () => endReading(),
    );
    return reading;
  }
}
