import { seededRandom } from "zae-limiter/testing";
import { Expiring } from "../../src/repository/dynamodb/cache/expiring.ts";
import { KnownBuckets } from "../../src/repository/dynamodb/cache/known-buckets.ts";
import type { PolicyResolver } from "../../src/repository/dynamodb/cache/policy-resolver.ts";
import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { ItemReader } from "../../src/repository/dynamodb/table/item-reader.ts";
import { SharedRequests } from "../../src/repository/dynamodb/table/shared-requests.ts";
import {
  getNumber,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { BucketWriter } from "../../src/repository/dynamodb/write/bucket-writer.ts";
import type { WriteCounts } from "../../src/repository/dynamodb/write/write-observer.ts";
import { OperationIds } from "../../src/repository/dynamodb/write/operation-ids.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { ManualClock } from "../../src/testing/fakes/manual-clock.ts";
import { update, type ExpressionInput } from "./expression-evaluator.ts";
import { namespaceRecord } from "./namespace-record.ts";
import { NOW_MS } from "./shard-images.ts";
import { runStatement } from "./statement-evaluator.ts";
import { carriedOut, type StatementFault, type StatementReply } from "./statement-faults.ts";
import {
  keyOfStatement,
  listStatements,
  type RequestKey,
  type RequestStatement,
} from "./written-items.ts";

/** A fault of one write: an error instead of the write, or instead of its answer. */
export interface Fault {
  readonly instead?: Error;
  readonly afterwards?: Error;
  /** Happens before the write arrives. */
  readonly before?: () => Promise<void> | void;
  /**
   * Gets the request that is lost `instead` of being carried out. Calling `arrive` delivers it, and
   * returns whether it was applied.
   */
  readonly late?: (arrive: () => boolean) => void;
}

const TABLE_NAME = "table";

/**
 * A table of a few items, in memory. Reads are answered from them, and writes of single items are
 * carried out, each with the next fault, if any is left. Transactions are only noted.
 */
export class ScriptedTable implements DynamoTransport {
  readonly items = new Map<string, AttributeMap>();
  readonly operations: string[] = [];
  readonly faults: Fault[] = [];
  /** The faults of single statements of batches. */
  statementFault: (key: RequestKey) => StatementFault | undefined = () => undefined;
  /** Changes the replies to a batch on their way. */
  #failingReads = 0;
  onReplies = (replies: readonly StatementReply[]): readonly StatementReply[] => replies;

  /** Throttles the next reads. */
  failReads(count: number): void {
    this.#failingReads = count;
  }

  /** Stores an item. */
  put(item: AttributeMap): void {
    this.items.set(toText(item), item);
  }

  /** The first of its items. */
  get item(): AttributeMap {
    return [...this.items.values()][0]!;
  }

  /** Changes the first item, as another process would. */
  rewrite(changed: AttributeMap): void {
    const writes = getNumber(this.item["b_wcu_tc"])! + 1;
    this.put({ ...this.item, b_wcu_tc: { N: String(writes) }, ...changed });
  }

  async call(operation: string, input: object): Promise<object> {
    this.operations.push(operation);
    if (operation === "BatchExecuteStatement") return this.#batch(input);
    if (operation === "BatchGetItem") {
      if (this.#failingReads-- > 0) throw createError("ThrottlingException");
      return this.#read(input as BatchGetInput);
    }
    const fault = this.faults.shift();
    await fault?.before?.();
    fault?.late?.(() => this.#arrive(input));
    if (fault?.instead !== undefined) throw fault.instead;
    const answer = operation === "TransactWriteItems" ? {} : this.#write(input);
    if (fault?.afterwards !== undefined) throw fault.afterwards;
    return answer;
  }

  close(): void {}

  #read({ RequestItems: requested }: BatchGetInput): object {
    const found = requested[TABLE_NAME]!.Keys.map(
      (key) => this.items.get(toText(key)) ?? namespaceRecord(key),
    ).filter((item) => item !== undefined);
    return { Responses: { [TABLE_NAME]: found } };
  }

  #batch(input: object): object {
    const { statements, replies } = carriedOut(listStatements(input), this.statementFault);
    const done = statements.map((statement) => this.#state(statement));
    return { Responses: this.onReplies(replies(done)) };
  }

  /** The item comes with the condition that failed. */
  #state(statement: RequestStatement): StatementReply {
    const { PK, SK } = keyOfStatement(statement);
    const held = this.items.get(toText({ PK, SK }));
    const next = runStatement(held ?? {}, statement);
    if (typeof next === "string") return { Error: { Code: next, ...(held && { Item: held }) } };
    this.put(next);
    return { Item: next };
  }

  #arrive(input: WriteInput): boolean {
    try {
      this.#write(input);
      return true;
    } catch {
      return false;
    }
  }

  #write(input: WriteInput): object {
    const held = this.items.get(toText(input.Key ?? input.Item!));
    const next = input.Item === undefined ? update(held ?? {}, input) : create(held, input.Item);
    if (next === undefined) throw createError("ConditionalCheckFailedException", { Item: held });
    this.put({ ...input.Key, ...next });
    return input.Item === undefined ? { Attributes: next } : {};
  }
}

