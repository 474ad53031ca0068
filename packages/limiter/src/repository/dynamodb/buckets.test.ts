import { describe, expect, it } from "vitest";
import { bucketProcess, requestFor } from "../../../test/support/bucket-process.ts";
import { buildBucket } from "../../../test/support/proxied-table.ts";
import { fullBucket } from "../../core/bucket/bucket.ts";
import { RateLimiterUnavailable } from "../../core/errors.ts";
import { Limit } from "../../core/limit.ts";
import { buildPolicy } from "../../core/bucket/policy.ts";
import { shardPolicy } from "../../core/bucket/shares.ts";
import { mostRequests } from "./acquire/bounds.ts";
import { MAX_OVERTAKEN } from "./write/bucket-writer.ts";
import { bucketAttributes } from "./items/bucket-item.ts";
import { bucketKey, keyAttributes } from "./items/bucket-key.ts";
import { marshalItem, type AttributeMap } from "./transport/attribute-values.ts";
import type { DynamoTransport } from "./transport/transport.ts";

const NOW_MS = 1_800_000_000_000;
const MAX_ATTEMPTS = 3;
const LIMIT = Limit.perMinute("tpm", 64_000);

/** A store that the adversary answers for. */
interface Adversary {
  readonly shards: number;
  readonly write: (item: AttributeMap | undefined) => Promise<object>;
  /** What becomes of each statement of a shared request. */
  readonly statement?: object;
}

describe("the bound of one acquire", () => {
  it.each<[string, Adversary, number]>([
    ["whose every write is overtaken", { shards: 1, write: overtake }, 13],
    ["that is throttled forever", { shards: 1, write: throttled }, 2 * MAX_ATTEMPTS],
    ["that never gets an answer", { shards: 1, write: reset }, 2 * MAX_ATTEMPTS],
    ["whose shards are always emptied by others", { shards: 32, write: emptied }, Infinity],
    ["whose shards are all throttled", { shards: 8, write: throttled }, Infinity],
  ])("holds for a call %s", async (_, adversary, expected) => {
    const requests = await countRequests(adversary, ["e"]);
    expect(requests).toBeLessThanOrEqual(mostRequests(adversary.shards) * MAX_ATTEMPTS);
    expect(requests).toBeLessThanOrEqual(expected);
    expect(requests).toBeGreaterThan(1);
  });

  it.each<[string, Adversary, number]>([
    ["whose every write is overtaken", { shards: 1, write: overtake }, MAX_OVERTAKEN],
    ["that is throttled forever", { shards: 1, write: throttled }, MAX_ATTEMPTS],
    ["that never gets an answer", { shards: 1, write: reset }, MAX_ATTEMPTS],
  ])("holds three times over for a charge %s", async (_, adversary, once) => {
    expect(await countRequests(adversary, ["e"], "charge")).toBe(1 + 3 * once);
  });

  // One read of both buckets. Then each write is a shared request, and a read of both items; or one
  // shared request in all, and all attempts of each alone. What was throttled is read once more.
  it.each<[string, Adversary, number]>([
    [
      "whose every write is overtaken",
      { shards: 1, write: overtake, statement: fail("ConditionalCheckFailed") },
      1 + 2 * MAX_OVERTAKEN,
    ],
    [
      "that are throttled forever",
      { shards: 1, write: throttled, statement: fail("ThrottlingError") },
      3 + 2 * MAX_ATTEMPTS,
    ],
    [
      "that are always invalid together, and overtaken alone",
      { shards: 1, write: overtake, statement: fail("ValidationError") },
      2 + 2 * MAX_OVERTAKEN,
    ],
  ])("holds for two calls %s, in shared requests", async (_, adversary, expected) => {
    const requests = await countRequests(adversary, ["e", "f"]);
    expect(requests).toBe(expected);
    expect(requests).toBeLessThanOrEqual(mostRequests(adversary.shards) * MAX_ATTEMPTS);
  });
});

/** What acquires send until they give up; what they send in the background does not count. */
async function countRequests(
  { shards, write, statement }: Adversary,
  entities: readonly string[],
  method: "consume" | "charge" = "consume",
): Promise<number> {
  const transport: DynamoTransport = {
    call: async (operation, input) => {
      if (operation === "BatchGetItem") return read(input as BatchGet, shards);
      if (operation === "BatchExecuteStatement")
        return { Responses: (input as { Statements: [] }).Statements.map(() => statement) };
      const key = (input as { readonly Key?: AttributeMap }).Key;
      return write(key === undefined ? undefined : buildItem(key, shards));
    },
    close: () => {},
  };
  const process = bucketProcess({
    transport,
    tableName: "t",
    clock: { now: () => NOW_MS, sleep: async () => {} },
    seed: 1,
    config: () => ({ limits: [LIMIT] }),
    maxShards: shards,
  });
  await Promise.all(
    entities.map((entityId) =>
      expect(process.buckets[method](requestFor(entityId, { tpm: 1 }))).rejects.toThrow(
        RateLimiterUnavailable,
      ),
    ),
  );
  return process.transport.counts().requests;
}

function fail(Code: string): object {
  return { Error: { Code } };
}

let writes = 1;

/** Another process was faster: the condition fails, and the item is another one than was seen. */
async function overtake(item: AttributeMap | undefined): Promise<never> {
  throw failure("ConditionalCheckFailedException", { Item: item });
}

/** The same, and nothing is left; a later read finds the shard full again. */
async function emptied(item: AttributeMap | undefined): Promise<never> {
  if (item === undefined)
    throw failure("TransactionCanceledException", {
      CancellationReasons: [{ Code: "ConditionalCheckFailed" }],
    });
  throw failure("ConditionalCheckFailedException", {
    Item: { ...item, b_tpm_tk: { N: "0" } },
  });
}

async function throttled(): Promise<never> {
  throw failure("ThrottlingException", {
    throttlingReasons: [{ reason: "TableWriteKeyRangeThroughputExceeded" }],
  });
}

async function reset(): Promise<never> {
  throw failure("Error", { code: "ECONNRESET" });
}

function failure(name: string, parts: object): Error {
  return Object.assign(new Error(name), { name, ...parts });
}

interface BatchGet {
  readonly RequestItems: { readonly t: { readonly Keys: readonly AttributeMap[] } };
}

function read({ RequestItems }: BatchGet, shards: number): object {
  const items = RequestItems.t.Keys.map((key) => buildItem(key, shards));
  return { Responses: { t: items } };
}

/** A full shard; each time it is looked at, others have written it in between. */
function buildItem(primary: AttributeMap, shards: number): AttributeMap {
  writes += 1;
  const { entityId, shard } = buildBucket(primary)!;
  const policy = shardPolicy(buildPolicy([LIMIT], "system"), shard, shards);
  const key = bucketKey({ namespaceId: "ns123456789", entityId, resource: "r", shard }, undefined);
  return marshalItem({
    ...keyAttributes(key),
    ...bucketAttributes(fullBucket(policy.bucketLimits, NOW_MS)),
    sv: 1,
    cr: "other.0001",
    gr: 1,
    b_wcu_tc: writes,
    shard_count: shards,
  });
}
