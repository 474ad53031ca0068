import type { Amounts } from "../../src/core/amounts.ts";
import type { ConfigKey } from "../../src/core/policy.ts";
import { PolicyCache } from "../../src/repository/policy-cache.ts";
import type { ConsumeRequest, MaybePromise, Receipt } from "../../src/repository/port.ts";
import type { StoredConfig } from "../../src/repository/store.ts";
import type { Clock } from "../../src/repository/system-clock.ts";
import { Admission } from "../../src/repository/dynamodb/admission.ts";
import { newCounts, type BucketCounts } from "../../src/repository/dynamodb/bucket-counts.ts";
import type { DynamoBuckets } from "../../src/repository/dynamodb/buckets.ts";
import { Connection } from "../../src/repository/dynamodb/connection.ts";
import { Families } from "../../src/repository/dynamodb/families.ts";
import { BucketImages } from "../../src/repository/dynamodb/images.ts";
import { ItemReader } from "../../src/repository/dynamodb/item-reader.ts";
import { openBuckets } from "../../src/repository/dynamodb/open-buckets.ts";
import { OperationIds } from "../../src/repository/dynamodb/operation-ids.ts";
import { MeteredTransport, type DynamoTransport } from "../../src/repository/dynamodb/transport.ts";
import { seededRandom } from "../../src/testing/seeded-random.ts";

/** The namespace of all of them. */
export const NAMESPACE_ID = "ns123456789";

/**
 * One process that shares a table: buckets with images and a cache of their own. Configuration
 * comes from `config`, as if it were stored.
 */
export interface BucketProcess {
  readonly buckets: DynamoBuckets;
  readonly policies: PolicyCache;
  readonly transport: MeteredTransport;
  readonly counts: BucketCounts;
  readonly images: BucketImages;
}

/** Opens one. */
export function bucketProcess(options: {
  readonly transport: DynamoTransport;
  readonly tableName: string;
  readonly clock: Clock;
  readonly seed: number;
  /** May throw, as a read may. */
  readonly config: (key: ConfigKey) => MaybePromise<StoredConfig>;
  readonly parents?: Readonly<Record<string, string>>;
  readonly cacheTtlMs?: number;
  readonly refusalMemoryMs?: number;
  readonly largestTickMs?: number;
  readonly requestTimeoutMs?: number;
  readonly maxShards?: number;
  readonly residence?: number;
  readonly maxUnderWay?: number;
}): BucketProcess {
  const {
    tableName,
    clock,
    config,
    cacheTtlMs = 60_000,
    largestTickMs = 1,
    requestTimeoutMs = 2000,
  } = options;
  const random = seededRandom(options.seed);
  const transport = new MeteredTransport(options.transport, { measureCapacity: true });
  const connection = new Connection({
    transport,
    tableName,
    clock,
    random,
    requestTimeoutMs,
    maxAttempts: 3,
  });
  const policies = new PolicyCache({
    read: async (keys) => Promise.all(keys.map(config)),
    nowMs: () => clock.now(),
    ttlMs: cacheTtlMs,
  });
  const images = new BucketImages();
  const parentOf = (entityId: string): string | undefined => options.parents?.[entityId];
  const families = new Families({
    read: async (id) => ({
      id,
      name: id,
      parentId: parentOf(id),
      cascade: parentOf(id) !== undefined,
      metadata: {},
      createdAt: new Date(0),
    }),
    clock,
    ttlMs: cacheTtlMs,
  });
  const counts = newCounts();
  const buckets = openBuckets({
    namespaceId: NAMESPACE_ID,
    connection,
    reader: new ItemReader(connection),
    images,
    ids: new OperationIds(random),
    policies,
    families,
    counts,
    admission: new Admission(options.maxUnderWay),
    assertActive: async () => {},
    refusalMemoryMs: options.refusalMemoryMs ?? 0,
    ttlMultiplier: 7,
    largestTickMs,
    maxShards: options.maxShards ?? 32,
    residence: options.residence,
  });
  return { buckets, policies, transport, counts, images };
}

/** A call on one bucket. */
export function requestFor(
  entityId: string,
  amounts: Amounts,
  {
    resource = "r",
    override,
  }: { readonly resource?: string; readonly override?: ConsumeRequest["override"] } = {},
): ConsumeRequest {
  return { entityId, charges: [{ resource, amounts }], override };
}

/** Consumes what must be granted. */
export async function granted(
  { buckets }: BucketProcess,
  request: ConsumeRequest,
): Promise<Receipt> {
  const outcome = await buckets.consume(request);
  if (!outcome.granted) throw new Error("refused");
  return outcome.receipt;
}
