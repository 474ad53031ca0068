import {
  DescribeStreamCommand,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
  type DynamoDBStreamsClient,
  type GetRecordsCommandOutput,
} from "@aws-sdk/client-dynamodb-streams";
import { parseStreamRecord, type StreamRecord } from "zae-limiter/aggregator";

/** A shard of the stream, and what was read of it: some more than once, if a request failed. */
export interface ShardRecords {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly records: readonly StreamRecord[];
}

/** Far above what any shard of a test has. */
const MOST_PAGES = 10_000;

/** Reads everything that a stream holds; an error makes it go on behind the last record. */
export async function readStream(
  client: DynamoDBStreamsClient,
  tableName: string,
): Promise<readonly ShardRecords[]> {
  const { Streams } = await client.send(new ListStreamsCommand({ TableName: tableName }));
  const StreamArn = Streams![0]!.StreamArn!;
  const found: ShardRecords[] = [];
  const { StreamDescription } = await persistent(() =>
    client.send(new DescribeStreamCommand({ StreamArn })),
  );
  for (const { ShardId, ParentShardId } of StreamDescription!.Shards!) {
    const records = await readShard(client, StreamArn, ShardId!);
    found.push({ id: ShardId!, parentId: ParentShardId, records });
  }
  return found;
}

async function readShard(
  client: DynamoDBStreamsClient,
  StreamArn: string,
  ShardId: string,
): Promise<readonly StreamRecord[]> {
  const records: StreamRecord[] = [];
  const begin = async (): Promise<string> => {
    const last = records.at(-1)?.sequenceNumber;
    const position =
      last === undefined
        ? { ShardIteratorType: "TRIM_HORIZON" as const }
        : { ShardIteratorType: "AFTER_SEQUENCE_NUMBER" as const, SequenceNumber: last };
    const command = new GetShardIteratorCommand({ StreamArn, ShardId, ...position });
    return (await persistent(() => client.send(command))).ShardIterator!;
  };
  let iterator: string | undefined = await begin();
  let empty = 0;
  for (let pages = 0; pages < MOST_PAGES && iterator !== undefined; pages += 1) {
    try {
      const page: GetRecordsCommandOutput = await client.send(
        new GetRecordsCommand({ ShardIterator: iterator, Limit: 50 }),
      );
      for (const raw of page.Records!) records.push(parseStreamRecord(raw, StreamArn)!);
      iterator = page.NextShardIterator;
      // A page may be empty although there is more; the proxy makes few of them in a row.
      empty = page.Records!.length === 0 ? empty + 1 : 0;
      if (empty === 8) return records;
    } catch {
      iterator = await begin();
    }
  }
  return records;
}

/** Tries again until it succeeds; the proxy lets few requests fail. */
async function persistent<T>(request: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await request();
    } catch (error) {
      if (attempt === 50) throw error;
    }
  }
}
