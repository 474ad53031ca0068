import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { fail, ok, startProxyServer, type Answer, type ProxiedRequest } from "./proxy-server.ts";
import {
  StreamError,
  VirtualStream,
  type EngineRecord,
  type VirtualShard,
} from "./virtual-stream.ts";

/**
 * What happens to one request of the streams API instead of its normal course:
 * - `empty`: a page without records, although there are some;
 * - `short`: a page of one record;
 * - `again`: the page comes, and the next iterator goes back to its beginning;
 * - `expired`: the iterator is too old;
 * - `trimmed`: the records are too old;
 * - `throttle`, `internal`: that error is the answer;
 * - `lost-reply`: the connection dies before the answer.
 */
export type StreamFault =
  | "empty"
  | "short"
  | "again"
  | "expired"
  | "trimmed"
  | "throttle"
  | "internal"
  | "lost-reply";

/** How the stream of an engine is presented. */
export interface StreamProxyOptions {
  /** How many shards there are at first. */
  readonly shards: number;
  /** Whether time to live has deleted the item of a deletion. @default none */
  readonly isExpiry?: (keys: AttributeMap) => boolean;
  /** When a record was written, in milliseconds. @default what the engine says */
  readonly getTime?: (record: EngineRecord) => number;
}

/**
 * A proxy in front of an engine that makes what engines do not: several stream shards and their
 * splits, deletions by time to live, and failures. Everything else passes.
 */
export interface StreamProxy {
  readonly endpointUrl: string;
  /** Every request of the streams API that arrived, in order. */
  readonly seen: readonly ProxiedRequest[];
  /** Asked for each request of the streams API; `undefined` lets it pass. */
  decide: (request: ProxiedRequest) => StreamFault | undefined;
  /** Told of every request, also of those that pass, before anything else happens to it. */
  observe: (request: ProxiedRequest) => void;
  /** The shards of a table's stream, also closed ones. */
  shards(tableName: string): Promise<readonly VirtualShard[]>;
  /** The number of the last record that the engine's stream holds now; "0" when it is empty. */
  lastSequenceNumber(tableName: string): Promise<string>;
  /** Splits a shard at what the engine's stream holds now. */
  split(tableName: string, shardId: string): Promise<void>;
  /** Lets everything that the stream holds now be too old to be read. */
  trim(tableName: string): Promise<void>;
  stop(): Promise<void>;
}

/** AWS's default and greatest number of records in a page. */
const MOST_RECORDS = 1000;

/** Puts a proxy in front of an engine. */
export async function startStreamProxy(
  engineUrl: string,
  options: StreamProxyOptions,
): Promise<StreamProxy> {
  const streams = new Map<string, PresentedStream>();
  const seen: ProxiedRequest[] = [];
  const toStream = (arn: string): PresentedStream => {
    const stream = streams.get(arn) ?? new PresentedStream(engineUrl, arn, options);
    streams.set(arn, stream);
    return stream;
  };
  const streamOfTable = async (tableName: string): Promise<PresentedStream> => {
    const { Streams } = await askEngine<{ Streams: readonly { StreamArn: string }[] }>(
      engineUrl,
      "ListStreams",
      { TableName: tableName },
    );
    return toStream(Streams[0]!.StreamArn);
  };
  const proxy = {
    endpointUrl: "",
    seen,
    decide: (): StreamFault | undefined => undefined,
    observe: () => {},
    shards: async (tableName: string) => (await streamOfTable(tableName)).virtual.shards,
    lastSequenceNumber: async (tableName: string) => {
      const stream = await streamOfTable(tableName);
      await stream.follow();
      return stream.virtual.lastSequenceNumber;
    },
    split: async (tableName: string, shardId: string) => {
      const stream = await streamOfTable(tableName);
      await stream.follow();
      stream.virtual.split(shardId);
    },
    trim: async (tableName: string) => {
      const stream = await streamOfTable(tableName);
      await stream.follow();
      stream.virtual.trim(stream.virtual.length);
    },
    stop: async () => server.stop(),
  };
  const server = await startProxyServer(engineUrl, async (proxied, { forward, reply, drop }) => {
    (proxy as StreamProxy).observe(proxied);
    if (!isPresented(proxied.operation)) return reply(await forward());
    seen.push(proxied);
    const fault = (proxy as StreamProxy).decide(proxied);
    const answer = await answerTo(proxied, toStream, fault);
    return fault === "lost-reply" ? drop() : reply(answer);
  });
  proxy.endpointUrl = server.endpointUrl;
  return proxy;
}

