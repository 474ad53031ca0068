/*
 * What runners know of the shards of a stream, stored in the table: one item for each shard.
 *
 *   stream           S     the label of the stream that it belongs to
 *   owner            S     the runner that reads it; absent when nobody does
 *   lease_until_ms   N     when that runner has to have renewed its lease, or lost it
 *   sequence_number  S     the checkpoint: everything up to this record has been processed
 *   counted_until_ms N     everything that was written before this time has been processed
 *   finished         BOOL  true when the shard was read to its end; absent before
 *   ttl              N     the stream keeps a shard for a day, so its item may go soon after
 *
 *   free ──take──▶ held ──renew, checkpoint──▶ held ──release──▶ free
 *                   │ └──finish──▶ finished
 *                   └──the lease ends──▶ free, for whoever takes it
 *
 * Every write requires the owner that it knows. A runner that lost its lease while a batch was
 * under way does no harm: each snapshot refuses what it has counted. A runner that holds no shard
 * shows that it is there by an item of its own (`lease_until_ms`, `ttl`), which the others count
 * when they divide the shards.
 */
import type { Connection } from "../../table/connection.ts";
import { marshalKey, queryAll, type ItemKey } from "../../table/batch.ts";
import { ExpressionBuilder } from "../../table/update-expression.ts";
import {
  namespaceIndexKeys,
  runnerKey,
  runnerPrefix,
  streamShardKey,
  streamShardPrefix,
  systemPartition,
  TABLE_NAMESPACE,
} from "../../items/keys.ts";
import {
  booleanOf,
  numberOf,
  stringOf,
  type AttributeMap,
} from "../../transport/attribute-values.ts";

/** What is stored of one shard. */
export interface ShardState {
  readonly shardId: string;
  readonly streamLabel: string | undefined;
  readonly owner: string | undefined;
  readonly leaseUntilMs: number;
  readonly sequenceNumber: string | undefined;
  readonly countedUntilMs: number | undefined;
  readonly isFinished: boolean;
}

/** How far the owner of a lease is. */
export type ShardPlace = Pick<ShardState, "sequenceNumber" | "countedUntilMs">;

/** What is stored of all shards, and who else is there. */
export interface StoredStates {
  readonly shards: ReadonlyMap<string, ShardState>;
  /** Runners that wait for a shard. */
  readonly waiting: readonly string[];
}

/**
 * How long a lease lasts. With clocks that are 4 s apart (each is corrected to within 2 s of the
 * server's) and runners that look every 4 s, a shard is read again 20 s after its runner died.
 */
export const LEASE_MS = 12_000;

/** How often a lease is renewed: two renewals may fail. */
export const RENEW_EVERY_MS = 4000;

const KEPT_SECONDS = 3 * 24 * 60 * 60;

/** The leases and checkpoints of one runner. */
export class ShardStates {
  readonly #connection: Connection;
  readonly #runnerId: string;
  readonly #streamLabel: string;

  constructor(options: {
    readonly connection: Connection;
    readonly runnerId: string;
    readonly streamLabel: string;
  }) {
    this.#connection = options.connection;
    this.#runnerId = options.runnerId;
    this.#streamLabel = options.streamLabel;
  }

