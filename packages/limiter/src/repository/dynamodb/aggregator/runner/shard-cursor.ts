import type { Clock } from "../../../system-clock.ts";
import type { StreamRecord } from "../stream-record.ts";
import { placeFault, type TableStream } from "./table-stream.ts";

/** What one read of a shard brought. */
export interface Reading {
  readonly records: readonly StreamRecord[];
  /** The shard is closed, and these are its last records. */
  readonly ended: boolean;
  /** Records between the place to continue at and these are no longer in the stream. */
  readonly lost: boolean;
}

/** How a cursor reads. */
export interface CursorOptions {
  readonly stream: TableStream;
  readonly shardId: string;
  /** The record to continue after; undefined to begin at the oldest. */
  readonly after: string | undefined;
  readonly clock: Clock;
}

/**
 * The least time between two reads. A shard may be read five times a second by all its readers; the
 * fifth is left to a runner whose lease has just ended, and to people who inspect the stream.
 */
const PACE_MS = 250;

/** A place is looked up again after it expired, then at the oldest record, which may move too. */
const MAX_PLACES = 4;

/** Reads a shard from a place to its end, and finds the place again when the stream forgets it. */
export class ShardCursor {
  readonly #options: CursorOptions;
  #after: string | undefined;
  #iterator: string | undefined;
  /** Records were lost, and no reading has said so yet. */
  #isLost = false;
  #nextReadAtMs = -Infinity;

  constructor(options: CursorOptions) {
    this.#options = options;
    this.#after = options.after;
  }

  /** The next records, if the shard has more for now. The signal ends the pause before them. */
  async next(signal?: AbortSignal): Promise<Reading> {
    const { stream, shardId } = this.#options;
    await this.#keepPace(signal);
    for (let places = 1; ; places += 1) {
      try {
        this.#iterator ??= await stream.iterator(shardId, this.#after);
        const { records, next } = await stream.read(this.#iterator);
        const lost = this.#isLost;
        this.#isLost = false;
        this.#after = records.at(-1)?.sequenceNumber ?? this.#after;
        this.#iterator = next;
        return { records, ended: next === undefined, lost };
      } catch (error) {
        const fault = placeFault(error);
        if (fault === undefined || places >= MAX_PLACES) throw error;
        this.#iterator = undefined;
        // A shard leaves the stream a day after it was closed. A runner that is up to date has read
        // its end long before.
        if (fault === "gone") return { records: [], ended: true, lost: true };
        if (fault === "trimmed") {
          this.#isLost ||= this.#after !== undefined;
          this.#after = undefined;
        }
      }
    }
  }

  async #keepPace(signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#options;
    const waitMs = Math.min(PACE_MS, this.#nextReadAtMs - clock.now());
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    this.#nextReadAtMs = clock.now() + PACE_MS;
  }
}
