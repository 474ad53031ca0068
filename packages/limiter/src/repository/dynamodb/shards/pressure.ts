/*
 * When a bucket should have more shards. DynamoDB accepts about a thousand writes a second to one
 * item, so a bucket is doubled (ADR 013) when one of its shards
 *
 *   is hot          by the rate of write units, from two images of one version of it
 *   is throttled    twice within a second, at a rate near that; or, where DynamoDB names the keys
 *                   as the reason, in at least half of many attempts: refused writes are not
 *                   counted on the item, and an item may share its partition
 *
 * All other throttling is the table's or the account's, and shards do not help there. Neither do
 * shards that hold only a few calls each (`leavesRoomForCalls`). Throttling goes on for a while
 * after a doubling, so at most one is made in two seconds, by shard 0's own stamp, which all
 * processes see, and by this process's memory, for attempts that others overtook. Without that
 * pause there were 16 shards within 0.4 s where 2 were needed (a model of 24 processes).
 */
import type { Clock } from "../../system-clock.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { buildSiblingKey, type BucketKey } from "../items/bucket-key.ts";
import type { WriteObserver } from "../write/write-observer.ts";
import type { BucketEntry, KnownBuckets } from "../cache/known-buckets.ts";
import type { MeasuredShard, MergeMonitor } from "./merge-monitor.ts";
import { leavesRoomForCalls } from "./split.ts";
import type { Splitter } from "./splitter.ts";

/** Four fifths of what DynamoDB accepts for one item. */
const HOT_UNITS_PER_SECOND = 800;

/**
 * Half of what is hot. Throttling below that is not this item's doing: a bucket that earns 200
 * tokens a second is written about 230 times a second when it is exhausted.
 */
const NEARLY_HOT_UNITS_PER_SECOND = 400;

/** How long a measured rate counts when writes are throttled, which bring no images. */
const RATE_COUNTS_FOR_MS = 3000;

/**
 * Attempts within a second that count as many: 11 calls a second that are tried three times each
 * never reach it, and a process that does nothing but try does.
 */
const MANY_ATTEMPTS = 50;

/** A shorter time says little about a rate: group commits come in bursts. */
const SHORTEST_MEASURE_MS = 1000;

/** Long enough to measure what the last doubling has changed. */
const PAUSE_BETWEEN_DOUBLINGS_MS = 2000;

/**
 * A hot shard throttles again and again; a single time may be a table that has just begun to grow.
 */
const THROTTLED_AGAIN_MS = 1000;

/** What is measured of one shard. */
interface ShardMeasure {
  /** The first of the two images that a rate is taken from; undefined until there was one. */
  from: (MeasuredShard & { readonly sentAtMs: number }) | undefined;
  /** Undefined until two images were far enough apart. */
  rate: { readonly unitsPerSecond: number; readonly atMs: number } | undefined;
  /** What was attempted within the second that began then. */
  sinceMs: number;
  made: number;
  throttled: number;
}

/** Watches the writes of one process, and doubles buckets that are under pressure. */
export class PressureWatch implements WriteObserver {
  readonly #known: KnownBuckets;
  readonly #splitter: Splitter;
  readonly #mergeMonitor: MergeMonitor;
  readonly #clock: Clock;
  readonly #isOn: boolean;
  /** Keyed by the entry of shard 0, for all shards of a bucket. */
  readonly #pressures = new WeakMap<BucketEntry, Pressure>();

  constructor(options: {
    readonly known: KnownBuckets;
    readonly splitter: Splitter;
    /** Is notified too, of writes to buckets with several shards. */
    readonly mergeMonitor: MergeMonitor;
    readonly clock: Clock;
    readonly maxShards: number;
  }) {
    this.#known = options.known;
    this.#splitter = options.splitter;
    this.#mergeMonitor = options.mergeMonitor;
    this.#clock = options.clock;
    this.#isOn = options.maxShards > 1;
  }

