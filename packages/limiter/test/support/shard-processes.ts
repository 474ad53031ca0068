import { Limit, RateLimiter, type AcquireRequest, type BucketState } from "zae-limiter";
import type { DynamoOptions, DynamoRepository } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { beforeEach, vi } from "vitest";
import type { AttributeMap } from "../../src/repository/dynamodb/transport/attribute-values.ts";
import type { Engine } from "./engine.ts";
import type { Fault, ProxiedRequest } from "./fault-proxy.ts";
import { useProxiedTable, type ProxiedTable } from "./proxied-table.ts";

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
  /**
   * What was sent meanwhile: the operation and, of a write to a bucket, its entity and shard, such
   * as `UpdateItem e#1`.
   */
  readonly sentBy: (work: () => Promise<unknown>) => Promise<readonly string[]>;
  /** The items of all buckets of an entity, by shard. */
  readonly items: (entityId?: string) => Promise<readonly AttributeMap[]>;
  /** A second in which others make so many writes to a shard. */
  readonly busySecond: (shard: number, units: number, entityId?: string) => Promise<void>;
}

/** Every process has another name, whichever test it is in. */
let processes = 0;

/** Registers the hooks that give each test its table and its clock. */
export function useShards(engine: () => Engine): ShardProcesses {
  const table = useProxiedTable(engine);
  let nowMs = 0;
  // Nobody waits: a pause before a repetition would last until a test moves the clock.
  const clock = { now: () => nowMs, sleep: async () => {} };
  beforeEach(() => {
    nowMs = Date.now();
  });
  const items: ShardProcesses["items"] = async (entityId = "e") => {
    const found = (await table.items())
      .map((item) => ({ item, key: keyText(item) }))
      .filter(({ key }) => key.includes(`/BUCKET#${entityId}#`));
    return found
      .toSorted((left, right) => shardIn(left.key) - shardIn(right.key))
      .map(({ item }) => item);
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
    open: async (home = 0, options = {}) => {
      const repository = await table.open("app", { clock, random: residentOf(home), ...options });
      return { repository, limiter: new RateLimiter({ repository }) };
    },
    sentBy: async (work) => {
      const before = table.proxy.seen.length;
      await work();
      return table.proxy.seen.slice(before).map(described);
    },
  };
}

/**
 * Chance that makes a process live on one shard, however many there are: the lowest bits of its
 * residence are given.
 */
function residentOf(home: number): () => number {
  processes += 1;
  const random = seededRandom(processes);
  return () => (Math.floor(random() * 1024) * 64 + home + 0.5) / 2 ** 16;
}

/** Earns a token a day: within a test, what is taken and given is all that moves. */
export function slow(capacity: number): Limit {
  return Limit.custom({ name: "tpm", capacity, refillAmount: 1, refillPeriodSeconds: 86_400 });
}

/** A call on the one bucket that most tests of shards are about. */
export function call(consume: Record<string, number>, entityId = "e"): AcquireRequest {
  return { entityId, resource: "r", consume };
}

/** Takes, and keeps it. */
export async function take(
  limiter: RateLimiter,
  consume: Record<string, number>,
  entityId?: string,
): Promise<void> {
  await (await limiter.acquire(call(consume, entityId))).commit();
}

/** Waits for splits that nobody waits for. */
export async function splitsOf({ repository }: ShardProcess, count: number): Promise<void> {
  await vi.waitUntil(() => repository.getStatistics().splits >= count, {
    timeout: 10_000,
    interval: 1,
  });
}

/** What the first so many writes to a bucket suffer, by the end of its key. */
export function suffering(
  fault: Fault,
  keyEnd: string,
  count = Infinity,
): (request: ProxiedRequest) => Fault | undefined {
  let left = count;
  return ({ input }) =>
    keyText((input["Key"] ?? {}) as AttributeMap).endsWith(keyEnd) && left-- > 0
      ? fault
      : undefined;
}

/** What each shard of a bucket holds of one limit, in millitokens, as stored. */
export function storedMilli(buckets: readonly BucketState[], limitName: string): readonly number[] {
  return buckets
    .filter((bucket) => bucket.limitName === limitName)
    .map(({ tokensMilli }) => tokensMilli);
}

function described({ operation, input }: ProxiedRequest): string {
  const name = /\/BUCKET#([^#]+)#[^#]+#(\d+)$/.exec(keyText((input["Key"] ?? {}) as AttributeMap));
  return name === null ? operation : `${operation} ${name[1]}#${name[2]}`;
}

function keyText({ PK }: AttributeMap): string {
  return PK !== undefined && "S" in PK ? PK.S : "";
}

function shardIn(key: string): number {
  return Number(key.slice(key.lastIndexOf("#") + 1));
}
