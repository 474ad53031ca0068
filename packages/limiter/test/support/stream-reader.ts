import {
  openTableStream,
  type TableStream,
} from "../../src/repository/dynamodb/aggregator/runner/table-stream.ts";
import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import type { Connection } from "../../src/repository/dynamodb/table/connection.ts";

/** Reads the stream of a table from its beginning, each record once. */
export class StreamReader {
  readonly #stream: TableStream;
  /** Where to continue, by shard; undefined when the shard has ended. */
  readonly #iterators = new Map<string, string | undefined>();

  private constructor(stream: TableStream) {
    this.#stream = stream;
  }

  static async open(connection: Connection): Promise<StreamReader> {
    return new StreamReader(await openTableStream(connection));
  }

  /** All records that are new since the last call, in the order of their shards. */
  async read(): Promise<readonly StreamRecord[]> {
    // An open shard has no successor.
    if ([...this.#iterators.values()].every((iterator) => iterator === undefined))
      await this.#findShards();
    const records: StreamRecord[] = [];
    for (const shardId of this.#iterators.keys()) records.push(...(await this.#readShard(shardId)));
    return records;
  }

  async #findShards(): Promise<void> {
    for (const { shardId } of await this.#stream.shards())
      if (!this.#iterators.has(shardId))
        this.#iterators.set(shardId, await this.#stream.iterator(shardId, undefined));
  }

  async #readShard(shardId: string): Promise<readonly StreamRecord[]> {
    const found: StreamRecord[] = [];
    for (;;) {
      const iterator = this.#iterators.get(shardId);
      if (iterator === undefined) return found;
      const { records, next } = await this.#stream.read(iterator);
      this.#iterators.set(shardId, next);
      found.push(...records);
      if (records.length === 0) return found;
    }
  }
}
