import type { MaybePromise } from "../port.ts";
import type { PolicySource } from "../store.ts";
import type { Admission } from "./admission.ts";
import type { BucketCounts } from "./bucket-counts.ts";
import { BucketKeys } from "./bucket-keys.ts";
import { BucketPolicies } from "./bucket-policies.ts";
import { BucketQueries } from "./bucket-queries.ts";
import { BucketShards } from "./bucket-shards.ts";
import { BucketWriter } from "./bucket-writer.ts";
import { DynamoBuckets } from "./buckets.ts";
import type { Connection } from "./connection.ts";
import type { Families } from "./families.ts";
import type { BucketImages } from "./images.ts";
import type { ItemReader } from "./item-reader.ts";
import type { OperationIds } from "./operation-ids.ts";
import { ShardTaker } from "./shard-taker.ts";
import { Splitter } from "./splitter.ts";

/** What the buckets of one namespace are made of. */
export interface BucketsOptions {
  readonly namespaceId: string;
  readonly connection: Connection;
  readonly reader: ItemReader;
  readonly images: BucketImages;
  readonly ids: OperationIds;
  readonly policies: PolicySource;
  readonly families: Families;
  readonly admission: Admission;
  readonly counts: BucketCounts;
  readonly assertActive: () => MaybePromise<void>;
  /** How old an image may be that refuses a call without asking the table. */
  readonly refusalMemoryMs: number;
  readonly ttlMultiplier: number;
  readonly largestTickMs: number;
  readonly maxShards: number;
  /**
   * Which shard is home: this modulo the count. @default by chance, so that processes spread over
   * the shards
   */
  readonly residence?: number | undefined;
}

/** Puts the write path of one namespace together. */
export function openBuckets(options: BucketsOptions): DynamoBuckets {
  const { connection, images, counts, namespaceId } = options;
  const { clock } = connection;
  const shards = new BucketShards({ ...options, clock });
  const splitter = new Splitter({ ...options, shards });
  const writer = new BucketWriter({ ...options, splitter });
  const bucketPolicies = new BucketPolicies(options.policies, images);
  const residence = options.residence ?? Math.floor(connection.random() * 2 ** 16);
  const taker = new ShardTaker({
    connection,
    shards,
    writer,
    splitter,
    policies: bucketPolicies,
    residence,
  });
  const queries = new BucketQueries(connection, namespaceId);
  const keys = new BucketKeys(namespaceId, options.families);
  return new DynamoBuckets({
    ...options,
    keys,
    clock,
    counts,
    shards,
    splitter,
    writer,
    bucketPolicies,
    taker,
    queries,
  });
}
