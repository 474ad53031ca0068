/*
 * When a bucket should have more shards. DynamoDB takes about a thousand writes a second of one item, so a bucket whose shard is near that is
 * doubled. The signal is the rate of write units, from two images of one version of a shard. Being throttled makes half of that rate enough, and
 * a shorter time: refused writes are not counted on the item, and an item may share its partition. Throttling alone says nothing: a table that
 * is short of throughput throttles every bucket, and shards do not help it. Nor does it stop at once after a doubling, so that at most one is made
 * in two seconds, by shard 0's own stamp, which all processes see, and by this process's memory, for attempts that others overtook. Without that pause
 * there were 16 shards within 0.4 s where 2 were needed (a model of 24 processes).
 */
import type { BucketImage } from "./bucket-item.ts";

/** Four fifths of what one item takes. */
const HOT_UNITS_PER_SECOND = 800;

/** A shorter time says little about a rate: group commits come in bursts. */
const SHORTEST_MEASURE_MS = 1000;

/** Long enough to measure what the last doubling has changed. */
const PAUSE_BETWEEN_DOUBLINGS_MS = 2000;

/** Half of what one item takes, nearly: a table that throttles a calmer one than this has too little throughput for all. */
const BUSY_UNITS_PER_SECOND = 400;

/** A throttled bucket loses calls while it is measured. A hundred writes tell a hot one. */
const SHORTEST_THROTTLED_MEASURE_MS = 250;

/** The first of the two images that a rate is taken from, and the last one since. */
interface Measure {
  readonly version: number;
  readonly creation: string | undefined;
  readonly writes: number;
  readonly sentAtMs: number;
  lastWrites: number;
}

/** What one process knows of the pressure on one bucket, over all of its shards. */
export class Pressure {
  readonly #measures = new Map<number, Measure>();
  #triedAtMs = -Infinity;

  /**
   * Notes the image of a shard that came back for a request sent at `sentAtMs`, by the clock of this process. Whether the shard is hot: asked
   * once for each measured second, so act on it or forget it.
   */
  isHot({ shard, version, creation, writes }: MeasuredImage, sentAtMs: number): boolean {
    const from = this.#measures.get(shard);
    const next: Measure = { version, creation, writes, sentAtMs, lastWrites: writes };
    if (from === undefined || from.version !== version || from.creation !== creation) {
      // Another version: limits or divisor have changed, and what was measured before says nothing about what is now.
      this.#measures.set(shard, next);
      return false;
    }
    const elapsedMs = sentAtMs - from.sentAtMs;
    from.lastWrites = Math.max(from.lastWrites, writes);
    if (elapsedMs < SHORTEST_MEASURE_MS) return false;
    this.#measures.set(shard, next);
    return perSecond(writes - from.writes, elapsedMs) >= HOT_UNITS_PER_SECOND;
  }

  /** Whether a shard that was throttled now is hot, rather than one of many that a table has too little throughput for. */
  isHotWhenThrottled(shard: number, nowMs: number): boolean {
    const from = this.#measures.get(shard);
    if (from === undefined) return false;
    const elapsedMs = nowMs - from.sentAtMs;
    return elapsedMs >= SHORTEST_THROTTLED_MEASURE_MS && perSecond(from.lastWrites - from.writes, elapsedMs) >= BUSY_UNITS_PER_SECOND;
  }

  /** Whether a hot or throttled bucket may be doubled now, given when its shard 0 was last split. */
  mayDouble(splitAtMs: number | undefined, nowMs: number): boolean {
    return nowMs - Math.max(splitAtMs ?? -Infinity, this.#triedAtMs) >= PAUSE_BETWEEN_DOUBLINGS_MS;
  }

  /** Notes that this process tries to double the bucket, whatever comes of it. */
  doubling(nowMs: number): void {
    this.#triedAtMs = nowMs;
    this.#measures.clear();
  }
}

/** The parts of an image that pressure is measured by. */
export type MeasuredImage = Pick<BucketImage, "shard" | "version" | "creation" | "writes">;

function perSecond(units: number, elapsedMs: number): number {
  return (units * 1000) / elapsedMs;
}
