import type { ShardState, StoredStates } from "./shard-states.ts";
import type { StreamShard } from "./table-stream.ts";

/** What a runner sees when it looks. */
export interface View {
  readonly streamLabel: string;
  readonly runnerId: string;
  readonly nowMs: number;
  readonly shards: readonly StreamShard[];
  readonly stored: StoredStates;
  /** The shards that this runner reads. */
  readonly held: ReadonlySet<string>;
  /** Shards that this runner needs no more. */
  readonly done: ReadonlySet<string>;
}

/** The part of it that is stored, or in the list of shards. */
type StoredView = Pick<View, "shards" | "stored" | "streamLabel">;

/** What a runner does next. */
export interface Assignment {
  /** Shards whose leases it takes. */
  readonly take: readonly string[];
  /** Shards that it leaves to others. */
  readonly giveBack: readonly string[];
  /** Shards that other runners read. */
  readonly ofOthers: readonly ShardState[];
  /** Shards that it still needs and that were not read to their end. */
  readonly open: readonly string[];
}

/**
 * Divides the shards that can be read now: every runner reads at most its share of them, takes what
 * is free until it has it, and gives back what is beyond it. No runner has to know more of another
 * than that it is there.
 */
export function assignmentOf(view: View): Assignment {
  const { shards, stored, held, done, nowMs, runnerId } = view;
  const open = shards
    .map(({ shardId }) => shardId)
    .filter((shardId) => !done.has(shardId) && !isFinished(shardId, view));
  const readable = shards
    .filter((shard) => open.includes(shard.shardId) && isReadable(shard, view))
    .map(({ shardId }) => shardId);
  const leases = [...stored.shards.values()].filter(
    ({ owner, leaseUntilMs }) => owner !== undefined && leaseUntilMs >= nowMs,
  );
  const runners = new Set([runnerId, ...stored.waiting, ...leases.map(({ owner }) => owner!)]);
  const share = Math.ceil(readable.length / runners.size);
  const ofOthers = leases.filter(
    ({ shardId, owner }) => owner !== runnerId && open.includes(shardId),
  );
  const taken = new Set(ofOthers.map(({ shardId }) => shardId));
  const free = readable.filter((shardId) => !held.has(shardId) && !taken.has(shardId));
  return {
    take: free.slice(0, Math.max(0, share - held.size)),
    giveBack: [...held].slice(share),
    ofOthers,
    open,
  };
}

/**
 * How long ago the lease of a shard must have ended before the shard is missed: a list of shards
 * may be some seconds older than what is stored of them.
 */
const MISSED_AFTER_MS = 3_600_000;

/**
 * Shards that left the stream before anybody had read them to their end. It keeps them for a day,
 * so this happens where no runner has worked for longer than that.
 */
export function missedShards(view: StoredView & Pick<View, "nowMs">): readonly ShardState[] {
  const listed = new Set(view.shards.map(({ shardId }) => shardId));
  return [...view.stored.shards.values()].filter(
    ({ shardId, isFinished: isRead, streamLabel, leaseUntilMs }) =>
      !isRead &&
      !listed.has(shardId) &&
      streamLabel === view.streamLabel &&
      leaseUntilMs < view.nowMs - MISSED_AFTER_MS,
  );
}

/**
 * Until when everything in the stream is counted; undefined while a shard does not tell. A child
 * continues where its parent ends, so it need not tell before its parent was read to its end. A
 * shard that was, and has no children in the list, has some that the list does not know yet.
 */
export function countedUntil(view: StoredView): number | undefined {
  const { shards, stored, streamLabel } = view;
  let earliest: number | undefined;
  for (const shard of shards) {
    const { shardId } = shard;
    if (!isReadable(shard, view)) continue;
    if (isFinished(shardId, view)) {
      if (isClosed(shardId, shards)) continue;
      return undefined;
    }
    const state = stored.shards.get(shardId);
    if (state?.streamLabel !== streamLabel || state.countedUntilMs === undefined) return undefined;
    earliest = Math.min(earliest ?? Infinity, state.countedUntilMs);
  }
  return earliest;
}

/** Whether a shard is closed, as far as the list of shards shows: it has children. */
export function isClosed(shardId: string, shards: readonly StreamShard[]): boolean {
  return shards.some(({ parentId }) => parentId === shardId);
}

/**
 * A child continues what its parent began, so it is read when its parent was read to its end, or
 * has left the stream.
 */
function isReadable({ parentId }: StreamShard, view: StoredView): boolean {
  return (
    parentId === undefined ||
    !view.shards.some(({ shardId }) => shardId === parentId) ||
    isFinished(parentId, view)
  );
}

function isFinished(shardId: string, { stored, streamLabel }: StoredView): boolean {
  const state = stored.shards.get(shardId);
  return state?.isFinished === true && state.streamLabel === streamLabel;
}
