import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
} from "@aws-sdk/client-dynamodb-streams";
import {
  streamRecordOf,
  type StreamRecord,
} from "../../src/repository/dynamodb/aggregator/stream-record.ts";

/** Opens a client of an engine's streams; the caller destroys it. */
export function openStreams(endpointUrl: string): DynamoDBStreamsClient {
  return new DynamoDBStreamsClient({
    endpoint: endpointUrl,
    region: "us-east-1",
    credentials: { accessKeyId: "test", secretAccessKey: "test" },
  });
}

/** Reads a stream from its beginning, each record once. */
export class StreamReader {
  readonly #client: DynamoDBStreamsClient;
  readonly #streamArn: string;
  /** Where to read on, by shard; undefined when the shard is over. */
  readonly #iterators = new Map<string, string | undefined>();

  constructor(client: DynamoDBStreamsClient, streamArn: string) {
    this.#client = client;
    this.#streamArn = streamArn;
  }

  /** All records that are new since the last call, in the order of their shards. */
  async read(): Promise<readonly StreamRecord[]> {
    // A shard that goes on has no successor.
    if ([...this.#iterators.values()].every((iterator) => iterator === undefined))
      await this.#findShards();
    const records: StreamRecord[] = [];
    for (const shardId of this.#iterators.keys()) records.push(...(await this.#readShard(shardId)));
    return records;
  }

  async #findShards(): Promise<void> {
    const { StreamDescription: description } = await this.#client.send(
      new DescribeStreamCommand({ StreamArn: this.#streamArn }),
    );
    for (const { ShardId } of description?.Shards ?? []) {
      if (ShardId === undefined || this.#iterators.has(ShardId)) continue;
      const { ShardIterator } = await this.#client.send(
        new GetShardIteratorCommand({
          StreamArn: this.#streamArn,
          ShardId,
          ShardIteratorType: "TRIM_HORIZON",
        }),
      );
      this.#iterators.set(ShardId, ShardIterator);
    }
  }

  async #readShard(shardId: string): Promise<readonly StreamRecord[]> {
    const records: StreamRecord[] = [];
    for (;;) {
      const ShardIterator = this.#iterators.get(shardId);
      if (ShardIterator === undefined) return records;
      const { Records: raw = [], NextShardIterator } = await this.#client.send(
        new GetRecordsCommand({ ShardIterator }),
      );
      this.#iterators.set(shardId, NextShardIterator);
      for (const each of raw) {
        const record = streamRecordOf(each, this.#streamArn);
        if (record !== undefined) records.push(record);
      }
      if (raw.length === 0) return records;
    }
  }
}