function isPresented(operation: string): boolean {
  return ["DescribeStream", "GetShardIterator", "GetRecords"].includes(operation);
}

async function answerTo(
  { operation, input }: ProxiedRequest,
  streamOf: (arn: string) => PresentedStream,
  fault: StreamFault | undefined,
): Promise<Answer> {
  try {
    if (fault === "internal") throw new StreamError("InternalServerError");
    if (fault === "throttle") throw new StreamError("LimitExceededException");
    if (fault === "trimmed") throw new StreamError("TrimmedDataAccessException");
    if (operation === "GetRecords") return ok(await getRecords(input, streamOf, fault));
    const stream = streamOf(String(input["StreamArn"]));
    return ok(
      operation === "DescribeStream" ? await stream.describe(input) : await stream.iterator(input),
    );
  } catch (error) {
    if (!(error instanceof StreamError)) throw error;
    const status = error.name === "InternalServerError" ? 500 : 400;
    const type = `com.amazonaws.dynamodb.v20120810#${error.name}`;
    return fail(status, type, { message: `made by the proxy: ${error.name}` });
  }
}

async function getRecords(
  { ShardIterator, Limit }: ProxiedRequest["input"],
  streamOf: (arn: string) => PresentedStream,
  fault: StreamFault | undefined,
): Promise<object> {
  if (fault === "expired") throw new StreamError("ExpiredIteratorException");
  const { arn, shardId, index } = getIterator(String(ShardIterator));
  const nextAt = (next: number): object => ({
    NextShardIterator: iteratorText({ arn, shardId, index: next }),
  });
  if (fault === "empty") return { Records: [], ...nextAt(index) };
  const limit = fault === "short" ? 1 : Number(Limit ?? MOST_RECORDS);
  const { records, next } = await streamOf(arn).page(shardId, index, limit);
  if (fault === "again") return { Records: records, ...nextAt(index) };
  return { Records: records, ...(next !== undefined && nextAt(next)) };
}

/** One stream of the engine, followed as it grows. */
class PresentedStream {
  readonly virtual: VirtualStream;
  readonly #engineUrl: string;
  readonly #arn: string;
  readonly #options: StreamProxyOptions;
  #iterator: string | undefined;
  #following: Promise<void> = Promise.resolve();

  constructor(engineUrl: string, arn: string, options: StreamProxyOptions) {
    this.#engineUrl = engineUrl;
    this.#arn = arn;
    this.#options = options;
    this.virtual = new VirtualStream(options.shards);
  }

  /** Takes over what the engine's stream holds by now. */
  follow(): Promise<void> {
    this.#following = this.#following.then(async () => this.#readOn());
    return this.#following;
  }

