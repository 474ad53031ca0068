import { MILLI } from "../../src/core/amounts.ts";
import { bucketLimits } from "../../src/core/bucket/bucket.ts";
import type { SupportedLimit } from "../../src/core/supported-limits.ts";
import { Limit } from "../../src/core/limit.ts";
import { computeShare } from "../../src/core/bucket/shares.ts";
import {
  bucketAttributes,
  originAttribute,
  parseBucketItem,
  slotAttribute,
  type BucketImage,
} from "../../src/repository/dynamodb/items/bucket-item.ts";
import { bucketKey, type BucketKey } from "../../src/repository/dynamodb/items/bucket-key.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../src/repository/dynamodb/transport/attribute-values.ts";

/** When hand-made shards were last refilled, by default. */
export const NOW_MS = 1_800_000_000_000;

/** A limit that holds 60,000 millitokens and earns one in every millisecond. */
export const TPM = Limit.perMinute("tpm", 60);

/** A stored shard; omitted fields are as on a full bucket that was never split. */
export interface StoredShard {
  readonly entityId?: string;
  readonly limits?: readonly SupportedLimit[];
  /** Millitokens by limit; a limit that is not named is full. */
  readonly tokens?: Readonly<Record<string, number>>;
  /** The total consumed by limit, in millitokens. */
  readonly consumed?: Readonly<Record<string, number>>;
  /** What is left of the last refill, by limit, in units of 1/period. */
  readonly remainders?: Readonly<Record<string, number>>;
  readonly refilledAtMs?: number;
  readonly shard?: number;
  readonly divisor?: number;
  readonly version?: number;
  readonly creation?: string;
  readonly writes?: number;
  readonly requests?: number;
  readonly undone?: number;
  readonly slots?: readonly string[];
  readonly overridden?: boolean;
  /** The names of the limits that came from code. */
  readonly fromCode?: readonly string[];
  readonly expiresAtSeconds?: number;
}

/** The key of one shard of the bucket of an entity on the resource `r`. */
export function shardKey(shard = 0, entityId = "e"): BucketKey {
  return bucketKey({ namespaceId: "ns", entityId, resource: "r", shard }, undefined);
}

/** The item of a shard. */
export function shardItem(stored: StoredShard = {}): AttributeMap {
  const { limits = [TPM], shard = 0, divisor = 1, refilledAtMs = NOW_MS } = stored;
  const balances = limits.flatMap(({ name, capacity }) => [
    stored.tokens?.[name] ?? computeShare(capacity * MILLI, shard, divisor),
    stored.remainders?.[name] ?? 0,
    stored.consumed?.[name] ?? 0,
  ]);
  return marshalItem({
    ...shardKey(shard, stored.entityId).primary,
    ...bucketAttributes({ limits: bucketLimits(limits), refilledAtMs, balances }),
    sv: stored.version ?? 5,
    cr: stored.creation ?? "other.0000",
    b_wcu_tc: stored.writes ?? 1,
    ...(stored.requests !== undefined && { gr: stored.requests }),
    ...(stored.undone !== undefined && { ud: stored.undone }),
    shard_count: divisor,
    ...Object.fromEntries((stored.slots ?? []).map((id, slot) => [slotAttribute(slot), id])),
    po: originAttribute({ overridden: stored.overridden === true, fromCode: stored.fromCode }),
    ...(stored.expiresAtSeconds !== undefined && { ttl: stored.expiresAtSeconds }),
  });
}

/** The image of a shard. */
export function shardImage(stored: StoredShard = {}): BucketImage {
  return parseBucketItem(shardItem(stored));
}
