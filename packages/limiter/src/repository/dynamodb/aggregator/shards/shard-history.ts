import { bucketKey, type BucketKey } from "../../items/bucket-key.ts";
import { parseBucketPartition } from "../../items/key-parsers.ts";
import { firstKey, type MeasuredImage } from "../../shards/pressure.ts";
import { numberOf, stringOf, type AttributeMap } from "../../transport/attribute-values.ts";
import { keyOfRecord, type StreamRecord } from "../stream-record.ts";

/** What a record says of a shard. The rest of its image is not read: the table has a newer one. */
export interface ShardImage extends MeasuredImage {
  readonly divisor: number;
}

/** One change of a shard. */
export interface ShardChange {
  readonly record: StreamRecord;
  /** Undefined when the shard was deleted. */
  readonly image: ShardImage | undefined;
}

/** The changes of one shard in a batch. */
export interface ShardHistory {
  readonly key: BucketKey;
  /** The key of shard 0 of the same bucket. */
  readonly first: BucketKey;
  /** In the order of the stream; at least one. */
  readonly changes: ShardChange[];
}

/** The histories of all shards of buckets in a batch. */
export function shardHistories(records: readonly StreamRecord[]): readonly ShardHistory[] {
  const histories = new Map<string, ShardHistory | undefined>();
  for (const record of records) {
    const { PK: partition } = keyOfRecord(record);
    if (!histories.has(partition)) histories.set(partition, newHistory(partition));
    const history = histories.get(partition);
    history?.changes.push({ record, image: imageIn(record.after, history.key.shard) });
  }
  return [...histories.values()].filter((history) => history !== undefined);
}

/** The last change of a shard. */
export function newestOf({ changes }: ShardHistory): ShardChange {
  return changes.at(-1)!;
}

/**
 * The records by which a bucket got a larger count: that of shard 0 comes first, and the other
 * shards may still have to be split.
 */
export function announcementsIn({ key, changes }: ShardHistory): readonly StreamRecord[] {
  if (key.shard !== 0) return [];
  return changes
    .filter(({ record, image }) => image !== undefined && image.divisor > divisorOf(record.before))
    .map(({ record }) => record);
}

function newHistory(partition: string): ShardHistory | undefined {
  const name = parseBucketPartition(partition);
  if (name === undefined) return undefined;
  const key = bucketKey(name, undefined);
  return { key, first: firstKey(key), changes: [] };
}

function imageIn(item: AttributeMap | undefined, shard: number): ShardImage | undefined {
  if (item === undefined) return undefined;
  return {
    shard,
    divisor: divisorOf(item),
    version: numberOf(item["sv"]) ?? 0,
    creation: stringOf(item["cr"]) ?? "",
    writes: numberOf(item["b_wcu_tc"]) ?? 0,
  };
}

/** A bucket that does not exist has one shard. */
function divisorOf(item: AttributeMap | undefined): number {
  return numberOf(item?.["shard_count"]) ?? 1;
}
