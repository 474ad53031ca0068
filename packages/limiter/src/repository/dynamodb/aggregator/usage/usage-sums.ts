import { windowEndMs, windowStartMs, type UsageWindow } from "../../../../core/usage.ts";
import { BUCKET_SORT_KEY, type UsageName } from "../../items/keys.ts";
import { parseBucketPartition } from "../../items/key-parsers.ts";
import { keyOfRecord, type StreamRecord } from "../stream-record.ts";
import { usageChange, type UsageChange } from "./usage-change.ts";

/** What one record adds to each of its snapshots. */
interface Contribution {
  readonly record: StreamRecord;
  readonly change: UsageChange;
}

/** What the changes of one bucket shard add to a snapshot, in the order of the stream. */
export interface ShardPart {
  readonly shard: number;
  /** Never empty. */
  readonly contributions: readonly Contribution[];
}

/** What a batch adds to one snapshot. */
export interface UsageSum {
  readonly namespaceId: string;
  readonly name: UsageName;
  /** One for each bucket shard; never empty. */
  readonly parts: readonly ShardPart[];
}

/** What a batch adds to all snapshots. */
export interface BatchUsage {
  readonly sums: readonly UsageSum[];
  /** Records that consumed something, or gave something back. */
  readonly counted: number;
  /** Records of buckets that cannot be read. */
  readonly skipped: number;
}

/**
 * Sums up what a batch consumed. A record that consumed nothing is in no sum. Records that cancel
 * each other out are: one of them may be delivered again without the other.
 */
export function usageSums(
  records: readonly StreamRecord[],
  windows: readonly UsageWindow[],
): BatchUsage {
  const collection = new SumCollection(windows);
  let counted = 0;
  let skipped = 0;
  for (const record of records) {
    const { PK, SK } = keyOfRecord(record);
    if (SK !== BUCKET_SORT_KEY || record.after === undefined) continue;
    const change = parseChange(record);
    if (change?.length === 0) continue;
    if (change !== undefined && collection.add(PK, { record, change })) counted += 1;
    else skipped += 1;
  }
  return { sums: collection.sums, counted, skipped };
}

/**
 * The sum without what is counted already: a bucket shard's changes up to its stored position.
 * Undefined when nothing is left.
 */
export function newerPart(
  sum: UsageSum,
  getPosition: (shard: number) => string | undefined,
): UsageSum | undefined {
  const parts = sum.parts.flatMap(({ shard, contributions }): readonly ShardPart[] => {
    const counted = getPosition(shard);
    if (counted === undefined) return [{ shard, contributions }];
    const newer = contributions.filter(({ record }) => record.position > counted);
    return newer.length === 0 ? [] : [{ shard, contributions: newer }];
  });
  return parts.length === 0 ? undefined : { ...sum, parts };
}

/** Keys write years with four digits. */
const END_OF_TIME_MS = Date.UTC(10_000, 0, 1);

/** What a record consumed; undefined when it cannot be read. */
function parseChange({ kind, atMs, before, after }: StreamRecord): UsageChange | undefined {
  // Without the image before, a change would look like a new bucket, and count all over again.
  const isWhole = (kind === "insert") === (before === undefined);
  return isWhole && atMs >= 0 && atMs < END_OF_TIME_MS ? usageChange(before, after!) : undefined;
}

/** A snapshot's window, as a bucket shard last met it. */
interface OpenWindow {
  readonly startMs: number;
  readonly endMs: number;
  readonly contributions: Contribution[];
}

/** One bucket shard in a batch. */
interface BucketShard {
  readonly bucket: BucketSums;
  readonly shard: number;
  /** By the index of the window length; most batches lie within one window of each. */
  readonly open: (OpenWindow | undefined)[];
}

/** The sums of all shards of a bucket, by the start and the index of the window length. */
interface BucketSums {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
  readonly sums: Map<string, UsageSum & { readonly parts: ShardPart[] }>;
}

/** Files what records consumed under the snapshots that they belong to. */
class SumCollection {
  readonly sums: UsageSum[] = [];
  readonly #windows: readonly UsageWindow[];
  /** By partition key; undefined when it is not that of a bucket. */
  readonly #shards = new Map<string, BucketShard | undefined>();
  readonly #buckets = new Map<string, BucketSums>();

  constructor(windows: readonly UsageWindow[]) {
    this.#windows = windows;
  }

  /** Whether the key is that of a bucket. */
  add(partitionKey: string, contribution: Contribution): boolean {
    if (!this.#shards.has(partitionKey))
      this.#shards.set(partitionKey, this.#newShard(partitionKey));
    const shard = this.#shards.get(partitionKey);
    if (shard === undefined) return false;
    const { atMs, position } = contribution.record;
    for (let index = 0; index < this.#windows.length; index += 1) {
      let window = shard.open[index];
      if (window === undefined || atMs < window.startMs || atMs >= window.endMs)
        shard.open[index] = window = this.#openWindow(shard, index, atMs);
      const last = window.contributions.at(-1);
      // A batch may hold a record twice.
      if (last === undefined || position > last.record.position)
        window.contributions.push(contribution);
    }
    return true;
  }

  #newShard(partitionKey: string): BucketShard | undefined {
    const parsed = parseBucketPartition(partitionKey);
    if (parsed === undefined) return undefined;
    const { namespaceId, entityId, resource, shard } = parsed;
    const text = partitionKey.slice(0, partitionKey.lastIndexOf("#"));
    let bucket = this.#buckets.get(text);
    if (bucket === undefined) {
      bucket = { namespaceId, entityId, resource, sums: new Map() };
      this.#buckets.set(text, bucket);
    }
    return { bucket, shard, open: [] };
  }

  #openWindow({ bucket, shard }: BucketShard, index: number, atMs: number): OpenWindow {
    const window = this.#windows[index]!;
    const startMs = windowStartMs(window, atMs);
    const endMs = windowEndMs(window, startMs);
    const text = `${startMs}#${index}`;
    let sum = bucket.sums.get(text);
    if (sum === undefined) {
      const { namespaceId, entityId, resource } = bucket;
      sum = { namespaceId, name: { entityId, resource, window, startMs }, parts: [] };
      bucket.sums.set(text, sum);
      this.sums.push(sum);
    }
    const known = sum.parts.find((part) => part.shard === shard);
    if (known !== undefined)
      return { startMs, endMs, contributions: known.contributions as Contribution[] };
    const contributions: Contribution[] = [];
    sum.parts.push({ shard, contributions });
    return { startMs, endMs, contributions };
  }
}