/** An error of DynamoDB, or of the connection. */
export function createError(name: string, parts: object = {}): Error {
  return Object.assign(new Error(name), { name, ...parts });
}

/** A clock on which a sleep takes its time at once. */
export class SkippingClock extends ManualClock {
  override async sleep(ms: number): Promise<void> {
    this.set(this.now() + ms);
  }
}

/** A table, and what one process has to reach it. */
export interface ScriptedProcess {
  readonly table: ScriptedTable;
  readonly clock: SkippingClock;
  readonly connection: Connection;
  readonly reader: ItemReader;
  readonly known: KnownBuckets;
  readonly writer: BucketWriter;
  readonly counts: WriteCounts;
  /** What the writer reported to its observer. */
  readonly observed: readonly string[];
}

/** A process that knows nothing yet. */
export function scriptedProcess({
  maxAttempts = 3,
  table = new ScriptedTable(),
  seed = 1,
  shareRequests = false,
  resolver = { resolveFor: (policy) => policy },
}: {
  readonly maxAttempts?: number;
  readonly shareRequests?: boolean;
  /** The table of another process, to share it. */
  readonly table?: ScriptedTable;
  readonly seed?: number;
  readonly resolver?: Pick<PolicyResolver, "resolveFor">;
} = {}): ScriptedProcess {
  const clock = new SkippingClock(NOW_MS);
  const connection = new Connection({
    transport: table,
    tableName: TABLE_NAME,
    clock,
    random: seededRandom(seed),
    requestTimeoutMs: 1000,
    maxAttempts,
  });
  const reader = new ItemReader(connection);
  const known = new KnownBuckets(reader, clock);
  const counts = { writes: 0, failedConditions: 0, batches: 0, batchedOperations: 0 };
  const observed: string[] = [];
  const writer = new BucketWriter({
    connection,
    requests: new SharedRequests({ connection, reader, isOn: shareRequests }),
    known,
    active: new Expiring({ read: async (id) => id, clock, ttlMs: 60_000 }),
    ids: new OperationIds(seededRandom(seed)),
    resolver,
    ttlMultiplier: 0,
    largestTickMs: 100,
    observer: {
      noteWrite: (_, { version }) => observed.push(`version ${version}`),
      noteThrottled: ({ shard }) => observed.push(`throttled ${shard}`),
    },
    counts,
  });
  return { table, clock, connection, reader, known, writer, counts, observed };
}

interface BatchGetInput {
  readonly RequestItems: Readonly<Record<string, { readonly Keys: readonly AttributeMap[] }>>;
}

interface WriteInput extends ExpressionInput {
  readonly Key?: AttributeMap;
  readonly Item?: AttributeMap;
}

/** Every put of a bucket requires that there is none. */
function create(held: AttributeMap | undefined, item: AttributeMap): AttributeMap | undefined {
  return held === undefined ? item : undefined;
}

function toText({ PK, SK }: AttributeMap): string {
  return JSON.stringify([PK, SK]);
}
