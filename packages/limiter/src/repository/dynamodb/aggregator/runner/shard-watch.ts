import type { Clock } from "../../../system-clock.ts";
import { isRelevant } from "./relevance.ts";
import { ShardCursor, WATCHER_PACE_MS } from "./shard-cursor.ts";
import type { ShardState } from "./shard-states.ts";
import type { StartReached } from "./start-reached.ts";
import { positionOf } from "../stream-record.ts";
import type { TableStream } from "./table-stream.ts";

/** How a shard is watched. */
export interface WatchOptions {
  readonly stream: TableStream;
  readonly clock: Clock;
  readonly reached: StartReached;
}

/** The most reads in one look, so that leases that become free are seen soon. */
const READS_IN_A_LOOK = 4;

/**
 * Finds out whether another runner has processed what a shard held at a time. Its checkpoint tells
 * only what it has processed, not what is left, so the shard is read from there: as soon as a
 * record is found that moves checkpoints, the next look waits until the checkpoint has passed it.
 */
export class ShardWatch {
  readonly #cursor: ShardCursor;
  readonly #reached: StartReached;
  /** The last relevant record that was found; the checkpoint may not have passed it. */
  #awaited: string | undefined;
  #isRead = false;

  constructor(state: ShardState, options: WatchOptions) {
    const { stream, clock } = options;
    const { shardId, sequenceNumber: after } = state;
    this.#cursor = new ShardCursor({ stream, shardId, after, clock, paceMs: WATCHER_PACE_MS });
    this.#reached = options.reached;
  }

  /** Looks again; true when everything that was there at the time is processed. */
  async look({ sequenceNumber }: ShardState, signal?: AbortSignal): Promise<boolean> {
    for (let reads = 0; ; reads += 1) {
      if (this.#awaited !== undefined && !isPast(sequenceNumber, this.#awaited)) return false;
      this.#awaited = undefined;
      if (this.#isRead) return true;
      if (reads >= READS_IN_A_LOOK) return false;
      const reading = await this.#cursor.next(signal);
      this.#awaited = reading.records.findLast(
        (record) => isRelevant(record) && !this.#reached.isAfter(record.atMs),
      )?.sequenceNumber;
      this.#isRead = this.#reached.note(reading);
    }
  }
}

/** Whether a checkpoint is at a record or behind it. */
function isPast(checkpoint: string | undefined, sequenceNumber: string): boolean {
  return checkpoint !== undefined && positionOf("", checkpoint) >= positionOf("", sequenceNumber);
}
