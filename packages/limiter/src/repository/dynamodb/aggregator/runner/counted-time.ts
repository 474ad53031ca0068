import type { Reading } from "./shard-cursor.ts";
import { EMPTY_REPLIES } from "./start-reached.ts";

/**
 * How long a record may be on its way into the stream, and clocks may differ: what was written
 * before that, and is not there, will not come.
 */
const ARRIVES_WITHIN_MS = 10_000;

/** Finds out until when everything in a shard is counted, by what was read of it and processed. */
export class CountedTime {
  #untilMs: number | undefined;
  #emptyReplies = 0;

  /** Undefined until something is known. */
  get untilMs(): number | undefined {
    return this.#untilMs;
  }

  /** Takes a reading into account whose records were all processed, and which began at a time. */
  note({ records }: Pick<Reading, "records">, beganAtMs: number): void {
    const last = records.at(-1);
    this.#emptyReplies = last === undefined ? this.#emptyReplies + 1 : 0;
    if (last !== undefined) this.#moveTo(last.atMs);
    else if (this.#emptyReplies >= EMPTY_REPLIES) this.#moveTo(beganAtMs - ARRIVES_WITHIN_MS);
  }

  /** Times of records may differ by some seconds from their order. */
  #moveTo(timeMs: number): void {
    this.#untilMs = Math.max(this.#untilMs ?? timeMs, timeMs);
  }
}
