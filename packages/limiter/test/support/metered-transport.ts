import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";

/** Capacity units as DynamoDB reports them. */
export interface CapacityUnits {
  readonly table: number;
  readonly indexes: Readonly<Record<string, number>>;
}

/** What was sent since the meter was made or reset. */
export interface TransportCounts {
  readonly requests: number;
  readonly byOperation: Readonly<Record<string, number>>;
  /**
   * Writes that a condition refused. Replies carry no capacity for them, but AWS bills one unit at
   * least: count them as one.
   */
  readonly failedConditions: number;
  readonly read: CapacityUnits;
  readonly write: CapacityUnits;
}

const NONE: CapacityUnits = { table: 0, indexes: {} };
const READS: ReadonlySet<string> = new Set([
  "GetItem",
  "BatchGetItem",
  "Query",
  "Scan",
  "TransactGetItems",
]);
const WRITES: ReadonlySet<string> = new Set([
  "PutItem",
  "UpdateItem",
  "DeleteItem",
  "BatchWriteItem",
  "TransactWriteItems",
  "BatchExecuteStatement",
]);

/** Counts what passes, and can ask the engine for its own accounting. */
export class MeteredTransport implements DynamoTransport {
  readonly #inner: DynamoTransport;
  readonly #measureCapacity: boolean;
  #requests = 0;
  #failedConditions = 0;
  #byOperation = new Map<string, number>();
  #read = NONE;
  #write = NONE;

  constructor(inner: DynamoTransport, options: { readonly measureCapacity?: boolean } = {}) {
    this.#inner = inner;
    this.#measureCapacity = options.measureCapacity ?? false;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    this.#requests += 1;
    this.#byOperation.set(operation, (this.#byOperation.get(operation) ?? 0) + 1);
    try {
      const asked = this.#measureCapacity ? withCapacity(operation, input) : input;
      const output: Metered = await this.#inner.call(operation, asked, options);
      if (operation === "BatchExecuteStatement")
        this.#failedConditions += countReplies(output, "ConditionalCheckFailed");
      if (this.#measureCapacity) this.#add(operation, output);
      return output;
    } catch (error) {
      if (error instanceof Error && error.name === "ConditionalCheckFailedException")
        this.#failedConditions += 1;
      throw error;
    }
  }

  close(): void {
    this.#inner.close();
  }

  counts(): TransportCounts {
    return {
      requests: this.#requests,
      byOperation: Object.fromEntries(this.#byOperation),
      failedConditions: this.#failedConditions,
      read: this.#read,
      write: this.#write,
    };
  }

  reset(): void {
    this.#requests = 0;
    this.#failedConditions = 0;
    this.#byOperation = new Map();
    this.#read = NONE;
    this.#write = NONE;
  }

  #add(operation: string, output: Metered): void {
    for (const capacity of [output.ConsumedCapacity ?? unreported(operation, output)].flat()) {
      if (READS.has(operation)) this.#read = sum(this.#read, capacity);
      else this.#write = sum(this.#write, capacity);
    }
  }
}

/** DynamoDB Local does not report what statements consume: one unit for each that was applied. */
function unreported(operation: string, output: Metered): readonly ConsumedCapacity[] {
  if (operation !== "BatchExecuteStatement") return [];
  return [{ CapacityUnits: countReplies(output, undefined) }];
}

/** The statements of a batch whose error has this code; undefined for those without an error. */
function countReplies({ Responses }: Metered, code: string | undefined): number {
  const replies = (Responses ?? []) as readonly ({ readonly Error?: { Code: string } } | null)[];
  return replies.filter((reply) => reply && reply.Error?.Code === code).length;
}

interface Metered {
  readonly ConsumedCapacity?: ConsumedCapacity | readonly ConsumedCapacity[];
  /** Only a batch of statements has a list of them. */
  readonly Responses?: unknown;
}

interface ConsumedCapacity {
  readonly CapacityUnits?: number;
  readonly Table?: { readonly CapacityUnits?: number };
  readonly GlobalSecondaryIndexes?: Readonly<Record<string, { readonly CapacityUnits?: number }>>;
}

function withCapacity(operation: string, input: object): object {
  return READS.has(operation) || WRITES.has(operation)
    ? { ...input, ReturnConsumedCapacity: "INDEXES" }
    : input;
}

function sum(units: CapacityUnits, consumed: ConsumedCapacity): CapacityUnits {
  const indexes = { ...units.indexes };
  for (const [name, index] of Object.entries(consumed.GlobalSecondaryIndexes ?? {}))
    indexes[name] = (indexes[name] ?? 0) + (index.CapacityUnits ?? 0);
  return {
    table: units.table + (consumed.Table?.CapacityUnits ?? consumed.CapacityUnits ?? 0),
    indexes,
  };
}
