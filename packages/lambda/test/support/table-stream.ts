import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  ListStreamsCommand,
  type _Record,
} from "@aws-sdk/client-dynamodb-streams";

/** A record as Lambda passes it to a function. */
export interface LambdaRecord {
  readonly eventName?: string | undefined;
  readonly eventSourceARN: string;
  readonly userIdentity?: object;
  readonly dynamodb: {
    readonly ApproximateCreationDateTime: number;
    readonly SequenceNumber: string;
    readonly Keys: Readonly<Record<string, { readonly S: string }>>;
    readonly OldImage?: object;
    readonly NewImage?: object;
  };
}

/** Enough for the records of a test. */
const MAX_PAGES = 20;

/** Everything that the stream of a table holds, in Lambda's form. */
export async function readStream(
  endpointUrl: string,
  tableName: string,
): Promise<readonly LambdaRecord[]> {
  const client = new DynamoDBStreamsClient({
    endpoint: endpointUrl,
    region: "us-east-1",
    credentials: { accessKeyId: "local", secretAccessKey: "local" },
  });
  try {
    const { Streams } = await client.send(new ListStreamsCommand({ TableName: tableName }));
    const StreamArn = Streams![0]!.StreamArn!;
    const { StreamDescription } = await client.send(new DescribeStreamCommand({ StreamArn }));
    const records: LambdaRecord[] = [];
    for (const { ShardId } of StreamDescription!.Shards!) {
      let { ShardIterator } = await client.send(
        new GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" }),
      );
      for (let page = 0; page < MAX_PAGES && ShardIterator !== undefined; page += 1) {
        const { Records = [], NextShardIterator } = await client.send(
          new GetRecordsCommand({ ShardIterator }),
        );
        if (Records.length === 0) break;
        records.push(...Records.map((record) => lambdaRecord(record, StreamArn)));
        ShardIterator = NextShardIterator;
      }
    }
    return records;
  } finally {
    client.destroy();
  }
}

/** Lambda passes times in seconds and names the stream. */
function lambdaRecord({ eventName, dynamodb }: _Record, eventSourceARN: string): LambdaRecord {
  const { ApproximateCreationDateTime, ...change } = dynamodb!;
  return {
    eventName,
    eventSourceARN,
    dynamodb: {
      ...(change as Omit<LambdaRecord["dynamodb"], "ApproximateCreationDateTime">),
      ApproximateCreationDateTime: ApproximateCreationDateTime!.getTime() / 1000,
    },
  };
}
