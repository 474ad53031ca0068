/*
 * What this process knows of buckets: the last image of each shard that it read or wrote, of those
 * that were used last, and what these images say together about a bucket with several shards.
 * Only this file changes an entry. Whatever else is kept for a bucket (the state of its writer, the
 * policy comparison, the pressure) is keyed by the entry, so that it is forgotten together with it.
 */
import { addAmounts, NO_AMOUNTS, type Amounts } from "../../../core/amounts.ts";
import type { Clock } from "../../system-clock.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import { SharedRounds } from "./shared-rounds.ts";
import type { ItemReader } from "../table/item-reader.ts";

/**
 * The most shards remembered: each is about a kilobyte, so 10 MB in all. A forgotten one costs a
 * read.
 */
const MAX_ENTRIES = 10_000;

/** The most reads of all shards, for a bucket that is split again during each of them. */
export const MAX_READS = 4;

/** When a request was sent. The order breaks ties, because many are sent in one millisecond. */
export interface RequestStamp {
  readonly ms: number;
  readonly order: number;
}

/**
 * The most round trips of a call that takes from several buckets, until all that it will not keep
 * has gone back: a take and its give-back, each after a write that was under way.
 */
const ROUND_TRIPS = 4;

/** The least and the most time for deciding such a call, however fast requests are now. */
const DECISION_MS = { least: 50, most: 250 };

/** How much of the slowest round trip is remembered with each that follows. */
const MEMORY = 0.9;

const NEVER_SEEN: RequestStamp = { ms: -Infinity, order: 0 };

/** Older than any real request, and yet seen. */
const LONG_AGO: RequestStamp = { ms: -Infinity, order: 1 };

/** What is remembered of one shard. */
export interface BucketEntry {
  /** Undefined when the shard does not exist, as far as this process knows. */
  readonly image: BucketImage | undefined;
  /** The request whose reply brought the image, which was true when it was sent, or later. */
  readonly seenAt: RequestStamp;
}

/** An entry as its owner may change it. */
interface OwnedEntry extends BucketEntry {
  image: BucketImage | undefined;
  seenAt: RequestStamp;
  /**
   * The order of the last request that was sent before the answer came: that one may have been
   * carried out before or after.
   */
  sentBeforeAnswer: number;
  /** What the image does not show yet, and the last request that may not show it either. */
  unseen: { readonly milli: Amounts; readonly order: number } | undefined;
  /** When this process noticed the last write of another one. */
  othersWroteMs: number;
  /** See `KnownShard`. */
  sure: SeenImage | undefined;
  /** Whether work is under way that needs the image: then the entry is not forgotten. */
  isPinned: boolean;
  /**
   * The keys of the other shards, in the entry of shard 0. Making 31 of them took as long as the
   * rest of a call.
   */
  siblings: BucketKey[] | undefined;
}

/** An image, and the request whose reply brought it. */
interface SeenImage {
  readonly image: BucketImage;
  readonly seenAt: RequestStamp;
}

/** What a shard holds, as far as this process knows. */
export interface SeenShard {
  readonly image: BucketImage;
  /** What transactions of this process have taken since, in millitokens: they return no image. */
  readonly unseenMilli?: Amounts | undefined;
}

/** One shard that exists, as far as this process knows. */
export interface KnownShard extends SeenShard {
  readonly key: BucketKey;
  readonly seenAt: RequestStamp;
  /** The last image that shows no take that another process may undo. */
  readonly sure?: SeenImage | undefined;
}

/** A bucket as far as this process knows it. */
export interface KnownBucket {
  /** How many shards it may have by now: the divisor of shard 0. */
  readonly count: number;
  /** Shard 0 first; none for a bucket that does not exist. */
  readonly shards: readonly KnownShard[];
  /**
   * Whether these are exactly the shards of the bucket. Otherwise some are not known, or were seen
   * before a split and others after it.
   */
  readonly isWhole: boolean;
  /** The oldest request that this comes from; undefined when the bucket was never requested. */
  readonly seenAt: RequestStamp | undefined;
}

/** The buckets of one namespace, or of all, as remembered and as stored. */
export class KnownBuckets {
  /**
   * The entries that were used since the last turn, and those of the turn before. When the first
   * are half of all that may be remembered, they take the place of the second, which are forgotten.
   * With one map in order of use, each use deletes and adds a key. That takes 25 µs for a key among
   * 10 000 that is used again and again: V8 keeps what was deleted in the key's own chain.
   */
  #recent = new Map<string, OwnedEntry>();
  #older = new Map<string, OwnedEntry>();
  /** The reads of all shards, by the key of shard 0. */
  readonly #readings = new SharedRounds<KnownBucket>();
  readonly #reader: ItemReader;
  readonly #clock: Clock;
  #requests = 0;
  /** The slowest of the last ones. */
  #roundTripMs = 0;

  constructor(reader: ItemReader, clock: Clock) {
    this.#reader = reader;
    this.#clock = clock;
  }

