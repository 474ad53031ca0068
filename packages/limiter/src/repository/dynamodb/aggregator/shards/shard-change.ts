import { bucketKey, type BucketKey } from "../../items/bucket-key.ts";
import { parseBucketPartition } from "../../items/key-parsers.ts";
import type { MeasuredShard } from "../../shards/merge-monitor.ts";
import { firstKey } from "../../shards/pressure.ts";
import { getNumber, getString, type AttributeMap } from "../../transport/attribute-values.ts";
import { keyOfRecord, type StreamRecord } from "../stream-record.ts";

/** What a record says of a shard. The rest of its image is not read: the table has a newer one. */
interface ShardImage extends MeasuredShard {
  readonly divisor: number;
}

/** One change of a shard. */
export interface ShardChange {
  /** The key of shard 0 of the same bucket. */
  readonly first: BucketKey;
  /** Undefined when the shard was created. */
  readonly before: ShardImage | undefined;
  /** Undefined when the shard was deleted. */
  readonly after: ShardImage | undefined;
}

/** The changes of the shards in a batch, by partition, in the order of the stream. */
export function parseShardChanges(
  records: readonly StreamRecord[],
): ReadonlyMap<string, readonly ShardChange[]> {
  const changes = new Map<string, ShardChange[]>();
  for (const record of records) {
    const { PK: partition } = keyOfRecord(record);
    const name = parseBucketPartition(partition);
    if (name === undefined) continue;
    const key = bucketKey(name, undefined);
    const change = {
      first: firstKey(key),
      before: parseImage(record.before, key.shard),
      after: parseImage(record.after, key.shard),
    };
    const earlier = changes.get(partition);
    if (earlier === undefined) changes.set(partition, [change]);
    else earlier.push(change);
  }
  return changes;
}

/** How many splits and merges changes show: each changes the divisor of the shard that it keeps. */
export function countReshaped(changes: readonly ShardChange[]): {
  readonly splits: number;
  readonly merges: number;
} {
  const factors = changes.map(({ before, after }) =>
    before === undefined || after === undefined || before.creation !== after.creation
      ? 1
      : after.divisor / before.divisor,
  );
  return {
    splits: factors.filter((factor) => factor > 1).length,
    merges: factors.filter((factor) => factor < 1).length,
  };
}

function parseImage(item: AttributeMap | undefined, shard: number): ShardImage | undefined {
  if (item === undefined) return undefined;
  return {
    shard,
    divisor: getNumber(item["shard_count"]) ?? 1,
    version: getNumber(item["sv"]) ?? 0,
    creation: getString(item["cr"]) ?? "",
    writes: getNumber(item["b_wcu_tc"]) ?? 0,
  };
}
