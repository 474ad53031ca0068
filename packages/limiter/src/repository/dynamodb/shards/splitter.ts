/*
 * How buckets get more shards. A split is a transaction of its own (split.ts) and may fail, because
 * another process was faster or the bucket changed: then nothing has happened, and the caller that
 * still needs the shard tries again. pressure.ts decides when a bucket is doubled.
 */
import { ValidationError } from "../../../core/errors.ts";
import { wholeMs } from "../../system-clock.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import { contention } from "../table/table-errors.ts";
import type { Connection } from "../table/connection.ts";
import type { KnownBuckets } from "../cache/known-buckets.ts";
import { findOwner } from "./shard-tree.ts";
import { splitObstacle, buildSplit } from "./split.ts";

/**
 * The most attempts to split a shard, for each shard that is wanted, before a bucket counts as
 * contended.
 */
const MAX_TRIES = 12;

/**
 * The most attempts at one doubling: on a busy bucket every other one fails, and the next doubling
 * may only come in two seconds.
 */
const MAX_DOUBLING_TRIES = 4;

/** Splits shards. */
export class Splitter {
  readonly #connection: Connection;
  readonly #known: KnownBuckets;
  readonly #maxShards: number;
  readonly #counts: { splits: number };

  constructor(options: {
    readonly connection: Connection;
    readonly known: KnownBuckets;
    readonly maxShards: number;
    readonly counts: { splits: number };
  }) {
    this.#connection = options.connection;
    this.#known = options.known;
    this.#maxShards = options.maxShards;
    this.#counts = options.counts;
  }

  /** Tries once to split a shard; returns whether it was split. */
  async split(key: BucketKey, image: BucketImage): Promise<boolean> {
    const nowMs = wholeMs(this.#connection.clock);
    const { applied } = await this.#connection.transact(buildSplit({ key, image, nowMs }));
    if (applied) this.#counts.splits += 1;
    await Promise.all([
      this.#known.read(key),
      this.#known.read(buildSiblingKey(key, image.shard + image.divisor)),
    ]);
    return applied;
  }

  /**
   * Makes sure that a shard exists, by splitting the owner of its class, once for each level; `key`
   * is that of shard 0. A bucket that has fewer shards now, because it was merged, is left as it
   * is: a process that wants its home shard must not undo the merge.
   */
  async create(key: BucketKey, wanted: number): Promise<void> {
    for (;;) {
      const { count, shards } = this.#known.get(key);
      if (wanted >= count) return;
      const owner = findOwner(wanted, count, (shard) =>
        shards.some(({ image }) => image.shard === shard),
      );
      const found = shards.find(({ image }) => image.shard === owner);
      if (found === undefined || owner === wanted || wanted % found.image.divisor !== owner) return;
      if (
        splitObstacle(found.image, this.#maxShards) !== undefined ||
        !(await this.split(found.key, found.image))
      )
        return;
    }
  }

  /**
   * Splits a bucket into at least `wanted` shards; returns the actual count. `key` is that of shard
   * 0.
   */
  async splitInto(key: BucketKey, wanted: number): Promise<number> {
    for (let tries = 1; tries <= MAX_TRIES * wanted; tries += 1) {
      const { count, shards, isWhole } = await this.#known.readAll(key);
      if (shards.length === 0) throw buildMissingBucketError(key);
      const coarse = shards.filter(({ image }) => image.divisor < wanted);
      if (isWhole && coarse.length === 0) return count;
      // Checked for the last level that is wanted, so that a bucket is not split halfway to a count
      // that it cannot reach.
      const obstacle = coarse
        .map(({ image }) => splitObstacle({ ...image, divisor: wanted / 2 }, this.#maxShards))
        .find(Boolean);
      if (obstacle !== undefined)
        throw new ValidationError(
          "shards",
          wanted,
          `the bucket cannot have that many shards: ${obstacle}`,
        );
      // Shard 0 first, because its divisor is the count: a process that finds a shard with a larger
      // divisor than that cannot know which shards make up the bucket.
      const next = coarse[0]?.image.shard === 0 ? coarse.slice(0, 1) : coarse;
      await Promise.all(next.map(({ key: coarseKey, image }) => this.split(coarseKey, image)));
    }
    throw contention("a split", this.#connection.tableName);
  }

  /** Whether a shard may be split in two. */
  canSplit(image: BucketImage): boolean {
    return splitObstacle(image, this.#maxShards) === undefined;
  }

  /** Doubles a bucket, unless another process does; `key` is that of shard 0. */
  async double(key: BucketKey): Promise<void> {
    const from = this.#known.getImage(key)?.divisor;
    for (let tries = 1; tries <= MAX_DOUBLING_TRIES; tries += 1) {
      const image = this.#known.getImage(key);
      if (image === undefined || image.divisor !== from || (await this.split(key, image))) return;
    }
  }
}

/** The error of a bucket that cannot be split or merged, because it does not exist. */
export function buildMissingBucketError({ entityId, resource }: BucketKey): ValidationError {
  const reason = `has no bucket for ${resource} yet; the first acquire creates it`;
  return new ValidationError("entityId", entityId, reason);
}
