/*
 * What the aggregator does about the shards of buckets (ADR 013). Records only tell where to look;
 * what is done is decided by what the table holds by then, and done by the transactions that
 * clients use:
 *
 *   shard 0 got a larger divisor    complete: split the shards that are coarser than that
 *   a shard is hot                  double the bucket, if the shard still has the version that was
 *                                   measured
 *   there are several shards        look at all of them once a minute, and merge them when calm
 *
 * The first must be done, so a record whose bucket could not be completed is a failure. The other
 * two are help that clients do not depend on: what fails is tried again when it is next noticed.
 * Everything is awaited, because a Lambda is frozen when it has answered.
 */
import { levelAt, resolvedPolicy } from "../../../../core/bucket/policy.ts";
import { VersionError, ZaeLimiterError } from "../../../../core/errors.ts";
import { configKeys } from "../../../policy-cache.ts";
import type { Clock } from "../../../system-clock.ts";
import { KnownBuckets, type BucketEntry } from "../../cache/known-buckets.ts";
import { readConfigs } from "../../limits.ts";
import type { PolicyReader } from "../../shards/merger.ts";
import { resharding, type Resharding } from "../../shards/resharding.ts";
import type { Connection } from "../../table/connection.ts";
import { ItemReader } from "../../table/item-reader.ts";
import { eachWithin } from "../../table/each-within.ts";
import {
  failuresOf,
  UNLIMITED,
  type PartReport,
  type RecordFailure,
  type TimeCheck,
} from "../part.ts";
import type { StreamRecord } from "../stream-record.ts";
import {
  announcementsIn,
  newestOf,
  shardHistories,
  type ShardHistory,
  type ShardImage,
} from "./shard-history.ts";

/**
 * Records have whole seconds. All images of a second count from the first of them, so a rate over
 * whole seconds is exact to one write. One second is not enough, because a record may get its time
 * late: 900 units that were written over two seconds would be hot.
 */
const SHORTEST_MEASURE_MS = 2000;

/** A rate that was measured longer ago says nothing about what a bucket needs now. */
const OLDEST_MEASURED_MS = 60_000;

/** The most buckets that are worked on at the same time. */
const MAX_AT_ONCE = 16;

/** What was done about shards because of a batch. */
export interface ShardReport extends PartReport {
  readonly splits: number;
  readonly merges: number;
  /** The largest number of shards that a bucket of this batch has; 0 when it has none. */
  readonly shards: number;
}

/** Splits buckets under pressure ahead of time, completes splits, and merges calm buckets. */
export class ShardCare {
  readonly #clock: Clock;
  /** Of all namespaces: the keys of buckets contain their namespace. */
  readonly #known: KnownBuckets;
  readonly #resharding: Resharding;
  /** What was done and not reported yet. */
  readonly #counts = { splits: 0, merges: 0 };
  /** The position of the last record of each shard. */
  readonly #positions = new WeakMap<BucketEntry, string>();

