import type { Clock } from "../system-clock.ts";
import { imageOf, type BucketImage } from "./bucket-item.ts";
import { bucketKey, type BucketKey } from "./bucket-key.ts";
import type { Asking, BucketImages, Remembered } from "./images.ts";
import type { ItemReader } from "./item-reader.ts";

/** One shard that exists, as far as this process knows. */
export interface KnownShard {
  readonly key: BucketKey;
  readonly image: BucketImage;
  readonly asOf: Asking;
}

/** A bucket as far as this process knows it. */
export interface KnownBucket {
  /** How many shards it may have by now: the divisor of shard 0. */
  readonly count: number;
  /** Shard 0 first; none for a bucket that does not exist. */
  readonly shards: readonly KnownShard[];
  /**
   * Whether they make up the bucket, neither more nor less. Otherwise some are not known, or were
   * seen before a split and after it.
   */
  readonly isWhole: boolean;
  /**
   * The oldest request that this was learnt from; undefined when the bucket was never asked for.
   */
  readonly asOf: Asking | undefined;
}

/** Reads of all shards before a bucket that splits all the time is given up. */
const MAX_READS = 4;

/** The shards of buckets, as remembered and as stored. */
export class BucketShards {
  readonly #images: BucketImages;
  readonly #reader: ItemReader;
  readonly #clock: Clock;
  /**
   * The keys of further shards, for as long as shard 0 is remembered: making 31 of them took as
   * long as the rest of a call.
   */
  readonly #keys = new WeakMap<Remembered, BucketKey[]>();

  constructor(options: {
    readonly images: BucketImages;
    readonly reader: ItemReader;
    readonly clock: Clock;
  }) {
    this.#images = options.images;
    this.#reader = options.reader;
    this.#clock = options.clock;
  }

  /** What is remembered of a bucket; `key` is that of its shard 0. */
  known(key: BucketKey): KnownBucket {
    const first = this.#images.find(key.text);
    if (first === undefined || first.asOf.order === 0)
      return { count: 1, shards: [], isWhole: false, asOf: undefined };
    const { image, asOf } = first;
    if (image === undefined) return { count: 1, shards: [], isWhole: true, asOf };
    const shards: KnownShard[] = [{ key, image, asOf }];
    if (image.divisor === 1) return { count: 1, shards, isWhole: true, asOf };
    for (let shard = 1; shard < image.divisor; shard += 1) {
      const sibling = this.#siblingKey(key, first, shard);
      const held = this.#images.find(sibling.text);
      // What is left of a bucket that was deleted and created again is no part of it.
      if (held?.image !== undefined && held.image.creation === image.creation)
        shards.push({ key: sibling, image: held.image, asOf: held.asOf });
    }
    return {
      count: image.divisor,
      shards,
      isWhole: isPartition(shards, image.divisor),
      asOf: oldest(shards),
    };
  }

  /** Reads every shard of a bucket, in one batch unless it has grown meanwhile. */
  async readAll(key: BucketKey): Promise<KnownBucket> {
    for (let reads = 1; ; reads += 1) {
      const { count } = this.known(key);
      await Promise.all(
        Array.from({ length: count }, (_, shard) =>
          this.read(shard === 0 ? key : siblingKey(key, shard)),
        ),
      );
      const known = this.known(key);
      if (known.isWhole || reads === MAX_READS) return known;
    }
  }

  /** Reads one shard. */
  async read(key: BucketKey): Promise<void> {
    const asking = this.asking();
    const item = await this.#reader.get(key.primary);
    this.#images.remember(
      key.text,
      item === undefined ? undefined : imageOf(item, this.#images.find(key.text)?.image),
      asking,
    );
  }

  /** Notes that a transaction, which tells nothing about it, has changed a shard. */
  outdate({ text }: BucketKey): void {
    this.#images.outdate(text);
  }

  /** Notes that a request is sent now. */
  asking(): Asking {
    return this.#images.asking(this.#clock.now());
  }

  #siblingKey(key: BucketKey, first: Remembered, shard: number): BucketKey {
    const keys = this.#keys.get(first) ?? [];
    if (keys.length === 0) this.#keys.set(first, keys);
    return (keys[shard] ??= siblingKey(key, shard));
  }
}

/** The key of another shard of the same bucket. */
export function siblingKey(
  { namespaceId, entityId, resource, family }: BucketKey,
  shard: number,
): BucketKey {
  return bucketKey({ namespaceId, entityId, resource, shard }, family);
}

/** Whether every class is owned by exactly one of the shards. */
function isPartition(shards: readonly KnownShard[], count: number): boolean {
  const owners = Array.from({ length: count }, () => 0);
  for (const { image } of shards) {
    if (image.divisor > count) return false;
    for (let owned = image.shard; owned < count; owned += image.divisor) owners[owned]! += 1;
  }
  return owners.every((owned) => owned === 1);
}

function oldest(shards: readonly KnownShard[]): Asking {
  return shards.reduce(
    (least, { asOf }) => (asOf.order < least.order ? asOf : least),
    shards[0]!.asOf,
  );
}
