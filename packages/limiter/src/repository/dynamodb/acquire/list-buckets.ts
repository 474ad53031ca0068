import type { StoredBucket } from "../../store.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import { batchGet, getKey, queryAll } from "../table/batch.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import type { Connection } from "../table/connection.ts";
import { parseBucketPartition } from "../items/key-parsers.ts";
import {
  entityBucketsPrefix,
  entityPartition,
  resourceBucketsPrefix,
  resourcePartition,
  type BucketName,
} from "../items/keys.ts";
import type { ItemKey } from "../table/batch.ts";
import type { KeyQuery } from "../table/key-query.ts";

/**
 * Lists buckets. The indexes hold keys only, so that a change of balance costs nothing there; the
 * items are read by key.
 */
export class BucketList {
  readonly #connection: Connection;
  readonly #namespaceId: string;

  constructor(connection: Connection, namespaceId: string) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
  }

  ofEntity(entityId: string, resource: string | undefined): Promise<readonly StoredBucket[]> {
    return this.#buckets({
      index: "GSI3",
      partition: entityPartition(this.#namespaceId, entityId),
      range: { beginsWith: entityBucketsPrefix(resource) },
    });
  }

  ofResource(resource: string): Promise<readonly StoredBucket[]> {
    return this.#buckets({
      index: "GSI2",
      partition: resourcePartition(this.#namespaceId, resource),
      range: { beginsWith: resourceBucketsPrefix },
    });
  }

  async #buckets(query: KeyQuery): Promise<readonly StoredBucket[]> {
    const keys: ItemKey[] = [];
    for await (const item of queryAll(this.#connection, query)) keys.push(getKey(item));
    const items = await batchGet(this.#connection, keys);
    return wholeBuckets(items.flatMap((item) => (item === undefined ? [] : parseFound(item))));
  }
}

interface Found {
  readonly name: BucketName;
  readonly image: BucketImage;
}

function parseFound(item: AttributeMap): readonly Found[] {
  const name = parseBucketPartition(getKey(item).PK);
  return name === undefined ? [] : [{ name, image: parseBucketItem(item) }];
}

/**
 * Buckets with their shards in order. Shards whose shard 0 is missing are left over from a deleted
 * bucket, and belong to none.
 */
function wholeBuckets(all: readonly Found[]): readonly StoredBucket[] {
  const buckets = new Map<string, Found[]>();
  for (const each of all) {
    const id = `${each.name.entityId}#${each.name.resource}`;
    buckets.set(id, [...(buckets.get(id) ?? []), each]);
  }
  return [...buckets.values()].flatMap((shards) => {
    const [first, ...others] = shards.toSorted((left, right) => left.name.shard - right.name.shard);
    if (first!.name.shard !== 0) return [];
    return [first!, ...others.filter(({ image }) => image.creation === first!.image.creation)].map(
      toStoredBucket,
    );
  });
}

function toStoredBucket({
  name: { entityId, resource, shard },
  image: { bucket, divisor },
}: Found): StoredBucket {
  return { entityId, resource, shard, shardCount: divisor, bucket };
}
