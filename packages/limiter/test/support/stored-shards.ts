import { beforeAll } from "vitest";
import { bucketLimit, type Bucket } from "../../src/core/bucket/bucket.ts";
import type { SupportedLimit } from "../../src/core/supported-limits.ts";
import {
  bucketAttributes,
  slotAttribute,
} from "../../src/repository/dynamodb/items/bucket-item.ts";
import {
  bucketKey,
  keyAttributes,
  type BucketKey,
} from "../../src/repository/dynamodb/items/bucket-key.ts";
import type { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { Aliases } from "../../src/repository/dynamodb/table/aliases.ts";
import {
  marshalItem,
  type AttributeMap,
  type Value,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { Fraction } from "../oracle/fraction.ts";
import { bucketValue, readBucket } from "../oracle/stored-bucket.ts";
import { computeShare } from "../oracle/terms.ts";
import { connectToNewTable } from "./connect.ts";
import type { Engine } from "./engine.ts";

/** One limit of an item that a test puts. */
export interface StoredLimit {
  readonly limit: SupportedLimit;
  readonly milli: number;
  /** Of a quota, the end of its window. */
  readonly remainder?: number;
  readonly hidden?: boolean;
}

/** Items of shards that a test puts and changes by hand. */
export interface StoredShards {
  readonly connection: () => Connection;
  readonly newEntity: () => string;
  /** Puts a bucket that was never split, last refilled some time ago; returns its entity. */
  readonly put: (
    stored: readonly StoredLimit[],
    idleMs?: number,
    further?: Readonly<Record<string, Value | undefined>>,
  ) => Promise<string>;
  /** Puts one shard of a bucket. */
  readonly putShard: (
    entityId: string,
    shard: number,
    stored: readonly StoredLimit[],
    options: {
      readonly refilledAtMs: number;
      readonly further: Readonly<Record<string, Value | undefined>>;
    },
  ) => Promise<void>;
  readonly get: (entityId: string, shard: number) => Promise<AttributeMap>;
  readonly getAll: (
    entityId: string,
    shards: readonly number[],
  ) => Promise<readonly AttributeMap[]>;
  /** Another writer, between the image and what is decided with it. */
  readonly change: (
    entityId: string,
    shard: number,
    values: Readonly<Record<string, Value>>,
  ) => Promise<void>;
}

/** Registers the hook that connects to a table. */
export function useStoredShards(engine: () => Engine, nowMs: number): StoredShards {
  let connection: Connection;
  let entities = 0;

  beforeAll(async () => {
    ({ connection } = await connectToNewTable(engine().endpointUrl));
  });

  const newEntity = (): string => `key-${(entities += 1)}`;

  const putShard: StoredShards["putShard"] = async (
    entityId,
    shard,
    stored,
    { refilledAtMs, further },
  ) => {
    const bucket: Bucket = {
      limits: stored.map(({ limit, hidden }) => bucketLimit(limit, hidden === true)),
      refilledAtMs,
      balances: stored.flatMap(({ milli, remainder }) => [milli, remainder ?? 0, 7000]),
    };
    const item = marshalItem({
      ...keyAttributes(toKey(entityId, shard)),
      ...bucketAttributes(bucket),
      sv: nowMs - 50,
      gr: 3,
      b_wcu_tc: 40,
      shard_count: 1,
      cr: "me.0001",
      [slotAttribute(0)]: "me.0009",
      ...further,
    });
    await connection.call("PutItem", { Item: item });
  };

  const get: StoredShards["get"] = async (entityId, shard) => {
    const reply = await connection.call<{ readonly Item?: AttributeMap }>("GetItem", {
      Key: marshalItem(toKey(entityId, shard).primary),
      ConsistentRead: true,
    });
    if (reply.Item === undefined) throw new Error(`shard ${shard} is missing`);
    return reply.Item;
  };

  return {
    connection: () => connection,
    newEntity,
    putShard,
    put: async (stored, idleMs = 0, further = {}) => {
      const entityId = newEntity();
      await putShard(entityId, 0, stored, {
        refilledAtMs: nowMs - idleMs,
        further: { ttl: 1_900_000_000, ...further },
      });
      return entityId;
    },
    get,
    getAll: async (entityId, shards) =>
      Promise.all(shards.map(async (shard) => get(entityId, shard))),
    change: async (entityId, shard, values) => {
      const alias = new Aliases();
      const clauses = Object.entries(values).map(
        ([attribute, value]) => `${alias.name(attribute)} = ${alias.value(value)}`,
      );
      await connection.call("UpdateItem", {
        Key: marshalItem(toKey(entityId, shard).primary),
        UpdateExpression: `SET ${clauses.join(", ")}`,
        ...alias.fields(),
      });
    },
  };
}

/** The key of one shard of the bucket of an entity. */
export function toKey(entityId: string, shard: number): BucketKey {
  return bucketKey({ namespaceId: "ns", entityId, resource: "gpt-4", shard }, "org");
}

/** What all shards hold of one limit together: `over` is the period in milliseconds. */
export function getWorth(items: readonly AttributeMap[], name: string, atMs: number): Fraction {
  return bucketValue(readBucket(items), name, atMs);
}

/** The shares of the shards of a bucket, which must add up to the whole. */
export function listShares(items: readonly AttributeMap[], whole: bigint): bigint {
  return [...readBucket(items)].reduce(
    (sum, [shard, { divisor }]) => sum + computeShare(whole, shard, divisor),
    0n,
  );
}
