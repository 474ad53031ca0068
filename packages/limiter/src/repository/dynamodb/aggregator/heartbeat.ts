import { randomUUID } from "node:crypto";
import { BUCKET_SORT_KEY, pulseKey } from "../items/keys.ts";
import { heartbeatUpdate, pulseUpdate } from "../items/heartbeat-item.ts";
import type { Connection } from "../table/connection.ts";
import { TableUnavailable } from "../table/table-errors.ts";
import { keyOfRecord, type StreamRecord } from "./stream-record.ts";

/** The least time between two heartbeats that buckets alone cause. */
const BUCKETS_EVERY_MS = 10_000;

/**
 * Tells readers until when consumption has been counted. It goes by the time of the records, to the
 * second: those of the same second may still come, so everything before that second was counted.
 */
export class Heartbeat {
  readonly #connection: Connection;
  readonly #writtenBy = randomUUID();
  /** When it was last written, by the clock. */
  #writtenAtMs = -Infinity;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Writes a pulse, which comes back through the stream behind everything that is in it now. */
  async pulse(): Promise<void> {
    await this.#connection.repeat("UpdateItem", pulseUpdate(this.#connection.clock.now()));
  }

  /**
   * Notes that all records of a batch were processed. A pulse is always worth a write, and changes
   * of buckets are now and then. What the aggregator itself writes is not: each heartbeat would
   * cause another.
   */
  async note(records: readonly StreamRecord[]): Promise<void> {
    const { newestMs, hasPulse } = readTimes(records);
    if (newestMs === undefined) return;
    const ageMs = this.#connection.clock.now() - this.#writtenAtMs;
    // A negative age: the clock was set back.
    if (!hasPulse && ageMs >= 0 && ageMs < BUCKETS_EVERY_MS) return;
    try {
      await this.storeCountedUntil(newestMs);
    } catch (error) {
      // The batch was counted, and need not be delivered again. The next one writes the heartbeat;
      // until then readers see that it is old.
      if (!(error instanceof TableUnavailable)) throw error;
    }
  }

  /** Stores that everything until a time has been counted, unless a later time is stored. */
  async storeCountedUntil(timeMs: number): Promise<void> {
    const seenMs = this.#connection.clock.now();
    const update = heartbeatUpdate({
      countedUntilMs: timeMs,
      seenMs,
      writtenBy: this.#writtenBy,
    });
    await this.#connection.repeatConditional("UpdateItem", update);
    this.#writtenAtMs = seenMs;
  }
}

/** The newest time among the records of buckets and pulses; undefined when there are none. */
function readTimes(records: readonly StreamRecord[]): {
  readonly newestMs: number | undefined;
  readonly hasPulse: boolean;
} {
  const pulse = pulseKey();
  let newestMs: number | undefined;
  let hasPulse = false;
  for (const record of records) {
    const { PK, SK } = keyOfRecord(record);
    const isPulse = SK === pulse.SK && PK === pulse.PK;
    if (!isPulse && SK !== BUCKET_SORT_KEY) continue;
    hasPulse ||= isPulse;
    newestMs = Math.max(newestMs ?? 0, record.atMs);
  }
  return { newestMs, hasPulse };
}