  /** The stamp of a request that is sent now. */
  stampRequest(): RequestStamp {
    this.#requests += 1;
    return { ms: this.#clock.now(), order: this.#requests };
  }

  /** How long other processes take to decide a call that takes from several buckets. */
  get decisionMs(): number {
    const { least, most } = DECISION_MS;
    return Math.min(most, Math.max(least, ROUND_TRIPS * this.#roundTripMs));
  }

  /** The last image of a shard, if there is one. */
  getImage({ text }: BucketKey): BucketImage | undefined {
    return this.#getEntry(text)?.image;
  }

  /** The entry of a shard, created if there is none; it counts as used. */
  entry({ text }: BucketKey): BucketEntry {
    return this.#touch(text);
  }

  /** Keeps an entry until `unpin`. */
  pin(entry: BucketEntry): void {
    (entry as OwnedEntry).isPinned = true;
  }

  /** Lets an entry be forgotten again. */
  unpin(entry: BucketEntry): void {
    (entry as OwnedEntry).isPinned = false;
  }

  /**
   * Remembers a reply, unless a newer one is known: replies overtake each other. `writtenUnits` are
   * those of the write of this process that it replies to.
   */
  remember(
    { text }: BucketKey,
    image: BucketImage | undefined,
    sent: RequestStamp,
    writtenUnits = 0,
  ): void {
    this.#roundTripMs = Math.max(this.#clock.now() - sent.ms, MEMORY * this.#roundTripMs);
    const entry = this.#touch(text);
    if (isOlder(entry, image, sent)) return;
    if (image === undefined) entry.sure = undefined;
    else {
      const isKnown = image.writes === (entry.image?.writes ?? 0) + writtenUnits;
      if (!isKnown) entry.othersWroteMs = this.#clock.now();
      const isSure = image.undone === undefined || sent.ms >= entry.othersWroteMs + this.decisionMs;
      if (isSure) entry.sure = { image, seenAt: sent };
      // An older one may show a take of this process that was undone since.
      else if (!isSameSoFar(entry.sure?.image, image)) entry.sure = undefined;
    }
    entry.image = image;
    entry.seenAt = sent;
    entry.sentBeforeAnswer = this.#requests;
    if (entry.unseen !== undefined && sent.order > entry.unseen.order) entry.unseen = undefined;
  }

  /** Whether nothing was undone on a bucket since it was known like this. */
  isSame(key: BucketKey, before: KnownBucket): boolean {
    const { shards } = this.get(key);
    if (shards.length !== before.shards.length) return false;
    return shards.every(({ image }, index) => {
      const seen = before.shards[index]!.image;
      return seen.shard === image.shard && isSameSoFar(seen, image);
    });
  }

  /**
   * Notes what was known of a bucket a while ago, longer than others need to decide a call. What
   * they took by then is final if nothing was undone since.
   */
  confirm(key: BucketKey, before: KnownBucket): void {
    if (!this.isSame(key, before)) return;
    for (const { key: shard, image, seenAt } of before.shards) {
      const entry = this.#touch(shard.text);
      if ((entry.sure?.seenAt.order ?? 0) < seenAt.order) entry.sure = { image, seenAt };
    }
  }

  /**
   * Notes that a write took from a shard without returning what it is now: the image can still be
   * used to write with, but it no longer says what the shard holds. A read under way may show the
   * write already. This is undecidable, so assume it does not, until the next request returns.
   */
  outdate({ text }: BucketKey, takenMilli: Amounts): void {
    const entry = this.#touch(text);
    const milli = addAmounts(entry.unseen?.milli ?? NO_AMOUNTS, takenMilli);
    entry.unseen = { milli, order: this.#requests };
    entry.seenAt = LONG_AGO;
  }

  /**
   * Forgets buckets that may have changed. A pinned entry keeps its image: a write that uses it
   * fails its condition if the image is wrong.
   */
  forget(keyPrefix: string): void {
    for (const entries of [this.#recent, this.#older])
      for (const [text, entry] of entries) {
        if (!text.startsWith(keyPrefix)) continue;
        if (entry.isPinned) Object.assign(entry, { seenAt: NEVER_SEEN, sure: undefined });
        else entries.delete(text);
      }
  }

  /** How many shards a bucket may have, as `get` says; `key` is that of its shard 0. */
  getCount({ text }: BucketKey): number {
    const first = this.#getEntry(text);
    return first === undefined || first.seenAt.order === 0 ? 1 : (first.image?.divisor ?? 1);
  }

  /** What is remembered of a bucket; `key` is that of its shard 0. */
  get(key: BucketKey): KnownBucket {
    const first = this.#getEntry(key.text);
    if (first === undefined || first.seenAt.order === 0)
      return { count: 1, shards: [], isWhole: false, seenAt: undefined };
    const { image, seenAt, unseen } = first;
    if (image === undefined) return { count: 1, shards: [], isWhole: true, seenAt };
    const { sure } = first;
    const shards: KnownShard[] = [{ key, image, seenAt, sure, unseenMilli: unseen?.milli }];
    if (image.divisor === 1) return { count: 1, shards, isWhole: true, seenAt };
    // While shards are merged, some have a larger divisor than shard 0, and so has the other half.
    let classes = image.divisor;
    for (let shard = 1; shard < classes; shard += 1) {
      const sibling = ((first.siblings ??= [])[shard] ??= buildSiblingKey(key, shard));
      const held = this.#getEntry(sibling.text);
      // What is left of a bucket that was deleted and created again is not part of it.
      if (held?.image === undefined || held.image.creation !== image.creation) continue;
      const { image: seen, seenAt: at, unseen: later } = held;
      const unseenMilli = later?.milli;
      shards.push({ key: sibling, image: seen, seenAt: at, sure: held.sure, unseenMilli });
      classes = Math.max(classes, held.image.divisor);
    }
    return {
      count: image.divisor,
      shards,
      isWhole: isPartition(shards, classes),
      seenAt: oldest(shards),
    };
  }

  /**
   * Reads every shard of a bucket. While one such read is under way, all who come share the next:
   * what they get was requested after they came.
   */
  readAll(key: BucketKey): Promise<KnownBucket> {
    return this.#readings.join(key.text, () => this.#readAllShards(key));
  }

  /** Reads every shard of a bucket, in one batch unless there turn out to be more. */
  async #readAllShards(key: BucketKey): Promise<KnownBucket> {
    for (let reads = 1; ; reads += 1) {
      const { shards } = this.get(key);
      const classes = Math.max(1, ...shards.map(({ image }) => image.divisor));
      await Promise.all(
        Array.from({ length: classes }, (_, shard) =>
          this.read(shard === 0 ? key : buildSiblingKey(key, shard)),
        ),
      );
      const known = this.get(key);
      if (known.isWhole || reads === MAX_READS) return known;
    }
  }

  /** Reads one shard. */
  async read(key: BucketKey): Promise<void> {
    const sent = this.stampRequest();
    const item = await this.#reader.get(key.primary);
    this.remember(
      key,
      item === undefined ? undefined : parseBucketItem(item, this.getImage(key)),
      sent,
    );
  }

  #getEntry(text: string): OwnedEntry | undefined {
    return this.#recent.get(text) ?? this.#older.get(text);
  }

  #touch(text: string): OwnedEntry {
    const recent = this.#recent.get(text);
    if (recent !== undefined) return recent;
    const entry = this.#older.get(text) ?? {
      image: undefined,
      seenAt: NEVER_SEEN,
      sentBeforeAnswer: 0,
      unseen: undefined,
      othersWroteMs: -Infinity,
      sure: undefined,
      isPinned: false,
      siblings: undefined,
    };
    if (this.#recent.size >= MAX_ENTRIES / 2) this.#forgetOlder();
    this.#recent.set(text, entry);
    return entry;
  }

  #forgetOlder(): void {
    const forgotten = this.#older;
    this.#older = this.#recent;
    this.#recent = new Map();
    for (const [text, entry] of forgotten) if (entry.isPinned) this.#older.set(text, entry);
  }
}

/**
 * Whether an image may refuse a call that began after it was requested. One from the future may
 * not: the clock was set back, and the image would count as young until the clock has caught up.
 */
export function isYoung(seenAt: RequestStamp, nowMs: number, refusalMemoryMs: number): boolean {
  return seenAt.ms > nowMs - refusalMemoryMs && seenAt.ms <= nowMs;
}

/** Whether two images are of one bucket, and nothing was undone on it between them. */
function isSameSoFar(seen: BucketImage | undefined, image: BucketImage): boolean {
  return seen?.creation === image.creation && seen?.undone === image.undone;
}

/**
 * Within one version of one item the write counter decides; across versions only the order of
 * requests does. A reply without an item counts only if it was requested after the item was seen: a
 * read that overtakes the creation of a bucket must not make its creator forget it, and with it the
 * leases that it holds.
 */
function isOlder(
  { image: held, seenAt, sentBeforeAnswer }: OwnedEntry,
  image: BucketImage | undefined,
  sent: RequestStamp,
): boolean {
  if (held === undefined) return false;
  if (image === undefined) return sent.order <= sentBeforeAnswer;
  const isSame = held.version === image.version && held.creation === image.creation;
  return isSame ? image.writes < held.writes : sent.order < seenAt.order;
}

/** Whether every class is owned by exactly one of the shards. */
function isPartition(shards: readonly KnownShard[], classes: number): boolean {
  const owners = Array.from({ length: classes }, () => 0);
  for (const { image } of shards)
    for (let owned = image.shard; owned < classes; owned += image.divisor) owners[owned]! += 1;
  return owners.every((owned) => owned === 1);
}

function oldest(shards: readonly KnownShard[]): RequestStamp {
  return shards.reduce(
    (least, { seenAt }) => (seenAt.order < least.order ? seenAt : least),
    shards[0]!.seenAt,
  );
}
