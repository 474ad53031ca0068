import type { Policy } from "../../core/policy.ts";
import { GroupCommit } from "../group-commit.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketOutcome, BucketWork } from "./bucket-plan.ts";
import type { Pressure } from "./pressure.ts";
import type { Unresolved } from "./unresolved.ts";

/**
 * Buckets remembered: each is about a kilobyte, so this is 10 MB, and a forgotten one costs a read.
 */
const MAX_REMEMBERED = 10_000;

/** A request, by when it was sent and in which order: many are sent within a millisecond. */
export interface Asking {
  readonly ms: number;
  readonly order: number;
}

const NEVER_ASKED: Asking = { ms: -Infinity, order: 0 };

/** Before everything that anybody compares it with. */
const LONG_AGO: Asking = { ms: -Infinity, order: 1 };

/** What a process knows of one bucket. */
export interface Remembered {
  /** Undefined when the bucket does not exist, as far as this process knows. */
  image: BucketImage | undefined;
  /** The request whose answer `image` is: it was true when that was sent, or later. */
  asOf: Asking;
  /**
   * The last request that was sent before that answer came: it may have been carried out before or
   * after.
   */
  answeredBy: number;
  /** Write units of failed conditions since the last write that succeeded. */
  failedUnits: number;
  /** The version of the item whose policy was compared with the stored configuration. */
  comparedVersion: number | undefined;
  /** That comparison, while it is under way. */
  comparing: Promise<Policy | undefined> | undefined;
  /** What the clock is rounded to for this bucket; see tick.ts. */
  tickMs: number;
  /** Writes that got no answer, until a later one tells. */
  unresolved: readonly Unresolved[];
  /** How busy the bucket is, over all its shards; kept with shard 0. */
  pressure: Pressure | undefined;
  /** Operations on their way to this bucket. */
  readonly queue: GroupCommit<BucketWork, BucketOutcome>;
}

/** The last image of each bucket that this process touched, least recently used first. */
export class BucketImages {
  readonly #entries = new Map<string, Remembered>();
  #requests = 0;

  /** Notes that a request is sent now. */
  asking(ms: number): Asking {
    this.#requests += 1;
    return { ms, order: this.#requests };
  }

  /** The entry of a bucket, if this process has touched it. */
  find(key: string): Remembered | undefined {
    return this.#entries.get(key);
  }

  /** The entry of a bucket, new if need be. */
  entry(key: string): Remembered {
    const held = this.#entries.get(key);
    const entry = held ?? {
      image: undefined,
      asOf: NEVER_ASKED,
      answeredBy: 0,
      failedUnits: 0,
      comparedVersion: undefined,
      comparing: undefined,
      tickMs: 1,
      unresolved: [],
      pressure: undefined,
      queue: new GroupCommit<BucketWork, BucketOutcome>(),
    };
    if (held !== undefined) this.#entries.delete(key);
    this.#entries.set(key, entry);
    if (this.#entries.size > MAX_REMEMBERED) this.#forgetOne();
    return entry;
  }

  /** Remembers an answer, unless a newer one is known: replies overtake each other. */
  remember(key: string, image: BucketImage | undefined, asOf: Asking): void {
    const entry = this.entry(key);
    if (isOlder(entry, image, asOf)) return;
    entry.image = image;
    entry.asOf = asOf;
    entry.answeredBy = this.#requests;
  }

  /**
   * Notes that a write changed a bucket without telling what it is now: its image still serves to
   * write with, but says nothing about now.
   */
  outdate(key: string): void {
    this.entry(key).asOf = LONG_AGO;
  }

  /**
   * Forgets buckets that may have changed. What is on its way to one still needs its image, of
   * which the table will tell what is wrong.
   */
  forget(keyPrefix: string): void {
    for (const [key, entry] of this.#entries) {
      if (!key.startsWith(keyPrefix)) continue;
      if (entry.queue.isIdle) this.#entries.delete(key);
      else entry.asOf = NEVER_ASKED;
    }
  }

  /** Entries with writes under way are kept: their queue is here. */
  #forgetOne(): void {
    for (const [key, entry] of this.#entries) {
      if (!entry.queue.isIdle) continue;
      this.#entries.delete(key);
      return;
    }
  }
}

/**
 * Within one version of one item the write counter tells; across versions only the order of asking
 * does. That there is no item is believed only if it was asked after the item was seen: a read that
 * overtakes the creation of a bucket must not make its creator forget it, and with it the leases
 * that it holds.
 */
function isOlder(
  { image: held, asOf: heldAsOf, answeredBy }: Remembered,
  image: BucketImage | undefined,
  asOf: Asking,
): boolean {
  if (held === undefined) return false;
  if (image === undefined) return asOf.order <= answeredBy;
  const isSame = held.version === image.version && held.creation === image.creation;
  return isSame ? image.writes < held.writes : asOf.order < heldAsOf.order;
}
