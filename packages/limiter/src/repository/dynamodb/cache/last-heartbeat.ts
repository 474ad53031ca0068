import { parseHeartbeat, type HeartbeatRecord } from "../items/heartbeat-item.ts";
import { heartbeatKey } from "../items/keys.ts";
import type { ItemReader } from "../table/item-reader.ts";

/** The heartbeat of a table's aggregator, and whether there was one when it was last read. */
export class LastHeartbeat {
  readonly #reader: ItemReader;
  #wasSeen = false;

  constructor(reader: ItemReader) {
    this.#reader = reader;
  }

  /** Whether the last reading found one. */
  get wasSeen(): boolean {
    return this.#wasSeen;
  }

  /** Reads it, consistently, and remembers whether there is one. */
  async read(): Promise<HeartbeatRecord | undefined> {
    const heartbeat = parseHeartbeat(await this.#reader.get(heartbeatKey()));
    this.#wasSeen = heartbeat !== undefined;
    return heartbeat;
  }
}
