/*
 * How buckets get fewer shards again. A merge is a transaction of its own (merge.ts) and may fail,
 * because something was written to one of the halves: then nothing has happened. When a bucket is
 * merged is decided in merge-monitor.ts.
 *
 * Halves that have different windows open are left for the next look.
 *
 *   deepest level first ──▶ shard 0's pair ──▶ all other pairs of that level ──▶ next level
 *
 * Shard 0's pair goes first, because that lowers the count: then no process splits a shard off
 * again because it is its home.
 */
import { ValidationError } from "../../../core/errors.ts";
import type { Policy } from "../../../core/bucket/policy.ts";
import type { MaybePromise } from "../../port.ts";
import { wholeMs } from "../../system-clock.ts";
import { parseBucketItem } from "../items/bucket-item.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import type { KnownBuckets } from "../cache/known-buckets.ts";
import type { Connection } from "../table/connection.ts";
import type { ItemReader } from "../table/item-reader.ts";
import { contention } from "../table/table-errors.ts";
import { buildMerge, type Half, type MergeObstacle } from "./merge.ts";
import { largestDivisor } from "./shard-tree.ts";
import { buildMissingBucketError } from "./splitter.ts";

/** The most attempts to merge, for each shard that a bucket has, before it counts as contended. */
const MAX_TRIES = 12;

/**
 * Reads which limits are configured for a bucket. What a process remembers of them must not replace
 * limits that one half has newer.
 */
export type PolicyReader = (key: BucketKey) => MaybePromise<Policy | undefined>;

/** Merges shards. */
export class Merger {
  readonly #connection: Connection;
  readonly #reader: ItemReader;
  readonly #known: KnownBuckets;
  readonly #refreshPolicy: PolicyReader;
  readonly #ttlMultiplier: number;
  readonly #counts: { merges: number };

  constructor(options: {
    readonly connection: Connection;
    readonly reader: ItemReader;
    readonly known: KnownBuckets;
    readonly refreshPolicy: PolicyReader;
    readonly ttlMultiplier: number;
    readonly counts: { merges: number };
  }) {
    this.#connection = options.connection;
    this.#reader = options.reader;
    this.#known = options.known;
    this.#refreshPolicy = options.refreshPolicy;
    this.#ttlMultiplier = options.ttlMultiplier;
    this.#counts = options.counts;
  }

  /**
   * Merges a bucket into at most `wanted` shards; returns the actual count. `key` is that of shard
   * 0.
   */
  async mergeInto(key: BucketKey, wanted: number): Promise<number> {
    let triesLeft = Infinity;
    for (;;) {
      const { count, shards, isWhole } = await this.#known.readAll(key);
      if (shards.length === 0) throw buildMissingBucketError(key);
      const level = largestDivisor(shards.map(({ image }) => image));
      if (isWhole && level <= wanted) return count;
      triesLeft = Math.min(triesLeft, MAX_TRIES * level);
      if (triesLeft === 0) throw contention("a merge", this.#connection.tableName);
      triesLeft -= 1;
      if (!isWhole) continue;
      const lower = shards.filter(
        ({ image }) => image.divisor === level && image.shard < level / 2,
      );
      const next = lower[0]?.image.shard === 0 ? lower.slice(0, 1) : lower;
      const tried = await Promise.all(
        next.map(({ key: kept }) =>
          this.#merge(kept, buildSiblingKey(kept, kept.shard + level / 2)),
        ),
      );
      // The next look merges what has different windows open now.
      if (tried.includes("different windows open")) return count;
    }
  }

  /** Tries once to merge two halves. */
  async #merge(kept: BucketKey, gone: BucketKey): Promise<MergeObstacle | undefined> {
    const [left, right] = await Promise.all([this.#read(kept), this.#read(gone)]);
    const nowMs = wholeMs(this.#connection.clock);
    if (left === undefined || right === undefined || !arePair(left, right)) return undefined;
    const policy = await this.#refreshPolicy(kept);
    const writes = buildMerge({
      kept: left,
      gone: right,
      configured: policy?.limits,
      nowMs,
      // Buckets of entities with their own limits do not expire.
      ttlMultiplier: policy?.source === "entity" ? 0 : this.#ttlMultiplier,
    });
    if (writes === "different windows open") return writes;
    if (writes === "balance not exact")
      throw new ValidationError(
        "shards",
        right.image.divisor,
        "the bucket cannot be merged while its debt is too large to be added exactly",
      );
    const { applied } = await this.#connection.transact(writes);
    if (applied) this.#counts.merges += 1;
    await Promise.all([this.#known.read(kept), this.#known.read(gone)]);
    return undefined;
  }

  /** Not from memory: a remembered image may lack the ids of other processes. */
  async #read(key: BucketKey): Promise<Half | undefined> {
    const item = await this.#reader.get(key.primary);
    return item === undefined ? undefined : { key, item, image: parseBucketItem(item) };
  }
}

/** Whether two shards are the halves of one. */
function arePair({ image: left }: Half, { image: right }: Half): boolean {
  return (
    left.divisor === right.divisor &&
    left.creation === right.creation &&
    right.shard === left.shard + left.divisor / 2
  );
}
