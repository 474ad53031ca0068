/*
 * When and how buckets get more shards. A split is a transaction of its own (split.ts) and may
 * fail, because somebody else was faster or the bucket changed: then nothing has happened, and
 * whoever still needs the shard tries again. Doublings that pressure asks for happen beside the
 * calls that noticed it, which do not wait for them.
 */
import { ValidationError } from "../../core/errors.ts";
import type { BucketCounts } from "./bucket-counts.ts";
import type { BucketImage } from "./bucket-item.ts";
import type { BucketKey } from "./bucket-key.ts";
import { siblingKey, type BucketShards } from "./bucket-shards.ts";
import { contention } from "./client-errors.ts";
import type { Connection } from "./connection.ts";
import type { BucketImages } from "./images.ts";
import { Pressure } from "./pressure.ts";
import { ownerOf } from "./shard-tree.ts";
import { splitObstacle, splitOf } from "./split.ts";

/** Splits of one shard that are tried before a bucket counts as contended. */
const MAX_TRIES = 12;

/**
 * Tries of a doubling: on a busy bucket every other one fails, and the next may only come in two
 * seconds.
 */
const MAX_DOUBLING_TRIES = 4;

/** Splits shards. */
export class Splitter {
  readonly #connection: Connection;
  readonly #images: BucketImages;
  readonly #shards: BucketShards;
  readonly #maxShards: number;
  readonly #counts: BucketCounts;

  constructor(options: {
    readonly connection: Connection;
    readonly images: BucketImages;
    readonly shards: BucketShards;
    readonly maxShards: number;
    readonly counts: BucketCounts;
  }) {
    this.#connection = options.connection;
    this.#images = options.images;
    this.#shards = options.shards;
    this.#maxShards = options.maxShards;
    this.#counts = options.counts;
  }

  /** Takes note of what a write to a shard has brought back. */
  noteWrite(key: BucketKey, image: BucketImage, sentAtMs: number): void {
    if (this.#maxShards > 1 && this.#pressureOn(key).isHot(image, sentAtMs)) this.#doubleSoon(key);
  }

  /** Takes note that a shard has too much to do. */
  noteThrottled(key: BucketKey): void {
    const isHot =
      this.#maxShards > 1 && this.#pressureOn(key).isHotByThrottling(this.#connection.clock.now());
    if (isHot) this.#doubleSoon(key);
  }

  /** Splits one shard, once; whether it did. */
  async split(key: BucketKey, image: BucketImage): Promise<boolean> {
    const nowMs = Math.floor(this.#connection.clock.now());
    const { applied } = await this.#connection.transact(splitOf({ key, image, nowMs }));
    if (applied) this.#counts.splits += 1;
    await Promise.all([
      this.#shards.read(key),
      this.#shards.read(siblingKey(key, image.shard + image.divisor)),
    ]);
    return applied;
  }

  /**
   * Makes sure that a shard exists, by splitting whoever owns its class, once for each level; `key`
   * is that of shard 0.
   */
  async create(key: BucketKey, wanted: number): Promise<void> {
    for (;;) {
      const { count, shards } = this.#shards.known(key);
      const owner = ownerOf(wanted, count, (shard) =>
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
   * Splits a bucket until every class of so many has a shard of its own; answers how many it has.
   * `key` is that of shard 0.
   */
  async splitInto(key: BucketKey, wanted: number): Promise<number> {
    for (let tries = 1; tries <= MAX_TRIES * wanted; tries += 1) {
      const { count, shards, isWhole } = await this.#shards.readAll(key);
      if (shards.length === 0)
        throw new ValidationError(
          "entityId",
          key.entityId,
          `has no bucket for ${key.resource} yet: it begins with the first call`,
        );
      const coarse = shards.filter(({ image }) => image.divisor < wanted);
      if (isWhole && coarse.length === 0) return count;
      // Judged by the last level that is wanted, so that a bucket is not split halfway to where it
      // cannot go.
      const obstacle = coarse
        .map(({ image }) => splitObstacle({ ...image, divisor: wanted / 2 }, this.#maxShards))
        .find(Boolean);
      if (obstacle !== undefined)
        throw new ValidationError(
          "shards",
          wanted,
          `the bucket cannot have so many shards: ${obstacle}`,
        );
      // Shard 0 first, because its divisor is the count: whoever finds a shard of a larger divisor
      // than that cannot tell what makes up the bucket.
      const next = coarse[0]?.image.shard === 0 ? coarse.slice(0, 1) : coarse;
      await Promise.all(next.map(({ key: coarseKey, image }) => this.split(coarseKey, image)));
    }
    throw contention("a split", this.#connection.tableName);
  }

  #pressureOn(key: BucketKey): Pressure {
    const entry = this.#images.entry(firstKey(key).text);
    return (entry.pressure ??= new Pressure());
  }

  #doubleSoon(key: BucketKey): void {
    const first = firstKey(key);
    const image = this.#images.find(first.text)?.image;
    const pressure = this.#pressureOn(first);
    const nowMs = this.#connection.clock.now();
    if (
      image === undefined ||
      !pressure.mayDouble(image.splitAtMs, nowMs) ||
      splitObstacle(image, this.#maxShards) !== undefined
    )
      return;
    pressure.doubling(nowMs);
    // Nobody waits for it, so nobody is told when the table is away: the next one that notices the
    // pressure tries again.
    this.#double(first).catch(() => {});
  }

  async #double(key: BucketKey): Promise<void> {
    const from = this.#images.find(key.text)?.image?.divisor;
    for (let tries = 1; tries <= MAX_DOUBLING_TRIES; tries += 1) {
      const image = this.#images.find(key.text)?.image;
      if (image === undefined || image.divisor !== from || (await this.split(key, image))) return;
    }
  }
}

function firstKey(key: BucketKey): BucketKey {
  return key.shard === 0 ? key : siblingKey(key, 0);
}
