/** A larger buffer is not kept between two uses. */
const KEPT_BYTES = 65_536;

/**
 * Joins pieces of bytes, up to a bound. The pieces are copied, because their next consumer may
 * change or transfer them. The buffer doubles, so many small pieces cost no more than a large one.
 */
export class GrowingBytes {
  readonly #maxBytes: number;
  #buffer = new Uint8Array(0);
  #length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** The bytes; they are overwritten by what is added after `clear`. */
  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Adds a piece. Returns false, and adds nothing, if the bound would be exceeded. */
  add(piece: Uint8Array): boolean {
    const length = this.#length + piece.length;
    if (length > this.#maxBytes) return false;
    if (length > this.#buffer.length) {
      const larger = new Uint8Array(Math.min(2 * length, this.#maxBytes));
      larger.set(this.bytes);
      this.#buffer = larger;
    }
    this.#buffer.set(piece, this.#length);
    this.#length = length;
    return true;
  }

  clear(): void {
    this.#length = 0;
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = new Uint8Array(0);
  }
}
