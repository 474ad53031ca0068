import { ValidationError } from "../../core/errors.ts";
import { entityId as checkEntityId, resourceName } from "../../core/identifiers.ts";
import type { Context } from "./context.ts";

/** Splits a bucket into at least `shards` shards; returns the actual count. */
export async function splitBucket(
  context: Context,
  entityId: string,
  resource: string,
  { shards }: { readonly shards: number },
): Promise<number> {
  const { buckets } = context.data;
  if (buckets.split === undefined)
    throw new ValidationError(
      "shards",
      shards,
      "cannot be set, because buckets of this backend have no shards",
    );
  if (!Number.isInteger(shards) || shards < 1 || Math.log2(shards) % 1 !== 0)
    throw new ValidationError(
      "shards",
      shards,
      "must be a power of two, such as 8, because shards split in halves",
    );
  return buckets.split(checkEntityId(entityId), resourceName(resource), shards);
}