  noteWrite(key: BucketKey, image: BucketImage, sentAtMs: number): void {
    const first = firstKey(key);
    if (image.divisor > 1) this.#mergeMonitor.noteWrite(first, image, sentAtMs);
    if (this.#isOn && this.#pressureOn(first).noteWrite(image, sentAtMs)) this.#relieveLater(first);
  }

  noteThrottled(key: BucketKey, isOfKeys: boolean): void {
    if (!this.#isOn) return;
    const nowMs = this.#clock.now();
    const first = firstKey(key);
    if (this.#pressureOn(first).noteThrottled(key.shard, { isOfKeys, nowMs }))
      this.#relieveLater(first);
  }

  #pressureOn(first: BucketKey): Pressure {
    const entry = this.#known.entry(first);
    const held = this.#pressures.get(entry);
    if (held !== undefined) return held;
    const pressure = new Pressure();
    this.#pressures.set(entry, pressure);
    return pressure;
  }

  /**
   * Doubles a hot bucket, unless that was just done or would not help; `first` is the key of shard
   * 0. It is decided with the image that is known of it.
   */
  async #relieve(first: BucketKey): Promise<void> {
    const image = this.#known.getImage(first);
    const pressure = this.#pressureOn(first);
    const nowMs = this.#clock.now();
    if (image === undefined || !pressure.mayDouble(image.splitAtMs, nowMs)) return;
    if (!this.#splitter.canSplit(image) || !leavesRoomForCalls(image)) return;
    pressure.noteDoubling(nowMs);
    await this.#splitter.double(first);
  }

  /** In the background: the calls that noticed the pressure do not wait. */
  #relieveLater(first: BucketKey): void {
    // It has no caller to report an error to: the next write that notices the pressure tries again.
    this.#relieve(first).catch(() => {});
  }
}

/** The key of shard 0 of the same bucket. */
export function firstKey(key: BucketKey): BucketKey {
  return key.shard === 0 ? key : buildSiblingKey(key, 0);
}

/** What one process knows of the pressure on one bucket, over all of its shards. */
export class Pressure {
  /** By shard; a list, because most buckets have one, and a map takes half a kilobyte. */
  readonly #measures: (ShardMeasure | undefined)[] = [];
  #triedAtMs = -Infinity;
  #throttledAtMs = -Infinity;

  /**
   * Notes the image of a shard that came back for a request sent at `sentAtMs`, by the clock of
   * this process. Returns whether the shard is hot, at most once for each measured period.
   */
  noteWrite({ shard, version, creation, writes }: MeasuredShard, sentAtMs: number): boolean {
    const held = this.#countAttempt(shard, sentAtMs);
    const { from } = held;
    const isSame = from?.version === version && from.creation === creation;
    const elapsedMs = isSame ? sentAtMs - from.sentAtMs : 0;
    if (isSame && elapsedMs < SHORTEST_MEASURE_MS) return false;
    held.from = { shard, version, creation, writes, sentAtMs };
    // Of another version nothing was measured: limits or divisor have changed, and what was before
    // says nothing about what is now.
    const unitsPerSecond = isSame ? ((writes - from.writes) * 1000) / elapsedMs : 0;
    held.rate = isSame ? { unitsPerSecond, atMs: sentAtMs } : undefined;
    return unitsPerSecond >= HOT_UNITS_PER_SECOND;
  }

  /**
   * Notes that a write to a shard was throttled; `isOfKeys` when DynamoDB named the keys as the
   * reason. Returns whether that shows that the bucket is hot.
   */
  noteThrottled(
    shard: number,
    { isOfKeys, nowMs }: { readonly isOfKeys: boolean; readonly nowMs: number },
  ): boolean {
    const isAgain = nowMs - this.#throttledAtMs <= THROTTLED_AGAIN_MS;
    this.#throttledAtMs = nowMs;
    const attempts = this.#countAttempt(shard, nowMs);
    attempts.throttled += 1;
    const isMost = attempts.made >= MANY_ATTEMPTS && attempts.throttled * 2 >= attempts.made;
    return isAgain && (this.#isNearlyHot(shard, nowMs) || (isOfKeys && isMost));
  }

  #isNearlyHot(shard: number, nowMs: number): boolean {
    const rate = this.#measures[shard]?.rate;
    if (rate === undefined || nowMs - rate.atMs > RATE_COUNTS_FOR_MS) return false;
    return rate.unitsPerSecond >= NEARLY_HOT_UNITS_PER_SECOND;
  }

  /** Counts an attempt: a second begins with the first one after the second before. */
  #countAttempt(shard: number, nowMs: number): ShardMeasure {
    const held = (this.#measures[shard] ??= newMeasure());
    const isWithin = Math.abs(nowMs - held.sinceMs) < 1000;
    if (!isWithin) {
      held.sinceMs = nowMs;
      held.made = 0;
      held.throttled = 0;
    }
    held.made += 1;
    return held;
  }

  /**
   * Whether a hot or throttled bucket may be doubled now, given when its shard 0 was last split.
   */
  mayDouble(splitAtMs: number | undefined, nowMs: number): boolean {
    return nowMs - Math.max(splitAtMs ?? -Infinity, this.#triedAtMs) >= PAUSE_BETWEEN_DOUBLINGS_MS;
  }

  /** Notes that this process tries to double the bucket, whether or not that succeeds. */
  noteDoubling(nowMs: number): void {
    this.#triedAtMs = nowMs;
    this.#measures.length = 0;
  }
}

function newMeasure(): ShardMeasure {
  return { from: undefined, rate: undefined, sinceMs: -Infinity, made: 0, throttled: 0 };
}
