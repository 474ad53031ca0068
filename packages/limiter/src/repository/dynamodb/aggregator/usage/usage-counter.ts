import type { UsageWindow } from "../../../../core/usage.ts";
import type { Retention } from "../../cache/retention.ts";
import type { Connection } from "../../table/connection.ts";
import { NO_FAILURES, type PartReport } from "../part.ts";
import type { StreamRecord } from "../stream-record.ts";

/** What was counted of a batch. */
export interface UsageReport extends PartReport {
  /** Records that changed what a bucket has consumed. */
  readonly counted: number;
  /** Successful writes of snapshots. */
  readonly snapshotWrites: number;
}

/** Sums consumption into snapshots, each change once. */
export class UsageCounter {
  readonly #connection: Connection;
  readonly #windows: readonly UsageWindow[];
  readonly #retention: Retention;

  constructor(options: {
    readonly connection: Connection;
    readonly windows: readonly UsageWindow[];
    /** By namespace id. */
    readonly retention: Retention;
  }) {
    this.#connection = options.connection;
    this.#windows = options.windows;
    this.#retention = options.retention;
  }

  /** Counts the records of a batch, which come in the order of the stream. */
  async count(_records: readonly StreamRecord[]): Promise<UsageReport> {
    void [this.#connection, this.#windows, this.#retention];
    return Promise.resolve({ failures: NO_FAILURES, counted: 0, snapshotWrites: 0 });
  }
}
