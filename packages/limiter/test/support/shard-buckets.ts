import { afterAll, beforeAll, expect } from "vitest";
import { Limit, type RateLimit } from "zae-limiter";
import type { ConfigKey } from "../../src/core/bucket/policy.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";
import { parseBucketItem } from "../../src/repository/dynamodb/items/bucket-item.ts";
import { bucketKey, type BucketKey } from "../../src/repository/dynamodb/items/bucket-key.ts";
import type { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { buildSplit } from "../../src/repository/dynamodb/shards/split.ts";
import type { DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import type { ConsumeRequest } from "../../src/repository/port.ts";
import {
  bucketProcess,
  grant,
  NAMESPACE_ID,
  requestFor,
  type BucketProcess,
} from "./bucket-process.ts";
import { connectToNewTable } from "./connect.ts";
import type { Engine } from "./engine.ts";
import { SleeplessClock } from "./sleepless-clock.ts";

/** The resource that all of these buckets are for. */
export const RESOURCE = "gpt-4";

/** Divides evenly by every number of shards that tests use. */
export const CAPACITY = 960;

/** A process at home on one shard, whose requests are recorded. */
export interface RecordedProcess extends BucketProcess {
  readonly recorder: Recorder;
  /** The requests of a piece of work, in order. */
  listRequests(work: () => Promise<unknown>): Promise<readonly string[]>;
}

/** Buckets with shards, below the public surface: for what they cost and what they hold. */
export interface ShardBuckets {
  readonly clock: SleeplessClock;
  /** The observer's connection, whose requests are not recorded. */
  readonly connection: () => Connection;
  readonly newEntity: () => string;
  readonly open: (
    homeShard: number,
    options?: { readonly maxShards?: number; readonly limits?: readonly RateLimit[] },
  ) => RecordedProcess;
  /** A bucket with this many shards, and the process that made them. */
  readonly split: (
    shards: number,
  ) => Promise<{ readonly entityId: string; readonly maker: RecordedProcess }>;
  /** Splits one shard alone, as pressure does with shard 0. */
  readonly splitOnly: (entityId: string, shard: number) => Promise<void>;
  /** The items of the first shards, at most this many. */
  readonly items: (entityId: string, count: number) => Promise<readonly AttributeMap[]>;
}

/** Registers the hooks that connect to a table. */
export function useShardBuckets(engine: () => Engine): ShardBuckets {
  const clock = new SleeplessClock();
  let inner: DynamoTransport;
  let connection: Connection;
  let tableName: string;
  let entities = 0;

  beforeAll(async () => {
    ({
      connection,
      transport: inner,
      tableName,
    } = await connectToNewTable(engine().endpointUrl, { transport: "lean", clock }));
  });
  afterAll(() => inner.close());

  const newEntity = (): string => `key-${(entities += 1)}`;

  const open: ShardBuckets["open"] = (
    homeShard,
    { maxShards = 32, limits = [Limit.perMinute("rpm", CAPACITY)] } = {},
  ) => {
    const recorder = new Recorder(inner);
    const process = bucketProcess({
      transport: recorder,
      tableName,
      clock,
      seed: 100 + homeShard,
      config: ({ level }: ConfigKey) => ({ limits: level === "system" ? limits : undefined }),
      maxShards,
      homeNumber: homeShard,
    });
    const listRequests: RecordedProcess["listRequests"] = async (work) => {
      recorder.operations = [];
      await work();
      return recorder.operations;
    };
    return { ...process, recorder, listRequests };
  };

  const items: ShardBuckets["items"] = async (entityId, count) => {
    const replies = await Promise.all(
      Array.from({ length: count }, async (_, shard) =>
        connection.call<{ readonly Item?: AttributeMap }>("GetItem", {
          Key: marshalItem(toKey(entityId, shard).primary),
        }),
      ),
    );
    return replies.flatMap(({ Item }) => (Item === undefined ? [] : [Item]));
  };

  return {
    clock,
    connection: () => connection,
    newEntity,
    open,
    items,
    split: async (shards) => {
      const entityId = newEntity();
      const maker = open(0);
      await grant(maker, request(entityId, 0));
      await maker.buckets.split(entityId, RESOURCE, shards);
      return { entityId, maker };
    },
    splitOnly: async (entityId, shard) => {
      const item = (await items(entityId, 64)).find(
        (each) => parseBucketItem(each).shard === shard,
      )!;
      const outcome = await connection.transact(
        buildSplit({
          key: toKey(entityId, shard),
          image: parseBucketItem(item),
          nowMs: clock.now(),
        }),
      );
      expect(outcome).toEqual({ applied: true });
    },
  };
}

/** Notes every request, in order, throttles the writes to one item, and lets others go first. */
class Recorder implements DynamoTransport {
  readonly #inner: DynamoTransport;
  operations: string[] = [];
  throttled: string | undefined;
  /** What others do before a request is carried out. */
  meanwhile: (operation: string) => Promise<void> = async () => {};

  constructor(inner: DynamoTransport) {
    this.#inner = inner;
  }

  async call(
    operation: string,
    input: object,
    options: { readonly signal: AbortSignal },
  ): Promise<object> {
    this.operations.push(operation);
    const { Key } = input as { readonly Key?: { readonly PK: { readonly S: string } } };
    if (Key !== undefined && Key.PK.S === this.throttled)
      throw Object.assign(new Error("Too fast."), { name: "ThrottlingException" });
    await this.meanwhile(operation);
    return this.#inner.call(operation, input, options);
  }

  close(): void {
    this.#inner.close();
  }
}

/** The key of one shard. */
export function toKey(entityId: string, shard: number): BucketKey {
  return bucketKey({ namespaceId: NAMESPACE_ID, entityId, resource: RESOURCE, shard }, undefined);
}

/** A call for this many requests, and perhaps other limits. */
export function request(
  entityId: string,
  rpm: number,
  further: Readonly<Record<string, number>> = {},
): ConsumeRequest {
  return requestFor(entityId, { rpm, ...further }, { resource: RESOURCE });
}
