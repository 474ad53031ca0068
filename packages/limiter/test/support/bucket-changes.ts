import type { StreamRecord } from "../../src/repository/dynamodb/aggregator/stream-record.ts";
import {
  getNumber,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { update, type ExpressionInput } from "./expression-evaluator.ts";
import { createError, ScriptedTable } from "./scripted-table.ts";
import { shardKey } from "./shard-images.ts";
import { buildRecord } from "./usage-process.ts";

/** Makes the records that a stream has of changes, numbered in the order in which they are made. */
export class ChangeRecords {
  #count = 0;

  /** The record of one change; its time is rounded down to the second, as in a stream. */
  get(
    before: AttributeMap | undefined,
    after: AttributeMap | undefined,
    atMs: number,
  ): StreamRecord {
    this.#count += 1;
    return buildRecord({
      before,
      after,
      atMs: Math.floor(atMs / 1000) * 1000,
      number: this.#count,
    });
  }
}

interface TransactInput {
  readonly TransactItems: readonly {
    readonly Update?: ExpressionInput & { readonly Key: AttributeMap };
    readonly Put?: { readonly Item: AttributeMap };
    readonly Delete?: ExpressionInput & { readonly Key: AttributeMap };
  }[];
}

/** A scripted table that carries out transactions too, and whose shards others write to. */
export class WrittenTable extends ScriptedTable {
  readonly records = new ChangeRecords();

  /** The shards of the bucket of an entity that exist, in order. */
  shards(entityId = "e"): readonly AttributeMap[] {
    const all = Array.from({ length: 64 }, (_, shard) => this.shard(shard, entityId));
    return all.filter((item) => item !== undefined);
  }

  /** One of them. */
  shard(shard: number, entityId = "e"): AttributeMap | undefined {
    return this.#held(shardKey(shard, entityId).marshalled);
  }

  /** Writes this many units to a shard, and returns the record of the last write. */
  write(shard: number, units: number, atMs: number): StreamRecord {
    const before = this.shard(shard)!;
    const writes = getNumber(before["b_wcu_tc"])! + units;
    const after = { ...before, b_wcu_tc: { N: String(writes) } };
    this.put(after);
    return this.records.get(before, after, atMs);
  }

  override async call(operation: string, input: object): Promise<object> {
    const answer = await super.call(operation, input);
    if (operation === "TransactWriteItems") this.#carryOut(input as TransactInput);
    return answer;
  }

  #carryOut({ TransactItems: writes }: TransactInput): void {
    const outcomes = writes.map(({ Update, Put, Delete }) => {
      const conditional = Update ?? Delete;
      if (conditional === undefined) return Put!.Item;
      return update(this.#held(conditional.Key) ?? {}, conditional);
    });
    if (outcomes.includes(undefined))
      throw createError("TransactionCanceledException", {
        CancellationReasons: outcomes.map((outcome) => ({
          Code: outcome === undefined ? "ConditionalCheckFailed" : "None",
        })),
      });
    for (const [index, { Update, Put, Delete }] of writes.entries()) {
      const key = Update?.Key ?? Delete?.Key ?? Put!.Item;
      const after = Delete === undefined ? outcomes[index] : undefined;
      if (after !== undefined) this.put(after);
      else this.items.delete(JSON.stringify([key["PK"], key["SK"]]));
    }
  }

  #held({ PK, SK }: AttributeMap): AttributeMap | undefined {
    return this.items.get(JSON.stringify([PK, SK]));
  }
}
