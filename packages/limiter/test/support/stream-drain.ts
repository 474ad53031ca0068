import type { DynamoTransport } from "zae-limiter/dynamodb";
import { USAGE_WINDOWS } from "../../src/core/usage.ts";
import { StreamAggregator } from "../../src/repository/dynamodb/aggregator/aggregator.ts";
import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import { heartbeatKey } from "../../src/repository/dynamodb/items/keys.ts";
import { getKey } from "../../src/repository/dynamodb/table/batch.ts";
import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { systemRandom, type Clock } from "../../src/repository/system-clock.ts";
import { StreamReader } from "./stream-reader.ts";
import { listWrites } from "./written-items.ts";

/** What a drain needs. */
export interface DrainOptions {
  /** What reads the stream and what the aggregator uses. */
  readonly transport: DynamoTransport;
  readonly tableName: string;
  /** The clock of the test: writes are counted by its time, not by the engine's. */
  readonly clock: Clock;
}

/**
 * Counts the usage of a table with the real aggregator, from the engine's real stream, before each
 * reading of usage: a test reads at once what an aggregator would have counted a little later.
 *
 * Repositories get a `watched` transport. It notes the time of every write of a bucket, by the
 * test's clock, and each record of that bucket's item gets the time of its write, in order. A
 * reading of usage begins with the heartbeat, and a request for the heartbeat waits for a drain.
 */
export class StreamDrain {
  readonly #options: DrainOptions;
  readonly #times = new WriteTimes();
  readonly #connection: Connection;
  readonly #aggregator: StreamAggregator;
  #reader: StreamReader | undefined;
  #drained: Promise<void> = Promise.resolve();
  #countedUntilMs = -Infinity;

  constructor(options: DrainOptions) {
    const { transport, tableName, clock } = options;
    this.#options = options;
    this.#connection = new Connection({
      transport: { call: (...request) => transport.call(...request), close: () => {} },
      tableName,
      clock,
      random: systemRandom,
      requestTimeoutMs: 10_000,
      maxAttempts: 3,
    });
    this.#aggregator = new StreamAggregator({
      connection: this.#connection,
      windows: USAGE_WINDOWS,
      archive: undefined,
      ttlMultiplier: 7,
    });
  }

  /** A transport for repositories; closing it closes nothing. */
  watched(transport: DynamoTransport): DynamoTransport {
    return {
      call: async (operation, input, options) => {
        if (operation === "BatchGetItem" && asksForHeartbeat(input)) await this.drain();
        const atMs = this.#options.clock.now();
        const output = await transport.call(operation, input, options);
        for (const key of writtenBuckets(operation, input, output)) this.#times.note(key, atMs);
        return output;
      },
      close: () => {},
    };
  }

  /** Counts everything that is in the stream, after the drain before. */
  drain(): Promise<void> {
    this.#drained = this.#drained.then(() => this.#count());
    return this.#drained;
  }

  async #count(): Promise<void> {
    const nowMs = this.#options.clock.now();
    if (!this.#times.isEmpty) {
      this.#reader ??= await StreamReader.open(this.#connection);
      const records = await this.#reader.read();
      const timed = records.map((record) => this.#times.timed(record, nowMs));
      const { failures } = await this.#aggregator.process(timed);
      if (failures[0] !== undefined) throw failures[0].error;
    }
    if (nowMs <= this.#countedUntilMs) return;
    await this.#aggregator.heartbeat.storeCountedUntil(nowMs);
    this.#countedUntilMs = nowMs;
  }
}

/** The times of writes that have not come back through the stream yet, by item, in order. */
class WriteTimes {
  readonly #times = new Map<string, number[]>();

  note(key: string, atMs: number): void {
    const times = this.#times.get(key) ?? [];
    times.push(atMs);
    this.#times.set(key, times);
  }

  /** Whether every write that was noted has come back. */
  get isEmpty(): boolean {
    return this.#times.size === 0;
  }

  /** The record with the time of its write. */
  timed(record: StreamRecord, otherwiseMs: number): StreamRecord {
    if (record.after === undefined) return { ...record, atMs: otherwiseMs };
    const key = getKey(record.after).PK;
    const times = this.#times.get(key);
    const atMs = times?.shift() ?? otherwiseMs;
    if (times?.length === 0) this.#times.delete(key);
    return { ...record, atMs };
  }
}

/**
 * The buckets that a request wrote, by what was answered: a statement whose condition failed wrote
 * nothing. Deletions consume nothing.
 */
function writtenBuckets(operation: string, input: object, output: object): readonly string[] {
  const { Responses } = output as {
    readonly Responses?: readonly { readonly Error?: object }[];
  };
  return listWrites(operation, input).flatMap(({ kind, key }, index) => {
    const isStatement = operation === "BatchExecuteStatement";
    const isWritten = !isStatement || Responses?.[index]?.Error === undefined;
    return isWritten && kind !== "Delete" && key.SK.S === "#STATE" ? [key.PK.S] : [];
  });
}

function asksForHeartbeat(input: object): boolean {
  const { RequestItems } = input as {
    readonly RequestItems: Readonly<Record<string, { readonly Keys: readonly AttributeMap[] }>>;
  };
  const { PK, SK } = heartbeatKey();
  return Object.values(RequestItems).some(({ Keys }) =>
    Keys.some((key) => getKey(key).PK === PK && getKey(key).SK === SK),
  );
}
