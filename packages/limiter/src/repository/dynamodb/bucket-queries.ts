import type { StoredBucket } from "../store.ts";
import { Aliases } from "./aliases.ts";
import { numberOf, type AttributeMap } from "./attribute-values.ts";
import { batchGet, keyOf, queryAll } from "./batch.ts";
import { imageOf } from "./bucket-item.ts";
import type { Connection } from "./connection.ts";
import {
  entityBucketsPrefix,
  entityPartition,
  parseBucketPartition,
  resourceBucketsPrefix,
  resourcePartition,
  type ItemKey,
} from "./keys.ts";

/** Lists buckets. The indexes hold keys only, so that a change of balance costs nothing there; the items are read by key. */
export class BucketQueries {
  readonly #connection: Connection;
  readonly #namespaceId: string;

  constructor(connection: Connection, namespaceId: string) {
    this.#connection = connection;
    this.#namespaceId = namespaceId;
  }

  ofEntity(entityId: string, resource: string | undefined): Promise<readonly StoredBucket[]> {
    return this.#buckets(indexQuery("GSI3", entityPartition(this.#namespaceId, entityId), entityBucketsPrefix(resource)));
  }

  ofResource(resource: string): Promise<readonly StoredBucket[]> {
    return this.#buckets(indexQuery("GSI2", resourcePartition(this.#namespaceId, resource), resourceBucketsPrefix));
  }

  async #buckets(query: object): Promise<readonly StoredBucket[]> {
    const keys: ItemKey[] = [];
    for await (const item of queryAll(this.#connection, query)) keys.push(keyOf(item));
    return (await batchGet(this.#connection, keys)).flatMap((item) => (item === undefined ? [] : storedBucket(item)));
  }
}

/** The input of a query of one index for the keys of buckets. */
export function indexQuery(index: "GSI2" | "GSI3", partition: string, prefix: string): object {
  const alias = new Aliases();
  const condition = `${alias.name(`${index}PK`)} = ${alias.value(partition)} AND begins_with(${alias.name(`${index}SK`)}, ${alias.value(prefix)})`;
  return { IndexName: index, KeyConditionExpression: condition, ...alias.fields() };
}

function storedBucket(item: AttributeMap): readonly StoredBucket[] {
  const name = parseBucketPartition(keyOf(item).PK);
  if (name === undefined) return [];
  const { entityId, resource, shard } = name;
  return [{ entityId, resource, shard, shardCount: numberOf(item["shard_count"]) ?? 1, bucket: imageOf(item).bucket }];
}
