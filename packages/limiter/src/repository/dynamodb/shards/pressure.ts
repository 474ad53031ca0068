/*
 * When a bucket should have more shards. DynamoDB accepts about a thousand writes a second to one
 * item, so a bucket whose shard is near that is doubled. The signals are the rate of write units,
 * from two images of one version of a shard, and being throttled: refused writes are not counted on
 * the item, and an item may share its partition. Throttling that DynamoDB explains by the table or
 * the account does not count, because shards do not help there (`tableWide` in table-errors.ts).
 * Throttling goes on for a while after a doubling, so at most one is made in two seconds, by shard
 * 0's own stamp, which all processes see, and by this process's memory, for attempts that others
 * overtook. Without that pause there were 16 shards within 0.4 s where 2 were needed (a model of 24
 * processes).
 */
import type { Clock } from "../../system-clock.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import { siblingKey, type BucketKey } from "../items/bucket-key.ts";
import type { WriteObserver } from "../write/write-observer.ts";
import type { BucketEntry, KnownBuckets } from "../cache/known-buckets.ts";
import type { Splitter } from "./splitter.ts";

/** Four fifths of what DynamoDB accepts for one item. */
const HOT_UNITS_PER_SECOND = 800;

/** A shorter time says little about a rate: group commits come in bursts. */
const SHORTEST_MEASURE_MS = 1000;

/** Long enough to measure what the last doubling has changed. */
const PAUSE_BETWEEN_DOUBLINGS_MS = 2000;

/**
 * A hot shard throttles again and again; a single time may be a table that has just begun to grow.
 */
const THROTTLED_AGAIN_MS = 1000;

/** The first of the two images that a rate is taken from. */
interface Measure {
  readonly version: number;
  readonly creation: string | undefined;
  readonly writes: number;
  readonly sentAtMs: number;
}

/** Watches the writes of one process, and doubles buckets that are under pressure. */
export class PressureWatch implements WriteObserver {
  readonly #known: KnownBuckets;
  readonly #splitter: Splitter;
  readonly #clock: Clock;
  readonly #isOn: boolean;
  /** Keyed by the entry of shard 0, for all shards of a bucket. */
  readonly #pressures = new WeakMap<BucketEntry, Pressure>();

  constructor(options: {
    readonly known: KnownBuckets;
    readonly splitter: Splitter;
    readonly clock: Clock;
    readonly maxShards: number;
  }) {
    this.#known = options.known;
    this.#splitter = options.splitter;
    this.#clock = options.clock;
    this.#isOn = options.maxShards > 1;
  }

  noteWrite(key: BucketKey, image: BucketImage, sentAtMs: number): void {
    if (this.#isOn && this.#pressureOn(key).noteWrite(image, sentAtMs)) this.#relieve(key);
  }

  noteThrottled(key: BucketKey): void {
    if (this.#isOn && this.#pressureOn(key).noteThrottled(this.#clock.now())) this.#relieve(key);
  }

  #pressureOn(key: BucketKey): Pressure {
    const entry = this.#known.entry(firstKey(key));
    const held = this.#pressures.get(entry);
    if (held !== undefined) return held;
    const pressure = new Pressure();
    this.#pressures.set(entry, pressure);
    return pressure;
  }

  /** Doubles a hot bucket in the background: the calls that noticed the pressure do not wait. */
  #relieve(key: BucketKey): void {
    const first = firstKey(key);
    const image = this.#known.imageOf(first);
    const pressure = this.#pressureOn(first);
    const nowMs = this.#clock.now();
    if (image === undefined || !pressure.mayDouble(image.splitAtMs, nowMs)) return;
    if (!this.#splitter.canSplit(image)) return;
    pressure.noteDoubling(nowMs);
    // It has no caller to report an error to: the next write that notices the pressure tries again.
    this.#splitter.double(first).catch(() => {});
  }
}

function firstKey(key: BucketKey): BucketKey {
  return key.shard === 0 ? key : siblingKey(key, 0);
}

/** What one process knows of the pressure on one bucket, over all of its shards. */
export class Pressure {
  readonly #measures = new Map<number, Measure>();
  #triedAtMs = -Infinity;
  #throttledAtMs = -Infinity;

  /**
   * Notes the image of a shard that came back for a request sent at `sentAtMs`, by the clock of
   * this process. Returns whether the shard is hot, at most once for each measured period.
   */
  noteWrite({ shard, version, creation, writes }: MeasuredImage, sentAtMs: number): boolean {
    const from = this.#measures.get(shard);
    const next: Measure = { version, creation, writes, sentAtMs };
    if (from === undefined || from.version !== version || from.creation !== creation) {
      // Another version: limits or divisor have changed, and what was measured before says nothing
      // about what is now.
      this.#measures.set(shard, next);
      return false;
    }
    const elapsedMs = sentAtMs - from.sentAtMs;
    if (elapsedMs < SHORTEST_MEASURE_MS) return false;
    this.#measures.set(shard, next);
    return ((writes - from.writes) * 1000) / elapsedMs >= HOT_UNITS_PER_SECOND;
  }

  /** Notes that a write was throttled. Returns whether that shows that the bucket is hot. */
  noteThrottled(nowMs: number): boolean {
    const sinceMs = nowMs - this.#throttledAtMs;
    this.#throttledAtMs = nowMs;
    return sinceMs <= THROTTLED_AGAIN_MS;
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
    this.#measures.clear();
  }
}

/** The parts of an image that the pressure is computed from. */
export type MeasuredImage = Pick<BucketImage, "shard" | "version" | "creation" | "writes">;
