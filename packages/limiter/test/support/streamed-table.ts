import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import { buildPosition } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import type {
  StreamPage,
  StreamShard,
  TableStream,
} from "../../src/repository/dynamodb/aggregator/runner/table-stream.ts";
import {
  getNumber,
  getString,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import type { Clock } from "../../src/repository/system-clock.ts";
import { update, type ExpressionInput } from "./expression-evaluator.ts";
import { namespaceRecord } from "./namespace-record.ts";
import { createError } from "./scripted-table.ts";

/** The most records of one reply, so that a test can have several pages. */
const PAGE_SIZE = 10;

const LABEL = "2026-01-01T00:00:00.000";

/** One shard of the stream of a table in memory. */
interface MemoryShard extends StreamShard {
  readonly records: StreamRecord[];
  isClosed: boolean;
  /** How many of the first records have been dropped. */
  trimmed: number;
}

/**
 * A table in memory whose writes come out of a stream with as many shards as a test wants. Both are
 * what the engines have not: several shards, their ends, and time that a test moves.
 */
export class StreamedTable implements DynamoTransport, TableStream {
  readonly label = LABEL;
  readonly items = new Map<string, AttributeMap>();
  /** The sort keys that were written, in order. */
  readonly written: string[] = [];
  /** How often each shard was read. */
  readonly reads = new Map<string, number>();
  /** Errors that come instead of the next calls of an operation. */
  readonly faults: { readonly operation: string; readonly error: Error }[] = [];
  /** The next replies without records, although there are some. */
  emptyReplies = 0;
  /** Which shard a write goes to. */
  findShard: (partition: string) => string = () => [...this.#shards.keys()].at(-1)!;
  readonly #shards = new Map<string, MemoryShard>();
  readonly #clock: Clock;
  #last = 0;
  #iterators = 0;
  readonly #expired = new Set<string>();

  constructor(clock: Clock, shards: readonly string[] = ["shard-1"]) {
    this.#clock = clock;
    for (const shardId of shards) this.addShard(shardId);
  }

  addShard(shardId: string, parentId?: string): void {
    this.#shards.set(shardId, { shardId, parentId, records: [], isClosed: false, trimmed: 0 });
  }

  close(): void {}

  closeShard(shardId: string): void {
    this.#shards.get(shardId)!.isClosed = true;
  }

  /** Drops the first records of a shard, as the stream does after a day. */
  trim(shardId: string, count: number): void {
    this.#shards.get(shardId)!.trimmed = count;
  }

  /** Drops a whole shard. */
  drop(shardId: string): void {
    this.#shards.delete(shardId);
  }

  /** Makes all iterators that were ever handed out invalid. */
  expireIterators(): void {
    for (let number = 1; number <= this.#iterators; number += 1) this.#expired.add(String(number));
  }

  /** Writes an item, as a client would. */
  put(item: AttributeMap): void {
    this.#store(item, item);
  }

  /** Writes the bucket of an entity with each of these totals in turn. */
  consume(entityId: string, from: number, to: number): void {
    for (let tokens = from; tokens <= to; tokens += 1) this.put(bucketItem(entityId, tokens));
  }

  /** A stored item of the table's own partition. */
  system(sortKey: string): AttributeMap | undefined {
    return this.items.get(`_/SYSTEM# ${sortKey}`);
  }

  /** All sequence numbers of a shard. */
  sequenceNumbers(shardId: string): readonly string[] {
    return this.#shards.get(shardId)!.records.map(({ sequenceNumber }) => sequenceNumber);
  }

  async call(operation: string, input: object): Promise<object> {
    this.#fail(operation);
    await Promise.resolve();
    if (operation === "BatchGetItem") return this.#batchGet(input as BatchGetInput);
    const { Key, ...rest } = input as ExpressionInput & { readonly Key: AttributeMap };
    const before = this.items.get(toText(Key));
    if (operation !== "UpdateItem") throw new Error(`${operation} is not supported`);
    const after = update(before ?? {}, rest);
    if (after === undefined) throw createError("ConditionalCheckFailedException", { Item: before });
    const item = { ...after, ...Key };
    this.#store(Key, item);
    return { Attributes: item };
  }

  async shards(): Promise<readonly StreamShard[]> {
    this.#fail("DescribeStream");
    return [...this.#shards.values()].map(({ shardId, parentId }) => ({ shardId, parentId }));
  }

  async iterator(shardId: string, after: string | undefined): Promise<string> {
    this.#fail("GetShardIterator");
    const shard = this.#shards.get(shardId);
    if (shard === undefined) throw createError("ResourceNotFoundException");
    const index =
      after === undefined
        ? shard.trimmed
        : shard.records.findIndex(({ sequenceNumber }) => sequenceNumber === after) + 1;
    if (index < shard.trimmed) throw createError("TrimmedDataAccessException");
    return this.#place(shardId, index);
  }

  async read(iterator: string): Promise<StreamPage> {
    this.#fail("GetRecords");
    const [number = "", shardId = "", start] = iterator.split("|");
    if (this.#expired.has(number)) throw createError("ExpiredIteratorException");
    const shard = this.#shards.get(shardId);
    if (shard === undefined) throw createError("ResourceNotFoundException");
    if (Number(start) < shard.trimmed) throw createError("TrimmedDataAccessException");
    this.reads.set(shardId, (this.reads.get(shardId) ?? 0) + 1);
    if (this.emptyReplies > 0) {
      this.emptyReplies -= 1;
      return { records: [], next: this.#place(shardId, Number(start)) };
    }
    const end = Math.min(shard.records.length, Number(start) + PAGE_SIZE);
    const ended = shard.isClosed && end === shard.records.length;
    return {
      records: shard.records.slice(Number(start), end),
      next: ended ? undefined : this.#place(shardId, end),
    };
  }

  #place(shardId: string, index: number): string {
    this.#iterators += 1;
    return `${this.#iterators}|${shardId}|${index}`;
  }

  #fail(operation: string): void {
    const index = this.faults.findIndex((fault) => fault.operation === operation);
    if (index >= 0) throw this.faults.splice(index, 1)[0]!.error;
  }

  #store(key: AttributeMap, after: AttributeMap | undefined): void {
    const before = this.items.get(toText(key));
    if (after === undefined) this.items.delete(toText(key));
    else this.items.set(toText(key), after);
    this.written.push(getString(key["SK"])!);
    this.#last += 1;
    const sequenceNumber = String(this.#last * 5);
    this.#shards.get(this.findShard(getString(key["PK"])!))?.records.push({
      kind: before === undefined ? "insert" : after === undefined ? "remove" : "modify",
      atMs: Math.floor(this.#clock.now() / 1000) * 1000,
      sequenceNumber,
      position: buildPosition(LABEL, sequenceNumber),
      before,
      after,
      isExpiry: false,
    });
  }

  #batchGet({ RequestItems }: BatchGetInput): object {
    const [[name, { Keys }]] = Object.entries(RequestItems) as [
      [string, { readonly Keys: readonly AttributeMap[] }],
    ];
    const found = Keys.map((key) => this.items.get(toText(key)) ?? namespaceRecord(key)).filter(
      (item) => item !== undefined,
    );
    return { Responses: { [name]: found } };
  }
}

/** How many writes of each kind there were: leases, heartbeats and so on. */
export function writesByKind(written: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const sortKey of written) {
    const kind = sortKey.split("#")[1]!;
    counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** The item of a bucket that has consumed this many tokens. */
export function bucketItem(entityId: string, tokens: number): AttributeMap {
  return {
    PK: { S: `n1/BUCKET#${entityId}#gpt-4#0` },
    SK: { S: "#STATE" },
    b_rpm_tc: { N: String(tokens * 1000) },
    gr: { N: String(tokens) },
    cr: { S: `w.${entityId}` },
    sv: { N: "1" },
    shard_count: { N: "1" },
  };
}

/** What the snapshots of an entity say that it has consumed, in tokens, by window. */
export function getCounted(table: StreamedTable, entityId: string): readonly number[] {
  return [...table.items.entries()]
    .filter(([key]) => key.startsWith(`n1/ENTITY#${entityId} #USAGE#`))
    .map(([, item]) => getNumber(item["u_rpm"])! / 1000);
}

interface BatchGetInput {
  readonly RequestItems: Readonly<Record<string, { readonly Keys: readonly AttributeMap[] }>>;
}

function toText({ PK, SK }: AttributeMap): string {
  return `${getString(PK)} ${getString(SK)}`;
}
