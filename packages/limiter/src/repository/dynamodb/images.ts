import type { BucketImage } from "./bucket-item.ts";

/** Buckets remembered: each is about a kilobyte, so this is 10 MB, and a forgotten one costs a read. */
const MAX_REMEMBERED = 10_000;

/** What a process knows of one bucket. */
export interface Remembered {
  /** Undefined when the bucket does not exist, as far as this process knows. */
  image: BucketImage | undefined;
  /** When the request was sent whose answer `image` is: it was true then or later. */
  asOfMs: number;
  /** Write units of failed conditions since the last write that succeeded. */
  failedUnits: number;
  /** The version of the item whose policy was compared with the stored configuration. */
  comparedVersion: number | undefined;
  /** The end of the queue of writes to this bucket. */
  tail: Promise<unknown>;
  /** Writes in the queue. */
  waiting: number;
}

/** The last image of each bucket that this process touched, least recently used first. */
export class BucketImages {
  readonly #entries = new Map<string, Remembered>();

  /** The entry of a bucket, if this process has touched it. */
  find(key: string): Remembered | undefined {
    return this.#entries.get(key);
  }

  /** The entry of a bucket, new if need be. */
  entry(key: string): Remembered {
    const held = this.#entries.get(key);
    const entry = held ?? {
      image: undefined,
      asOfMs: -Infinity,
      failedUnits: 0,
      comparedVersion: undefined,
      tail: Promise.resolve(),
      waiting: 0,
    };
    if (held !== undefined) this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > MAX_REMEMBERED) this.#forgetOne();
    return entry;
  }

  /** Remembers an answer, unless a newer one is known: replies overtake each other. */
  remember(key: string, image: BucketImage | undefined, asOfMs: number): void {
    const entry = this.entry(key);
    if (isOlder(entry, image, asOfMs)) return;
    entry.image = image;
    entry.asOfMs = asOfMs;
  }

  forget(keyPrefix: string): void {
    for (const key of this.#entries.keys()) if (key.startsWith(keyPrefix)) this.#entries.delete(key);
  }

  /** Entries with writes under way are kept: their queue is here. */
  #forgetOne(): void {
    for (const [key, entry] of this.#entries) {
      if (entry.waiting > 0) continue;
      this.#entries.delete(key);
      return;
    }
  }
}

/** Within one version the write counter tells; across versions, and for an item that is gone, only the time of asking does. */
function isOlder({ image: held, asOfMs: heldAsOfMs }: Remembered, image: BucketImage | undefined, asOfMs: number): boolean {
  if (held !== undefined && image !== undefined && held.version === image.version) return image.writes < held.writes;
  return asOfMs < heldAsOfMs;
}
