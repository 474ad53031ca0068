import { ValidationError } from "../../core/errors.ts";
import { entityId as checkEntityId, resourceName } from "../../core/identifiers.ts";
import type { ShardsOptions } from "../repository.ts";
import type { Context } from "./context.ts";

/** Splits a bucket into at least `shards` shards; returns the actual count. */
export async function splitBucket(
  context: Context,
  entityId: string,
  resource: string,
  options: ShardsOptions,
): Promise<number> {
  const { buckets } = context.data;
  const shards = checkCount(options, buckets.split !== undefined);
  return buckets.split!(checkEntityId(entityId), resourceName(resource), shards);
}

/** Merges a bucket into at most `shards` shards; returns the actual count. */
export async function mergeBucket(
  context: Context,
  entityId: string,
  resource: string,
  options: ShardsOptions,
): Promise<number> {
  const { buckets } = context.data;
  const shards = checkCount(options, buckets.merge !== undefined);
  return buckets.merge!(checkEntityId(entityId), resourceName(resource), shards);
}

function checkCount({ shards }: ShardsOptions, hasShards: boolean): number {
  if (!hasShards)
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
  return shards;
}