  constructor(options: {
    readonly connection: Connection;
    readonly maxShards: number;
    /** Fill times that an idle bucket is kept for once it is whole. */
    readonly ttlMultiplier: number;
  }) {
    const { connection } = options;
    const reader = new ItemReader(connection);
    this.#clock = connection.clock;
    this.#known = new KnownBuckets(reader, connection.clock);
    this.#resharding = resharding({
      ...options,
      reader,
      known: this.#known,
      policyOf: storedPolicies(reader),
      shortestMeasureMs: SHORTEST_MEASURE_MS,
      counts: this.#counts,
    });
  }

  /** Looks at the buckets of a batch. */
  async care(
    records: readonly StreamRecord[],
    checkTime: TimeCheck = UNLIMITED,
  ): Promise<ShardReport> {
    const histories = shardHistories(records);
    const failures = await this.#completeAnnounced(histories, checkTime);
    // A table that does not answer is not asked for more: help can wait for the next batch.
    if (failures.length === 0) await this.#watch(histories, checkTime);
    const { splits, merges } = this.#counts;
    Object.assign(this.#counts, { splits: 0, merges: 0 });
    return { failures, splits, merges, shards: largestCount(histories) };
  }

  async #completeAnnounced(
    histories: readonly ShardHistory[],
    checkTime: TimeCheck,
  ): Promise<readonly RecordFailure[]> {
    const announced = histories
      .map((history) => ({ key: history.key, records: announcementsIn(history) }))
      .filter((each) => each.records.length > 0);
    const failures: RecordFailure[] = [];
    await eachWithin(MAX_AT_ONCE, announced, async ({ key, records }) => {
      try {
        checkTime();
        await this.#resharding.splitter.complete(key);
      } catch (error) {
        // Nothing may be written to a bucket with limits of an unknown kind.
        if (!(error instanceof VersionError)) failures.push(...failuresOf(records, error));
      }
    });
    return failures;
  }

  async #watch(histories: readonly ShardHistory[], checkTime: TimeCheck): Promise<void> {
    const nowMs = this.#clock.now();
    const due = histories.flatMap((history) => this.#note(history, nowMs));
    await eachWithin(MAX_AT_ONCE, due, async (work) => {
      try {
        checkTime();
        await work();
      } catch (error) {
        if (!(error instanceof ZaeLimiterError)) throw error;
      }
    });
  }

  /** Notes the changes of a shard; returns what is to be done because of them. */
  #note(history: ShardHistory, nowMs: number): readonly (() => Promise<void>)[] {
    const { first } = history;
    const { pressure, mergeMonitor } = this.#resharding;
    const seen = this.#newImages(history, nowMs);
    const newest = seen.at(-1);
    if (newest === undefined) return [];
    let hot: SeenImage | undefined;
    for (const each of seen) if (pressure.measure(first, each.image, each.atMs)) hot = each;
    const due: (() => Promise<void>)[] = [];
    // What was hot early in a batch has been measured again since, and was not.
    if (hot !== undefined && newest.atMs - hot.atMs < SHORTEST_MEASURE_MS) {
      const { image } = hot;
      due.push(async () => this.#relieve(history, image));
    }
    if (newest.image.divisor > 1)
      due.push(async () => mergeMonitor.lookAfter(first, newest.image, nowMs));
    return due;
  }

  /**
   * The images that are new, and young enough to be measured. Records may come again, and not only
   * to this aggregator.
   */
  #newImages({ key, changes }: ShardHistory, nowMs: number): readonly SeenImage[] {
    const entry = this.#known.entry(key);
    let last = this.#positions.get(entry) ?? "";
    const seen: SeenImage[] = [];
    for (const { record, image } of changes) {
      if (record.position <= last) continue;
      last = record.position;
      if (image !== undefined && nowMs - record.atMs <= OLDEST_MEASURED_MS)
        seen.push({ image, atMs: record.atMs });
    }
    this.#positions.set(entry, last);
    return seen;
  }

  /** Doubles the bucket of a hot shard, unless the shard is another one by now. */
  async #relieve({ key, first }: ShardHistory, hot: ShardImage): Promise<void> {
    await Promise.all([...new Set([first, key])].map((each) => this.#known.read(each)));
    const image = this.#known.imageOf(key);
    if (image?.version !== hot.version || image.creation !== hot.creation) return;
    await this.#resharding.pressure.relieve(first);
  }
}

/** An image of a shard, and when it was written. */
interface SeenImage {
  readonly image: ShardImage;
  readonly atMs: number;
}

/** Reads the limits that apply to a bucket, in whichever namespace it is. */
function storedPolicies(reader: ItemReader): PolicyReader {
  return async ({ namespaceId, entityId, resource }) => {
    const keys = configKeys(entityId, resource);
    const configs = await readConfigs(reader, namespaceId, keys);
    return resolvedPolicy(keys.map((key, index) => levelAt(key, configs[index]!)));
  };
}

/** By the last image of each shard: one in the middle may be of a count that is gone. */
function largestCount(histories: readonly ShardHistory[]): number {
  return Math.max(0, ...histories.map((history) => newestOf(history).image?.divisor ?? 0));
}
