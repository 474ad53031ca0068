import { marshalItem, type AttributeMap, type Value } from "./attribute-values.ts";
import type { Family } from "./families.ts";
import { bucketIndexKeys, bucketKey as primaryKey, type BucketName, type ItemKey } from "./keys.ts";

/** Which bucket, and what its item says about where it belongs. */
export interface BucketKey extends BucketName {
  readonly namespaceId: string;
  readonly primary: ItemKey & { readonly [attribute: string]: string };
  /** The same as a request names it. */
  readonly marshalled: AttributeMap;
  /** The partition key: what processes remember buckets by. */
  readonly text: string;
  readonly family: Family | undefined;
}

export function bucketKey(
  name: BucketName & { readonly namespaceId: string },
  family: Family | undefined,
): BucketKey {
  const { PK, SK } = primaryKey(name.namespaceId, name);
  return { ...name, primary: { PK, SK }, marshalled: marshalItem({ PK, SK }), text: PK, family };
}

/** The attributes of a new item that do not change with its balance. */
export function keyAttributes({
  namespaceId,
  entityId,
  resource,
  shard,
  primary,
  family,
}: BucketKey): Readonly<Record<string, Value>> {
  const parentId = family?.parentId;
  return {
    ...primary,
    ...bucketIndexKeys(namespaceId, { entityId, resource, shard }),
    entity_id: entityId,
    resource,
    cascade: parentId !== undefined,
    ...(parentId !== undefined && { parent_id: parentId }),
  };
}
