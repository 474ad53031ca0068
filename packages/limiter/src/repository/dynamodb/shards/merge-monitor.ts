/*
 * When a bucket needs its shards no longer. A process that writes to a bucket with several shards
 * looks at all of them once a minute. When five looks in a row show that the whole bucket is
 * written far less often than one item could be, its shards are merged. A shard is split at 800
 * units a second, and a bucket is merged below 200 in all, so that neither causes the other.
 */
import type { Clock } from "../../system-clock.ts";
import type { BucketEntry, KnownBuckets } from "../cache/known-buckets.ts";
import type { BucketImage } from "../items/bucket-item.ts";
import type { BucketKey } from "../items/bucket-key.ts";
import type { Merger } from "./merger.ts";

/** A fifth of what DynamoDB accepts for one item. */
const CALM_UNITS_PER_SECOND = 200;

/** How often the shards of a bucket are looked at. */
const LOOK_INTERVAL_MS = 60_000;

/** How many minutes in a row must be calm. */
const CALM_LOOKS = 5;

/** Watches the writes of one process, and merges the shards of buckets that have become calm. */
export class MergeMonitor {
  readonly #known: KnownBuckets;
  readonly #merger: Merger;
  readonly #clock: Clock;
  /** Keyed by the entry of shard 0, for all shards of a bucket. */
  readonly #rates = new WeakMap<BucketEntry, BucketRate>();

  constructor(options: {
    readonly known: KnownBuckets;
    readonly merger: Merger;
    readonly clock: Clock;
  }) {
    this.#known = options.known;
    this.#merger = options.merger;
    this.#clock = options.clock;
  }

  /**
   * Notes the image of one of several shards that came back for a request sent at `sentAtMs`;
   * `first` is the key of shard 0. A gather notes an image that it was decided with.
   */
  noteWrite(first: BucketKey, image: MeasuredShard, sentAtMs: number): void {
    // It has no caller to report an error to: the next look tries again.
    this.lookAfter(first, image, sentAtMs)?.catch(() => {});
  }

  /** Does the same, and returns the look at all shards if one is due. */
  lookAfter(first: BucketKey, image: MeasuredShard, atMs: number): Promise<void> | undefined {
    const entry = this.#known.entry(first);
    const rate = this.#rates.get(entry);
    if (rate === undefined) this.#rates.set(entry, new BucketRate(image, atMs));
    return rate?.mayLook(image, atMs) === true ? this.#look(first, rate) : undefined;
  }

  async #look(first: BucketKey, rate: BucketRate): Promise<void> {
    const { shards, isWhole } = await this.#known.readAll(first);
    const images = shards.map(({ image }) => image);
    if (isWhole && rate.noteLook(images, this.#clock.now())) await this.#merger.mergeInto(first, 1);
  }
}

/** The parts of an image that the rate is computed from. */
export type MeasuredShard = Pick<BucketImage, "shard" | "version" | "creation" | "writes">;

/** What one process knows of the rate of one bucket with several shards. */
export class BucketRate {
  /** The shards that the next look is compared with. */
  #before: readonly MeasuredShard[];
  #beforeMs: number;
  #askedAtMs: number;
  #calmLooks = 0;

  constructor(written: MeasuredShard, nowMs: number) {
    this.#before = [written];
    this.#beforeMs = nowMs;
    this.#askedAtMs = nowMs;
  }

  /**
   * Whether it is time to look at all shards. While the shard that was written is busy, the others
   * need not be read.
   */
  mayLook(written: MeasuredShard, nowMs: number): boolean {
    // A clock that was set back must not stop the looks.
    if (Math.abs(nowMs - this.#askedAtMs) < LOOK_INTERVAL_MS) return false;
    this.#askedAtMs = nowMs;
    const units = unitsBetween(this.#before, written);
    if (units === undefined || isCalm(units, nowMs - this.#beforeMs)) return true;
    this.#before = [written];
    this.#beforeMs = nowMs;
    this.#calmLooks = 0;
    return false;
  }

  /** Notes all shards of the bucket. Returns whether it has been calm for long enough. */
  noteLook(shards: readonly MeasuredShard[], nowMs: number): boolean {
    const units = shards.map((shard) => unitsBetween(this.#before, shard));
    const isMeasured = units.every((each) => each !== undefined);
    const total = units.reduce<number>((sum, each) => sum + (each ?? 0), 0);
    this.#calmLooks = isMeasured && isCalm(total, nowMs - this.#beforeMs) ? this.#calmLooks + 1 : 0;
    this.#before = shards;
    this.#beforeMs = nowMs;
    return this.#calmLooks >= CALM_LOOKS;
  }
}

/** Write units between two images of one version of a shard; undefined when there are no two. */
function unitsBetween(
  before: readonly MeasuredShard[],
  { shard, version, creation, writes }: MeasuredShard,
): number | undefined {
  const from = before.find((other) => other.shard === shard);
  return from?.version === version && from.creation === creation ? writes - from.writes : undefined;
}

function isCalm(units: number, elapsedMs: number): boolean {
  return elapsedMs > 0 && (units * 1000) / elapsedMs < CALM_UNITS_PER_SECOND;
}
