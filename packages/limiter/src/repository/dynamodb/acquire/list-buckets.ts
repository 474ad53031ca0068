import type { Keyed, KeyPage, StoredBucket } from "../../store.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import { batchGet, getKey, marshalKey, queryAll } from "../table/batch.ts";
import { parseBucketItem, type BucketImage } from "../items/bucket-item.ts";
import type { Connection } from "../table/connection.ts";
import { MAX_READS } from "../cache/known-buckets.ts";
import { parseBucketPartition } from "../items/key-parsers.ts";
import {
  bucketKey,
  entityBucketsPrefix,
  entityPartition,
  resourceBucketsAfter,
  resourceBucketsPrefix,
  resourcePartition,
  type BucketName,
} from "../items/keys.ts";
import type { ItemKey } from "../table/batch.ts";
import { eachWithin } from "../table/each-within.ts";
import type { KeyQuery } from "../table/key-query.ts";

/** How many queries of one report are under way at a time. */
const CONCURRENT_QUERIES = 16;

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
    return this.ofEntities([entityId], resource);
  }

  async ofResource(resource: string): Promise<readonly StoredBucket[]> {
    const keys = await this.#keys({
      index: "GSI2",
      partition: resourcePartition(this.#namespaceId, resource),
      range: { beginsWith: resourceBucketsPrefix },
    });
    return wholeBuckets(await this.#read(keys));
  }

  /** One shard, whatever became of the others. */
  async get(name: BucketName): Promise<StoredBucket | undefined> {
    const { Item } = await this.#connection.repeat<{ readonly Item?: AttributeMap }>("GetItem", {
      Key: marshalKey(bucketKey(this.#namespaceId, name)),
      ConsistentRead: true,
    });
    return Item === undefined ? undefined : parseFound(Item).map(toStoredBucket)[0];
  }

  /** The keys of shard 0 are known if the resource is; an index has the others. */
  async ofEntities(
    entityIds: readonly string[],
    resource: string | undefined,
  ): Promise<readonly StoredBucket[]> {
    if (resource !== undefined) return this.#ofKnown(entityIds, resource);
    const keys: ItemKey[] = [];
    await eachWithin(CONCURRENT_QUERIES, entityIds, async (entityId) => {
      const query = {
        index: "GSI3",
        partition: entityPartition(this.#namespaceId, entityId),
        range: { beginsWith: entityBucketsPrefix() },
      } as const;
      keys.push(...(await this.#keys(query)));
    });
    return wholeBuckets(await this.#read(keys));
  }

  /**
   * The buckets of `limit` entities. The index sorts by entity, so the shards of one stand
   * together.
   */
  async ofResourcePage(resource: string, { limit, after }: KeyPage): Promise<Keyed<StoredBucket>> {
    const keys: ItemKey[] = [];
    const entityIds = new Set<string>();
    const query: KeyQuery = {
      index: "GSI2",
      partition: resourcePartition(this.#namespaceId, resource),
      range: resourceBucketsAfter(after),
      limit: limit + 1,
    };
    for await (const item of queryAll(this.#connection, query)) {
      const name = parseBucketPartition(getKey(item).PK);
      if (name === undefined) continue;
      if (entityIds.size === limit && !entityIds.has(name.entityId)) {
        const next = [...entityIds].at(-1);
        return { items: wholeBuckets(await this.#read(keys)), next };
      }
      entityIds.add(name.entityId);
      keys.push(getKey(item));
    }
    return { items: wholeBuckets(await this.#read(keys)), next: undefined };
  }

  /**
   * Shard 0 of all, then the shards that those found have, until none is new. A bucket that is
   * split again during each read may lack its newest shards.
   */
  async #ofKnown(entityIds: readonly string[], resource: string): Promise<readonly StoredBucket[]> {
    const found: Found[] = [];
    const counts = new Map<string, number>();
    let wanted: readonly BucketName[] = entityIds.map((entityId) => ({
      entityId,
      resource,
      shard: 0,
    }));
    for (let reads = 1; wanted.length > 0 && reads <= MAX_READS; reads += 1) {
      const read = await this.#read(wanted.map((name) => bucketKey(this.#namespaceId, name)));
      found.push(...read);
      wanted = read.flatMap(({ name: { entityId }, image: { divisor } }) => {
        const known = counts.get(entityId) ?? 1;
        if (divisor <= known) return [];
        counts.set(entityId, divisor);
        return Array.from({ length: divisor - known }, (_, more) => ({
          entityId,
          resource,
          shard: known + more,
        }));
      });
    }
    return wholeBuckets(found);
  }

  async #keys(query: KeyQuery): Promise<readonly ItemKey[]> {
    const keys: ItemKey[] = [];
    for await (const item of queryAll(this.#connection, query)) keys.push(getKey(item));
    return keys;
  }

  async #read(keys: readonly ItemKey[]): Promise<readonly Found[]> {
    const items = await batchGet(this.#connection, keys);
    return items.flatMap((item) => (item === undefined ? [] : parseFound(item)));
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
