import type { Amounts } from "../../src/core/amounts.ts";
import type { ConfigKey } from "../../src/core/bucket/policy.ts";
import { PolicyCache } from "../../src/repository/policy-cache.ts";
import type { ConsumeRequest, MaybePromise, Receipt } from "../../src/repository/port.ts";
import type { StoredConfig } from "../../src/repository/store.ts";
import type { Clock } from "../../src/repository/system-clock.ts";
import { OverloadGuard } from "../../src/repository/dynamodb/acquire/bounds.ts";
import { DynamoBuckets } from "../../src/repository/dynamodb/buckets.ts";
import {
  newCounts,
  type BucketCounts,
} from "../../src/repository/dynamodb/write/write-observer.ts";
import { Connection } from "../../src/repository/dynamodb/table/connection.ts";
import { Expiring } from "../../src/repository/dynamodb/cache/expiring.ts";
import { ItemReader } from "../../src/repository/dynamodb/table/item-reader.ts";
import { SharedRequests } from "../../src/repository/dynamodb/table/shared-requests.ts";
import { KnownBuckets } from "../../src/repository/dynamodb/cache/known-buckets.ts";
import { OperationIds } from "../../src/repository/dynamodb/write/operation-ids.ts";
import { type DynamoTransport } from "../../src/repository/dynamodb/transport/transport.ts";
import { MeteredTransport } from "./metered-transport.ts";
import { seededRandom } from "../../src/testing/fakes/seeded-random.ts";

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
  readonly known: KnownBuckets;
}

/** Opens a process. */
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
  readonly homeNumber?: number | undefined;
  /** @default true */
  readonly shareRequests?: boolean;
  /** Called for each write of a bucket that has been decided, with its partition key. */
  readonly onDecision?: (item: string) => void;
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
    clock,
    ttlMs: cacheTtlMs,
  });
  const reader = new ItemReader(connection);
  const known = new KnownBuckets(reader, clock);
  const expiring = { clock, ttlMs: cacheTtlMs };
  const counts = newCounts();
  const buckets = new DynamoBuckets({
    namespaceId: NAMESPACE_ID,
    connection,
    requests: new WatchedRequests(
      { connection, reader, isOn: options.shareRequests ?? true },
      options.onDecision,
    ),
    reader,
    known,
    ids: new OperationIds(random),
    policies,
    configTtlMs: cacheTtlMs,
    entities: new Expiring({
      ...expiring,
      read: async (id) => ({ parentId: options.parents?.[id], buckets: new Map() }),
    }),
    counts,
    overload: new OverloadGuard(options.maxUnderWay),
    active: new Expiring({ ...expiring, read: async (id) => id }),
    refusalMemoryMs: options.refusalMemoryMs ?? 0,
    ttlMultiplier: 7,
    largestTickMs,
    maxShards: options.maxShards ?? 32,
    homeNumber: options.homeNumber,
  });
  return { buckets, policies, transport, counts, known };
}

/** Reports each write before it may wait for a request. */
class WatchedRequests extends SharedRequests {
  readonly #onDecision: ((item: string) => void) | undefined;

  constructor(
    options: ConstructorParameters<typeof SharedRequests>[0],
    onDecision: ((item: string) => void) | undefined,
  ) {
    super(options);
    this.#onDecision = onDecision;
  }

  override send(
    ...[write, options]: Parameters<SharedRequests["send"]>
  ): ReturnType<SharedRequests["send"]> {
    if (!options.isRetry) this.#onDecision?.(write.key.text);
    return super.send(write, options);
  }
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
  return { entityId, resources: [{ resource, amounts }], override };
}

/** Consumes what must be granted. */
export async function grant({ buckets }: BucketProcess, request: ConsumeRequest): Promise<Receipt> {
  const outcome = await buckets.consume(request);
  if (!outcome.granted) throw new Error("refused");
  return outcome.receipt;
}
