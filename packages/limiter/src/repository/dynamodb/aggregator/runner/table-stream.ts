import { InfrastructureError } from "../../../../core/errors.ts";
import type { Connection } from "../../table/connection.ts";
import { readError } from "../../transport/failure.ts";
import { parseStreamRecord, type RawStreamRecord, type StreamRecord } from "../stream-record.ts";

/** One shard of a stream. It is read when its parent has been read to its end. */
export interface StreamShard {
  readonly shardId: string;
  readonly parentId: string | undefined;
}

/** Some records of a shard, and where the next ones are; nowhere when the shard has ended. */
export interface StreamPage {
  readonly records: readonly StreamRecord[];
  readonly next: string | undefined;
}

/**
 * The stream of a table. Nothing else in the runner knows how it is read. Calls take no signal:
 * they end by themselves, and Node 20 keeps some 50 bytes of every signal that is combined with one
 * that lives long (measured), here 17 MB a day.
 */
export interface TableStream {
  /** Tells this stream from others that the table had before. */
  readonly label: string;
  /** All shards that the stream still has, parents first. */
  shards(): Promise<readonly StreamShard[]>;
  /** A place in a shard: behind a record, or before the oldest. */
  iterator(shardId: string, after: string | undefined): Promise<string>;
  /** The records at a place. */
  read(iterator: string): Promise<StreamPage>;
}

/** The most records of one reply; DynamoDB's own limit. */
const PAGE_SIZE = 1000;

/** Finds the stream of a table, or throws. */
export async function openTableStream(connection: Connection): Promise<TableStream> {
  const { Table } = await connection.repeat<DescribeTableOutput>("DescribeTable", {});
  const { StreamSpecification: stream, LatestStreamArn: arn } = Table ?? {};
  if (arn === undefined || stream?.StreamEnabled !== true)
    throw buildMissingStreamError(connection.tableName, "has no stream");
  if (stream.StreamViewType !== "NEW_AND_OLD_IMAGES")
    throw buildMissingStreamError(
      connection.tableName,
      `has a stream of ${stream.StreamViewType} only`,
      "Disable that stream (StreamEnabled=false), then enable",
    );
  return new DynamoStream(connection, arn);
}

/** What an error of the stream says about the place that was read; undefined for other errors. */
export function placeFault(error: unknown): "expired" | "trimmed" | "gone" | undefined {
  const cause = error instanceof InfrastructureError ? error.cause : error;
  return PLACE_FAULTS.get(readError(cause).name);
}

const PLACE_FAULTS: ReadonlyMap<string, "expired" | "trimmed" | "gone"> = new Map([
  ["ExpiredIteratorException", "expired"],
  ["TrimmedDataAccessException", "trimmed"],
  ["ResourceNotFoundException", "gone"],
]);

function buildMissingStreamError(
  tableName: string,
  what: string,
  how = "Enable",
): InfrastructureError {
  return new InfrastructureError(
    "ERR_LIMITER_STREAM_MISSING",
    `Table ${tableName} ${what}, so its usage cannot be aggregated. ${how} a stream with ` +
      `NEW_AND_OLD_IMAGES: aws dynamodb update-table --table-name ${tableName} ` +
      "--stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES",
  );
}

class DynamoStream implements TableStream {
  readonly label: string;
  readonly #connection: Connection;
  readonly #arn: string;

  constructor(connection: Connection, arn: string) {
    this.#connection = connection;
    this.#arn = arn;
    this.label = arn.slice(arn.lastIndexOf("/") + 1);
  }

  async shards(): Promise<readonly StreamShard[]> {
    const shards: StreamShard[] = [];
    let start: string | undefined;
    do {
      const { StreamDescription: page } = await this.#connection.repeat<DescribeStreamOutput>(
        "DescribeStream",
        { StreamArn: this.#arn, ...(start !== undefined && { ExclusiveStartShardId: start }) },
      );
      for (const { ShardId, ParentShardId } of page?.Shards ?? [])
        shards.push({ shardId: ShardId, parentId: ParentShardId });
      start = page?.LastEvaluatedShardId;
    } while (start !== undefined);
    return shards;
  }

  async iterator(shardId: string, after: string | undefined): Promise<string> {
    const place =
      after === undefined
        ? { ShardIteratorType: "TRIM_HORIZON" }
        : { ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber: after };
    const { ShardIterator } = await this.#connection.repeat<{ readonly ShardIterator: string }>(
      "GetShardIterator",
      { StreamArn: this.#arn, ShardId: shardId, ...place },
    );
    return ShardIterator;
  }

  async read(iterator: string): Promise<StreamPage> {
    const { Records = [], NextShardIterator } = await this.#connection.repeat<GetRecordsOutput>(
      "GetRecords",
      { ShardIterator: iterator, Limit: PAGE_SIZE },
    );
    return {
      records: Records.flatMap((raw) => parseStreamRecord(raw, this.#arn) ?? []),
      // The SDK may say null where there is none.
      next: NextShardIterator ?? undefined,
    };
  }
}

interface DescribeTableOutput {
  readonly Table?: {
    readonly LatestStreamArn?: string;
    readonly StreamSpecification?: {
      readonly StreamEnabled?: boolean;
      readonly StreamViewType?: string;
    };
  };
}

interface DescribeStreamOutput {
  readonly StreamDescription?: {
    readonly Shards?: readonly { readonly ShardId: string; readonly ParentShardId?: string }[];
    readonly LastEvaluatedShardId?: string;
  };
}

interface GetRecordsOutput {
  readonly Records?: readonly RawStreamRecord[];
  readonly NextShardIterator?: string | null;
}
