import { Limit, RateLimiter, type BucketState } from "zae-limiter";
import type { DynamoOptions, DynamoRepository } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { beforeEach, vi } from "vitest";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { Engine } from "./engine.ts";
import type { ProxiedRequest } from "./fault-proxy.ts";
import { call } from "./calls.ts";
import { buildBucket, useProxiedTable, type ProxiedTable } from "./proxied-table.ts";
import { writtenKeys } from "./written-items.ts";

/** One of several processes on a table. */
export interface ShardProcess {
  readonly repository: DynamoRepository;
  readonly limiter: RateLimiter;
}

/** Processes that share a table and a clock, each at home on a shard of the test's choice. */
export interface ShardProcesses {
  readonly table: ProxiedTable;
  readonly clock: { readonly now: () => number; readonly sleep: () => Promise<void> };
  /** Moves the clock that all processes share. */
  readonly advance: (ms: number) => void;
  readonly open: (home?: number, options?: DynamoOptions) => Promise<ShardProcess>;
  /** A full bucket that has been split, and a process at home on one of its shards. */
  readonly openSplit: (
    limit: Limit,
    options: DynamoOptions & { readonly shards: number; readonly home: number },
  ) => Promise<ShardProcess>;
  /**
   * What was sent meanwhile: the operation and, of a write to buckets, their entities and shards,
   * such as `UpdateItem e#1`.
   */
  readonly sentBy: (work: () => Promise<unknown>) => Promise<readonly string[]>;
  /** The items of all buckets of an entity, by shard. */
  readonly items: (entityId?: string) => Promise<readonly AttributeMap[]>;
  /** A second in which others make this many writes to a shard. */
  readonly busySecond: (shard: number, units: number, entityId?: string) => Promise<void>;
}

/** Every process has another name, whichever test it is in. */
let processes = 0;

/** Registers the hooks that give each test its table and its clock. */
export function useShards(engine: () => Engine): ShardProcesses {
  const table = useProxiedTable(engine);
  let nowMs = 0;
  // Sleeps end at once: otherwise a retry would wait until a test moves the clock.
  const clock = { now: () => nowMs, sleep: async () => {} };
  beforeEach(() => {
    nowMs = Date.now();
  });
  const items: ShardProcesses["items"] = async (entityId = "e") => table.bucketItems(entityId);
  const open: ShardProcesses["open"] = async (home = 0, options = {}) => {
    const repository = await table.open("app", { clock, random: buildResident(home), ...options });
    return { repository, limiter: new RateLimiter({ repository }) };
  };
  return {
    table,
    clock,
    advance: (ms) => {
      nowMs += ms;
    },
    items,
    busySecond: async (shard, units, entityId) => {
      const { PK, SK } = (await items(entityId))[shard]!;
      await table.raw("UpdateItem", {
        Key: { PK, SK },
        UpdateExpression: "ADD b_wcu_tc :units",
        ExpressionAttributeValues: { ":units": { N: String(units) } },
      });
      nowMs += 1000;
    },
    open,
    openSplit: async (limit, { shards, home, ...options }) => {
      const process = await open(home, options);
      await process.repository.setSystemDefaults([limit]);
      await (await process.limiter.acquire(call({ [limit.name]: 1 }))).rollback();
      await process.repository.splitBucket!("e", "r", { shards });
      // A process knows its shard after its first call to it.
      await (await process.limiter.acquire(call({ [limit.name]: 1 }))).rollback();
      return process;
    },
    sentBy: async (work) => (await table.sentDuring(work)).map(describe),
  };
}

/**
 * A random source that makes a process live on one shard, however many there are: the lowest bits
 * of its residence are given.
 */
function buildResident(home: number): () => number {
  processes += 1;
  const random = seededRandom(processes);
  return () => (Math.floor(random() * 1024) * 64 + home + 0.5) / 2 ** 16;
}

/** Earns a token a day: within a test, balances change only by calls. */
export function slow(capacity: number): Limit {
  return Limit.custom({ name: "tpm", capacity, refillAmount: 1, refillPeriodSeconds: 86_400 });
}

/** Waits for splits in the background. */
export async function listSplits({ repository }: ShardProcess, count: number): Promise<void> {
  await vi.waitUntil(() => repository.getStatistics().splits >= count, {
    timeout: 10_000,
    interval: 1,
  });
}

/** Whether a request writes to one shard of a bucket. */
export function writesShard(
  { operation, input }: ProxiedRequest,
  shard: number,
  entityId = "e",
): boolean {
  return writtenKeys(operation, input).some(({ PK }) =>
    PK.S.endsWith(`/BUCKET#${entityId}#r#${shard}`),
  );
}

/** The sum of what shards have. */
export function sum(numbers: readonly (number | undefined)[]): number {
  return numbers.reduce<number>((total, number) => total + number!, 0);
}

/** What each shard of a bucket holds of one limit, in millitokens, as stored. */
export function getStoredMilli(
  buckets: readonly BucketState[],
  limitName: string,
): readonly number[] {
  return buckets
    .filter((bucket) => bucket.limitName === limitName)
    .map(({ tokensMilli }) => tokensMilli);
}

function describe({ operation, input }: ProxiedRequest): string {
  if (operation === "PutItem" || operation === "TransactWriteItems") return operation;
  const buckets = writtenKeys(operation, input).flatMap((key) => buildBucket({ ...key }) ?? []);
  return [operation, ...buckets.map(({ entityId, shard }) => `${entityId}#${shard}`)].join(" ");
}
