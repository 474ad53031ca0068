/*
 * Shards of a stream split and end; children continue what their parent began. So a child is read
 * when its parent was read to its end, or has left the stream.
 */
import type { StreamShard } from "./table-stream.ts";

/** How far a shard was read. */
export interface ShardProgress {
  /** The checkpoint: everything up to this record has been processed. */
  readonly sequenceNumber: string | undefined;
  /** Everything in the shard that was written before this time has been processed. */
  readonly countedUntilMs: number | undefined;
  /** Whether the shard was read to its end. */
  readonly isFinished: boolean;
}

/** By the ids of shards. */
export type StreamProgress = ReadonlyMap<string, ShardProgress>;

/** The shards that can be read now. */
export function findReadable(
  shards: readonly StreamShard[],
  progress: StreamProgress,
): readonly StreamShard[] {
  const listed = new Set(shards.map(({ shardId }) => shardId));
  const isFinished = (shardId: string): boolean => progress.get(shardId)?.isFinished === true;
  return shards.filter(
    ({ shardId, parentId }) =>
      !isFinished(shardId) &&
      (parentId === undefined || !listed.has(parentId) || isFinished(parentId)),
  );
}

/**
 * Until when everything in the stream is counted; undefined while this is unknown for a shard. A
 * shard that was read to its end, and has no children in the list, has some that the list does not
 * show yet.
 */
export function computeCountedUntil(
  shards: readonly StreamShard[],
  progress: StreamProgress,
): number | undefined {
  if (shards.some((shard) => progress.get(shard.shardId)?.isFinished && !isClosed(shard, shards)))
    return undefined;
  let earliest: number | undefined;
  for (const { shardId } of findReadable(shards, progress)) {
    const untilMs = progress.get(shardId)?.countedUntilMs;
    if (untilMs === undefined) return undefined;
    earliest = Math.min(earliest ?? untilMs, untilMs);
  }
  return earliest;
}

/** Whether a shard is closed, as far as the list of shards shows: it has children. */
export function isClosed(
  { shardId }: Pick<StreamShard, "shardId">,
  shards: readonly StreamShard[],
): boolean {
  return shards.some(({ parentId }) => parentId === shardId);
}
