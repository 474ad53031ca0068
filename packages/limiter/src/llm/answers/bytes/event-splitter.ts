/*
 * Server-sent events in a stream of bytes. An event ends with a blank line; a line ends with CR LF,
 * LF or CR; and everything may be cut anywhere. Ends are looked for in the bytes, and an event is
 * decoded as a whole, so that no character is cut in two.
 *
 * A CR that is the last byte of a chunk ends its line at once, for nothing is delayed. If the next
 * chunk begins with LF, that byte belongs to the line before.
 */
import { GrowingBytes } from "./growing-bytes.ts";

/** Larger events are skipped. The largest that providers send hold whole answers, or images. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

const LF = 10;
const CR = 13;
const NO_BYTES = new Uint8Array(0);

/** Finds the events in chunks of bytes. It holds no more than the largest event. */
export class EventSplitter {
  /** The beginning of an event, from chunks before. */
  readonly #begun = new GrowingBytes(MAX_EVENT_BYTES);
  #chunk: Uint8Array = NO_BYTES;
  /** Where the event begins in the chunk. */
  #from = 0;
  /** Where to read on. */
  #at = 0;
  /** Where the next CR of the chunk is; its length if there is none. */
  #nextCr = 0;
  #isSkipped = false;
  #isLineEmpty = true;
  #isAfterCr = false;
  #event: Uint8Array | undefined;

  /**
   * The event that ended last, with its blank line; undefined if it was too large. The bytes are
   * valid until the next call.
   */
  get event(): Uint8Array | undefined {
    return this.#event;
  }

  /**
   * Begins to read a chunk. Returns how many of its bytes belong to the event that has ended: one,
   * if that was cut between CR and LF.
   */
  begin(chunk: Uint8Array): number {
    const isRestOfLine = this.#isAfterCr && chunk[0] === LF;
    this.#isAfterCr &&= chunk.length === 0;
    this.#chunk = chunk;
    this.#at = isRestOfLine ? 1 : 0;
    this.#from = this.#hasBegun ? 0 : this.#at;
    this.#nextCr = indexOf(chunk, CR, this.#at);
    return this.#from;
  }

  /**
   * Where the next event ends in the chunk, after its blank line. -1 if none does; what is left of
   * the chunk is then remembered as the beginning of an event.
   */
  nextEnd(): number {
    const chunk = this.#chunk;
    while (this.#at < chunk.length) {
      const lineEnd = this.#lineEnd();
      const isBlank = this.#isLineEmpty && lineEnd === this.#at;
      this.#isLineEmpty = lineEnd < chunk.length;
      this.#at = this.#afterLineEnd(lineEnd);
      if (isBlank) return this.#endEvent();
    }
    this.#isSkipped ||= !this.#begun.add(chunk.subarray(this.#from));
    if (this.#isSkipped) this.#begun.clear();
    this.#chunk = NO_BYTES;
    return -1;
  }

  /** The beginning of an event that has not ended; undefined if it is too large. */
  get rest(): Uint8Array | undefined {
    return this.#isSkipped ? undefined : this.#begun.bytes;
  }

  get #hasBegun(): boolean {
    return this.#begun.length > 0 || this.#isSkipped;
  }

  #lineEnd(): number {
    const chunk = this.#chunk;
    const byte = chunk[this.#at];
    if (byte === LF || byte === CR) return this.#at; // what most events end with
    if (this.#nextCr < this.#at) this.#nextCr = indexOf(chunk, CR, this.#at);
    return Math.min(indexOf(chunk, LF, this.#at), this.#nextCr);
  }

  #afterLineEnd(lineEnd: number): number {
    const chunk = this.#chunk;
    if (chunk[lineEnd] !== CR) return Math.min(lineEnd + 1, chunk.length);
    this.#isAfterCr = lineEnd + 1 === chunk.length;
    return chunk[lineEnd + 1] === LF ? lineEnd + 2 : lineEnd + 1;
  }

  #endEvent(): number {
    const piece = this.#chunk.subarray(this.#from, this.#at);
    if (!this.#hasBegun && piece.length <= MAX_EVENT_BYTES) this.#event = piece;
    else if (this.#isSkipped || !this.#begun.add(piece)) this.#event = undefined;
    else this.#event = this.#begun.bytes;
    this.#begun.clear();
    this.#isSkipped = false;
    this.#from = this.#at;
    return this.#at;
  }
}

function indexOf(bytes: Uint8Array, byte: number, from: number): number {
  const index = bytes.indexOf(byte, from);
  return index === -1 ? bytes.length : index;
}
