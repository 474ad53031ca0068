import type { Reading } from "./shard-cursor.ts";

/**
 * By how much the clock of this process and the times of records may differ: 2 s of the clock, up
 * to 2 s of the server's, and the second that times of records are rounded to.
 */
const CLOCK_TOLERANCE_MS = 5000;

/**
 * How many empty replies in a row mean that a shard has no more for now. DynamoDB may return an
 * empty page in the middle of a shard; at four reads a second this is two seconds.
 */
export const EMPTY_REPLIES = 8;

/** Recognises, reading by reading, that a shard has been read up to a time. */
export class StartReached {
  readonly #startMs: number;
  readonly #isClosed: boolean;
  #emptyReplies = 0;

  /** A shard that is closed is read to its very end: its children wait for that. */
  constructor(options: { readonly startMs: number; readonly isClosed: boolean }) {
    this.#startMs = options.startMs;
    this.#isClosed = options.isClosed;
  }

  /** Takes the next reading into account; true when all before the time has been read. */
  note({ records, ended }: Pick<Reading, "records" | "ended">): boolean {
    this.#emptyReplies = records.length === 0 ? this.#emptyReplies + 1 : 0;
    if (ended) return true;
    if (this.#isClosed) return false;
    return (
      this.#emptyReplies >= EMPTY_REPLIES ||
      records.some(({ atMs }) => isCertainlyAfter(atMs, this.#startMs))
    );
  }
}

/** Whether a time of the stream is after a time of this process, however their clocks differ. */
export function isCertainlyAfter(atMs: number, startMs: number): boolean {
  return atMs > startMs + CLOCK_TOLERANCE_MS;
}
