import { ValidationError } from "../../core/errors.ts";
import { entityId as checkEntityId, resourceName } from "../../core/identifiers.ts";
import type { Context } from "./context.ts";

/** Splits a bucket until it has so many shards; answers how many it has. */
export async function splitBucket(
  context: Context,
  entityId: string,
  resource: string,
  { shards }: { readonly shards: number },
): Promise<number> {
  const { buckets } = context.data;
  if (buckets.split === undefined)
    throw new ValidationError("shards", shards, "this backend has no shards");
  if (!Number.isInteger(shards) || shards < 1 || Math.log2(shards) % 1 !== 0)
    throw new ValidationError(
      "shards",
      shards,
      "must be a power of two, such as 8: shards only ever split in halves",
    );
  return buckets.split(checkEntityId(entityId), resourceName(resource), shards);
}
