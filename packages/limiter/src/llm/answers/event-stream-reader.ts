import { isUint8Array } from "node:util/types";
import { AnswerNotes } from "./answer-notes.ts";
import type { AnswerReader } from "./answer-reader.ts";
import { parseEventData } from "./bytes/event-data.ts";
import { EventSplitter } from "./bytes/event-splitter.ts";
import { toObject, type Json, type Protocol } from "./protocol.ts";
import { MAX_HELD_BYTES, Withholding } from "./bytes/withholding.ts";

/** Reads events as bytes pass. They pass at once and unchanged, except events to leave out. */
export class EventStreamReader extends AnswerNotes implements AnswerReader<Uint8Array> {
  readonly #protocol: Protocol;
  /** Which events are left out once the model has finished; undefined for none. */
  readonly #isLeftOut: ((event: Json) => boolean) | undefined;
  readonly #splitter = new EventSplitter();
  readonly #withholding = new Withholding();
  #hasEvents = false;

  constructor(protocol: Protocol, isLeftOut?: (event: Json) => boolean) {
    super();
    this.#protocol = protocol;
    this.#isLeftOut = isLeftOut;
  }

  read(chunk: Uint8Array): Uint8Array | undefined {
    if (!isUint8Array(chunk)) {
      this.cannotRead();
      return chunk;
    }
    this.#withholding.begin(chunk, this.#splitter.begin(chunk));
    for (let end = this.#splitter.nextEnd(); end !== -1; end = this.#splitter.nextEnd()) {
      const { event } = this.#splitter;
      const json = this.#readData(event === undefined ? undefined : parseEventData(event));
      if (json === undefined) this.cannotRead();
      this.#withholding.endEvent(end, this.#leavesOut(json, event));
      this.#hasEvents = true;
    }
    return this.#isLeftOut === undefined ? chunk : this.#withholding.pass(this.#isNearEnd);
  }

  /** The last event may lack only its blank line. That it is cut off is not an error. */
  end(): Uint8Array | undefined {
    const { rest } = this.#splitter;
    const data = rest === undefined ? undefined : parseEventData(rest);
    const isEvent = data !== undefined || (this.#hasEvents && rest !== undefined);
    if (!isEvent) this.cannotRead();
    return this.#withholding.rest(this.#leavesOut(this.#readData(data), rest));
  }

  /** Whether an event to leave out may follow. */
  get #isNearEnd(): boolean {
    return this.hasFinished && !this.isComplete;
  }

  /** Returns the JSON of an event; undefined if it cannot be read. */
  #readData(data: string | undefined): Json | undefined {
    if (data === undefined) return undefined;
    if (data.startsWith("[DONE]")) this.ends();
    else if (data !== "") return this.#readJson(data);
    return {};
  }

  #readJson(data: string): Json | undefined {
    try {
      const json = toObject(JSON.parse(data));
      this.#protocol.readEvent(json, this);
      return json;
    } catch {
      return undefined;
    }
  }

  #leavesOut(json: Json | undefined, event: Uint8Array | undefined): boolean {
    if (this.#isLeftOut === undefined || json === undefined || event === undefined) return false;
    return this.#isNearEnd && event.length <= MAX_HELD_BYTES && this.#isLeftOut(json);
  }
}
