import { marshalItem, type AttributeMap, type Value } from "../transport/attribute-values.ts";
import { bucketIndexKeys, bucketKey as primaryKey, type BucketName } from "./keys.ts";
import type { ItemKey } from "../table/batch.ts";

/** Which shard of which bucket, and what its item says about where it belongs. */
export interface BucketKey extends BucketName {
  readonly namespaceId: string;
  readonly primary: ItemKey & { readonly [attribute: string]: string };
  /** The primary key in the format of requests. */
  readonly marshalled: AttributeMap;
  /** The partition key, which caches are keyed by. */
  readonly text: string;
  /** The parent that calls of the entity also take from; undefined when there is none. */
  readonly parentId: string | undefined;
}

export function bucketKey(
  name: BucketName & { readonly namespaceId: string },
  parentId: string | undefined,
): BucketKey {
  const { PK, SK } = primaryKey(name.namespaceId, name);
  return { ...name, primary: { PK, SK }, marshalled: marshalItem({ PK, SK }), text: PK, parentId };
}

/** The key of another shard of the same bucket. */
export function buildSiblingKey(
  { namespaceId, entityId, resource, parentId }: BucketKey,
  shard: number,
): BucketKey {
  return bucketKey({ namespaceId, entityId, resource, shard }, parentId);
}

/** The attributes of a new item that do not change with its balance. */
export function keyAttributes({
  namespaceId,
  entityId,
  resource,
  shard,
  primary,
  parentId,
}: BucketKey): Readonly<Record<string, Value>> {
  return {
    ...primary,
    ...bucketIndexKeys(namespaceId, { entityId, resource, shard }),
    entity_id: entityId,
    resource,
    cascade: parentId !== undefined,
    ...(parentId !== undefined && { parent_id: parentId }),
  };
}