  /** Reads what is stored of all shards of this stream. */
  async read(): Promise<StoredStates> {
    const range = { from: runnerPrefix, to: `${streamShardPrefix}\uffff` };
    const query = { partition: systemPartition(TABLE_NAMESPACE), range };
    const shards = new Map<string, ShardState>();
    const waiting: string[] = [];
    const nowMs = this.#connection.clock.now();
    for await (const item of queryAll(this.#connection, query)) {
      const sortKey = stringOf(item["SK"]) ?? "";
      if (sortKey.startsWith(runnerPrefix)) {
        if ((numberOf(item["lease_until_ms"]) ?? 0) > nowMs)
          waiting.push(sortKey.slice(runnerPrefix.length));
      } else {
        const state = stateOf(item);
        shards.set(state.shardId, state);
      }
    }
    return { shards, waiting };
  }

  /** Takes the lease of a shard that is free; undefined when another runner was faster. */
  async take(shardId: string, seen: ShardState | undefined): Promise<ShardState | undefined> {
    const key = streamShardKey(shardId);
    const item = await this.#write(key, (expression) => {
      expression.set("owner", this.#runnerId);
      expression.set("stream", this.#streamLabel);
      for (const [name, value] of Object.entries(namespaceIndexKeys(TABLE_NAMESPACE, key)))
        expression.set(name, value as string);
      const owner = expression.name("owner");
      const nowMs = expression.value(this.#connection.clock.now());
      expression.require(
        `(attribute_not_exists(${owner}) OR ${owner}=${expression.value(this.#runnerId)} ` +
          `OR ${expression.name("lease_until_ms")}<${nowMs})`,
      );
      if (seen?.streamLabel !== undefined && seen.streamLabel !== this.#streamLabel) {
        // A stream that was enabled anew may use the names of shards again.
        expression.requireEqual("stream", seen.streamLabel);
        for (const name of ["sequence_number", "counted_until_ms", "finished"])
          expression.remove(name);
      } else expression.require(`attribute_not_exists(${expression.name("finished")})`);
    });
    return item && stateOf(item);
  }

  /**
   * Renews a lease, and stores along with it how far its owner is; false when it is lost. Where
   * nothing but the runners' own writes is in the stream, no other write moves the checkpoint.
   */
  async renew(shardId: string, { sequenceNumber, countedUntilMs }: ShardPlace): Promise<boolean> {
    return this.#writeOwned(shardId, (expression) => {
      if (sequenceNumber !== undefined) expression.set("sequence_number", sequenceNumber);
      if (countedUntilMs !== undefined) expression.set("counted_until_ms", countedUntilMs);
    });
  }

  /** Stores that everything up to a record was processed; false when the lease is lost. */
  async checkpoint(shardId: string, sequenceNumber: string): Promise<boolean> {
    return this.#writeOwned(shardId, (expression) =>
      expression.set("sequence_number", sequenceNumber),
    );
  }

  /** Stores that a shard was read to its end; false when the lease is lost. */
  async finish(shardId: string): Promise<boolean> {
    return this.#writeOwned(shardId, (expression) => {
      expression.set("finished", true);
      expression.remove("owner");
    });
  }

  /** Gives a lease back; it may be lost already. */
  async release(shardId: string): Promise<void> {
    await this.#writeOwned(shardId, (expression) => expression.remove("owner"));
  }

  /** Shows the other runners that this one waits for a shard. */
  async announce(): Promise<void> {
    await this.#write(runnerKey(this.#runnerId), () => undefined);
  }

  /** Tells the other runners that this one no longer waits. */
  async withdraw(): Promise<void> {
    const Key = marshalKey(runnerKey(this.#runnerId));
    await this.#connection.repeat("DeleteItem", { Key });
  }

  async #writeOwned(
    shardId: string,
    change: (expression: ExpressionBuilder) => void,
  ): Promise<boolean> {
    const written = await this.#write(streamShardKey(shardId), (expression) => {
      change(expression);
      expression.requireEqual("owner", this.#runnerId);
    });
    return written !== undefined;
  }

  /** Writes, with a new end of the lease; the item, or undefined when the condition failed. */
  async #write(
    key: ItemKey,
    change: (expression: ExpressionBuilder) => void,
  ): Promise<AttributeMap | undefined> {
    const nowMs = this.#connection.clock.now();
    const expression = new ExpressionBuilder();
    expression.set("lease_until_ms", nowMs + LEASE_MS);
    expression.set("ttl", Math.floor(nowMs / 1000) + KEPT_SECONDS);
    change(expression);
    const { ConditionExpression, ...rest } = expression.build();
    const input = {
      Key: marshalKey(key),
      ...rest,
      ...(ConditionExpression !== "" && { ConditionExpression }),
      ReturnValues: "ALL_NEW",
    };
    const written = await this.#connection.repeatConditional<{ Attributes?: AttributeMap }>(
      "UpdateItem",
      input,
    );
    return written.applied ? written.output.Attributes : undefined;
  }
}

function stateOf(item: AttributeMap): ShardState {
  return {
    shardId: (stringOf(item["SK"]) ?? "").slice(streamShardPrefix.length),
    streamLabel: stringOf(item["stream"]),
    owner: stringOf(item["owner"]),
    leaseUntilMs: numberOf(item["lease_until_ms"]) ?? 0,
    sequenceNumber: stringOf(item["sequence_number"]),
    countedUntilMs: numberOf(item["counted_until_ms"]),
    isFinished: booleanOf(item["finished"]) ?? false,
  };
}
