import { isUint8Array } from "node:util/types";
import { isRecord } from "../../core/amounts.ts";
import { AnswerNotes } from "./answer-notes.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { GrowingBytes } from "./bytes/growing-bytes.ts";
import type { Protocol } from "./protocol.ts";

/** Longer answers are not read. The longest are embeddings of many texts. */
export const MAX_BODY_BYTES = 64 * 1024 * 1024;

const UTF_8 = new TextDecoder();

/** Reads an answer that is one JSON object, after all of it has passed. */
export class BodyReader extends AnswerNotes implements AnswerReader<Uint8Array> {
  readonly #protocol: Protocol;
  readonly #body = new GrowingBytes(MAX_BODY_BYTES);
  #isUnreadable = false;
  #isRead = false;

  constructor(protocol: Protocol) {
    super();
    this.#protocol = protocol;
  }

  override get outputBytes(): number | undefined {
    return this.#isRead ? super.outputBytes : undefined;
  }

  read(chunk: Uint8Array): Uint8Array {
    this.#isUnreadable ||= !isUint8Array(chunk) || !this.#body.add(chunk);
    if (this.#isUnreadable) this.#body.clear();
    return chunk;
  }

  end(): undefined {
    if (this.#isUnreadable) return;
    try {
      const body: unknown = JSON.parse(UTF_8.decode(this.#body.bytes));
      if (!isRecord(body)) return;
      this.#protocol.readBody(body, this);
      this.#isRead = true;
      this.finishes();
      this.ends();
    } catch {
      // The body is not JSON, so nothing is known about it.
    } finally {
      this.#body.clear();
    }
  }
}
