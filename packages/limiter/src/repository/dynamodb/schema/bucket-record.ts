import { ValidationError } from "../../../core/errors.ts";
import {
  getConsumedMilli,
  getStoredEndMs,
  getStoredMilli,
  getStoredRemainder,
  type Bucket,
  type BucketLimit,
} from "../../../core/bucket/bucket.ts";
import { parseBucketItem as parseImage } from "../items/bucket-item.ts";
import type { BucketName } from "../items/keys.ts";
import type { AttributeMap } from "../transport/attribute-values.ts";
import { parseKey } from "./parse-key.ts";

/** One limit of a bucket and its balance. A shard has its shares of capacity and rate. */
export interface LimitBalance extends BucketLimit {
  /** The balance at `lastRefillMs`, in thousandths of a token; negative in debt. */
  readonly tokensMilli: number;
  /** What the refill earned beyond whole millitokens, in units of 1/`period` millitoken. */
  readonly remainder: number;
  /** Of a quota or session, the end of the window that the tokens belong to; 0 for none. */
  readonly windowEndMs: number;
  /** All that was consumed, in thousandths of a token, net of what was given back. */
  readonly totalConsumedMilli: number;
}

/** One stored bucket, or one shard of a bucket that was split. */
export interface BucketRecord extends BucketName {
  /** The id of the namespace. */
  readonly namespaceId: string;
  /** The shard has a share of 1/`shardCount` of the limits. */
  readonly shardCount: number;
  /** The parent that calls of the entity also take from. */
  readonly parentId: string | undefined;
  /** When the balances were computed, in milliseconds since 1970. */
  readonly lastRefillMs: number;
  /** The limits that the last write decided with; hidden ones have left the policy. */
  readonly limits: readonly LimitBalance[];
  /** When DynamoDB may delete the item, in seconds since 1970: then all limits are full. */
  readonly expiresAtSeconds: number | undefined;
}

/**
 * Reads the item of a bucket, as `DynamoDBClient`, a stream or `parseStreamRecord` returns it;
 * undefined for an item of another kind. Throws `IncompatibleSchemaError` for a bucket that this
 * version cannot read.
 * @example
 * const buckets = records.flatMap(({ after }) => parseBucketItem(after) ?? []);
 */
export function parseBucketItem(
  item: Readonly<Record<string, object>> | undefined,
): BucketRecord | undefined {
  const key = parseKey(item);
  if (key?.kind !== "bucket") return undefined;
  if (typeof item?.["PK"] !== "object")
    throw new ValidationError(
      "item",
      undefined,
      "must have types, as { PK: { S: … } }: read it with DynamoDBClient, not with a document client",
    );
  const { bucket, divisor, parentId, expiresAtSeconds } = parseImage(item as AttributeMap);
  const { kind: _, ...name } = key;
  const place = { ...name, shardCount: divisor, parentId, expiresAtSeconds };
  return withBalances({ ...place, lastRefillMs: bucket.refilledAtMs, limits: [] }, bucket);
}

/** The record with the limits and balances of a bucket. */
export function withBalances(record: BucketRecord, bucket: Bucket): BucketRecord {
  return {
    ...record,
    lastRefillMs: bucket.refilledAtMs,
    limits: bucket.limits.map((limit, index) => ({
      ...limit,
      tokensMilli: getStoredMilli(bucket, index),
      remainder: getStoredRemainder(bucket, index),
      windowEndMs: getStoredEndMs(bucket, index),
      totalConsumedMilli: getConsumedMilli(bucket, index),
    })),
  };
}

/** The bucket of a record, for the core. */
export function toBucket({ limits, lastRefillMs }: BucketRecord): Bucket {
  const balances = limits.flatMap((limit) => [
    limit.tokensMilli,
    limit.window === undefined ? limit.remainder : limit.windowEndMs,
    limit.totalConsumedMilli,
  ]);
  return { limits, refilledAtMs: lastRefillMs, balances };
}