  async describe({ ExclusiveStartShardId, Limit }: ProxiedRequest["input"]): Promise<object> {
    const { StreamDescription } = await this.#ask<{ StreamDescription: object }>("DescribeStream", {
      StreamArn: this.#arn,
    });
    await this.follow();
    const { shards } = this.virtual;
    const first = 1 + shards.findIndex(({ id }) => id === ExclusiveStartShardId);
    const page = shards.slice(first, first + Number(Limit ?? 100));
    const last = page.at(-1);
    return {
      StreamDescription: {
        ...StreamDescription,
        Shards: page.map((shard) => ({
          ShardId: shard.id,
          SequenceNumberRange: this.virtual.buildRange(shard),
          ParentShardId: shard.parentId,
        })),
        ...(last !== undefined && last !== shards.at(-1) && { LastEvaluatedShardId: last.id }),
      },
    };
  }

  async iterator({
    ShardId,
    ShardIteratorType,
    SequenceNumber,
  }: ProxiedRequest["input"]): Promise<object> {
    await this.follow();
    const shardId = String(ShardId);
    const number = SequenceNumber as string | undefined;
    const index = this.virtual.start(shardId, String(ShardIteratorType), number);
    return { ShardIterator: iteratorText({ arn: this.#arn, shardId, index }) };
  }

  async page(
    shardId: string,
    index: number,
    limit: number,
  ): Promise<ReturnType<VirtualStream["page"]>> {
    if (index >= this.virtual.length) await this.follow();
    const page = this.virtual.page(shardId, index, limit);
    return { ...page, records: page.records.map((record) => this.#presented(record)) };
  }

  async #readOn(): Promise<void> {
    this.#iterator ??= await this.#beginning();
    for (;;) {
      const { Records, NextShardIterator }: EnginePage = await this.#ask("GetRecords", {
        ShardIterator: this.#iterator,
      });
      if (Records.length === 0) return;
      this.virtual.append(Records);
      this.#iterator = NextShardIterator!;
    }
  }

  async #beginning(): Promise<string> {
    const StreamArn = this.#arn;
    const { StreamDescription } = await this.#ask<{
      StreamDescription: { Shards: readonly { ShardId: string }[] };
    }>("DescribeStream", { StreamArn });
    const { ShardIterator } = await this.#ask<{ ShardIterator: string }>("GetShardIterator", {
      StreamArn,
      ShardId: StreamDescription.Shards[0]!.ShardId,
      ShardIteratorType: "TRIM_HORIZON",
    });
    return ShardIterator;
  }

  #presented(record: EngineRecord): EngineRecord {
    const { isExpiry, getTime } = this.#options;
    const isExpired = record.eventName === "REMOVE" && isExpiry?.(record.dynamodb.Keys) === true;
    const seconds = getTime === undefined ? undefined : Math.floor(getTime(record) / 1000);
    return {
      ...record,
      ...(isExpired && {
        userIdentity: { PrincipalId: "dynamodb.amazonaws.com", Type: "Service" },
      }),
      dynamodb: {
        ...record.dynamodb,
        ...(seconds !== undefined && { ApproximateCreationDateTime: seconds }),
      },
    };
  }

  #ask<Output>(operation: string, input: object): Promise<Output> {
    return askEngine(this.#engineUrl, operation, input);
  }
}

interface EnginePage {
  readonly Records: readonly EngineRecord[];
  readonly NextShardIterator?: string;
}

interface Iterator {
  readonly arn: string;
  readonly shardId: string;
  readonly index: number;
}

function iteratorText(iterator: Iterator): string {
  return Buffer.from(JSON.stringify(iterator)).toString("base64");
}

function getIterator(text: string): Iterator {
  return JSON.parse(Buffer.from(text, "base64").toString()) as Iterator;
}

/** Engines want a signature, and do not check it. */
const CREDENTIAL = "Credential=key/20260101/us-east-1/dynamodb/aws4_request";

async function askEngine<Output>(
  engineUrl: string,
  operation: string,
  input: object,
): Promise<Output> {
  const response = await fetch(engineUrl, {
    method: "POST",
    headers: {
      "content-type": "application/x-amz-json-1.0",
      "x-amz-target": `DynamoDBStreams_20120810.${operation}`,
      "x-amz-date": "20260101T000000Z",
      authorization: `AWS4-HMAC-SHA256 ${CREDENTIAL}, SignedHeaders=host, Signature=0`,
    },
    body: JSON.stringify(input),
  });
  const output = await response.json();
  if (!response.ok) throw new Error(`${operation}: ${JSON.stringify(output)}`);
  return output as Output;
}
