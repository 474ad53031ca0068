/*
 * Removes events from a stream of bytes, and passes everything else on unchanged. Until the model
 * has finished, bytes pass at once. After that, an event is held until it has ended, because only
 * then it is known whether it must be left out.
 */
import { GrowingBytes } from "./growing-bytes.ts";

/** Longer events cannot report usage, so they are neither left out nor held any longer. */
export const MAX_HELD_BYTES = 65_536;

export class Withholding {
  /** The beginning of an event, from chunks before, that was not passed on. */
  readonly #held = new GrowingBytes(MAX_HELD_BYTES);
  /** Whether the beginning of the event was passed on, so that the rest must follow. */
  #hasPassed = false;
  #wasLeftOut = false;
  #chunk: Uint8Array = new Uint8Array(0);
  /** Up to where the chunk was passed on or left out. */
  #doneUpTo = 0;
  /** Where the event begins in the chunk. */
  #eventStart = 0;
  #passed: Uint8Array[] = [];

  /** Begins a chunk, whose bytes up to `start` belong to the event that has ended. */
  begin(chunk: Uint8Array, start: number): void {
    this.#chunk = chunk;
    this.#doneUpTo = this.#wasLeftOut ? start : 0;
    this.#eventStart = start;
    this.#passed = [];
  }

  /** Ends an event at a position of the chunk. */
  endEvent(end: number, isLeftOut: boolean): void {
    this.#wasLeftOut = isLeftOut;
    if (isLeftOut) {
      this.#held.clear();
      this.#passUpTo(this.#eventStart);
      this.#doneUpTo = end;
    } else this.#release();
    this.#hasPassed = false;
    this.#eventStart = end;
  }

  /** Returns the bytes to pass on, held ones first. Near the end, an event may be held. */
  pass(isNearEnd: boolean): Uint8Array | undefined {
    const chunk = this.#chunk;
    const tail = chunk.subarray(this.#eventStart);
    const isHeld = isNearEnd && !this.#hasPassed && this.#held.add(tail);
    if (!isHeld) this.#release();
    this.#hasPassed ||= !isHeld && tail.length > 0;
    const end = isHeld ? this.#eventStart : chunk.length;
    if (this.#passed.length === 0 && this.#doneUpTo === 0 && end === chunk.length) return chunk;
    this.#passUpTo(end);
    return joinPieces(this.#passed);
  }

  /** Returns the bytes that are still held when the stream has ended. */
  rest(isLeftOut: boolean): Uint8Array | undefined {
    return isLeftOut ? undefined : joinPieces([this.#held.bytes.slice()]);
  }

  /** Passes the held bytes on, before those of the chunk. */
  #release(): void {
    if (this.#held.length > 0) this.#passed.push(this.#held.bytes.slice());
    this.#held.clear();
  }

  #passUpTo(end: number): void {
    this.#passed.push(this.#chunk.subarray(this.#doneUpTo, end));
    this.#doneUpTo = end;
  }
}

function joinPieces(pieces: readonly Uint8Array[]): Uint8Array | undefined {
  const filled = pieces.filter((piece) => piece.length > 0);
  return filled.length > 1 ? Buffer.concat(filled) : filled[0];
}
