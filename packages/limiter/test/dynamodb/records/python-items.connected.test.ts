/*
 * What we do with items that the Python zae-limiter has put into a table of ours: the releases
 * 0.10.3 and 0.17.0 wrote them (`npm run bench:shared-table` runs both). What means the same is
 * read, and nothing else is: no item is read as something that it is not.
 */
import { beforeEach, expect, it } from "vitest";
import { IncompatibleSchemaError, Limit, RateLimiter } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { upgradeTable } from "@zae-limiter/upgrade";
import {
  marshalItem,
  type Value,
} from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

type Item = Readonly<Record<string, Value>>;

const CALLS = Limit.perDay("calls", 100);

describeWithEngine("items of the Python zae-limiter in a table of ours", (engine) => {
  const table = useProxiedTable(engine);
  let repository: DynamoRepository;
  let limiter: RateLimiter;

  beforeEach(async () => {
    repository = await table.open("app", { configCacheTtlMs: 0 });
    limiter = new RateLimiter({ repository });
  });

  const put = async (item: (namespaceId: string) => Item): Promise<void> =>
    void (await table.raw("PutItem", { Item: marshalItem(item(repository.namespaceId)) }));

  it.each([
    ["0.10.3", bucketOfPython],
    ["0.17.0", (ns: string) => ({ ...bucketOfPython(ns), pgen: 1794809211488, pinc: "a26c8461" })],
    ["of a settlement after the bucket was deleted", strayBalance],
  ])("a bucket is neither read nor written, whatever is asked for: %s", async (_, bucket) => {
    await repository.setSystemDefaults([CALLS], { onUnavailable: "allow" });
    await put(bucket);
    const before = await table.bucketItems();
    const call = { entityId: "key-1", resource: "gpt-4", consume: { calls: 1 } };
    for (const attempt of [
      () => limiter.acquire(call, () => "done"),
      () => limiter.available("key-1", "gpt-4"),
      () => repository.getBuckets("key-1"),
      () => repository.splitBucket?.("key-1", "gpt-4", { shards: 2 }),
    ]) {
      const error = await catchError(attempt);
      expect(error).toBeInstanceOf(IncompatibleSchemaError);
      expect(error.message).toBe(
        "The bucket of entity key-1 on resource gpt-4 was written by the Python zae-limiter, " +
          "which must not use this table any more. Stop it, then upgrade the bucket: " +
          "zae-limiter upgrade",
      );
    }
    expect(await table.bucketItems()).toEqual(before);
    expect(await limiter.acquire({ ...call, entityId: "key-2" }, () => "done")).toBe("done");
  });

  it("buckets become ours by an upgrade, which touches nothing else", async () => {
    await repository.setSystemDefaults([CALLS]);
    await limiter.acquire(
      { entityId: "key-2", resource: "gpt-4", consume: { calls: 1 } },
      () => {},
    );
    await put(bucketOfPython);
    const others = async (): Promise<readonly object[]> =>
      (await table.items()).filter((item) => !JSON.stringify(item).includes("BUCKET#key-1"));
    const [before, { place }] = [await others(), table];
    // There is nothing to copy, and the source of a copy is never changed.
    const copied = await table.open("app", { stack: `${place.stack}-2` });
    const into = copied.stackName;
    expect(await upgradeTable({ ...place, into })).toMatchObject({ migrations: [], counts: {} });
    const plan = await upgradeTable({ ...place, dryRun: true });
    expect(plan).toMatchObject({
      from: "1.0.0",
      to: "1.0.0",
      counts: { buckets: { changed: 1, unchanged: 0 } },
    });
    expect({ ...(await upgradeTable(place)), dryRun: true }).toEqual(plan);
    expect(await repository.getBuckets("key-1")).toMatchObject([
      { limitName: "calls", tokensMilli: 90_000, totalConsumedMilli: 10_000 },
    ]);
    expect(await others()).toEqual(before);
    expect(await upgradeTable(place)).toMatchObject({ migrations: [], counts: {} });
  });

  it("a balance that a settlement left where no bucket is any more goes with an upgrade", async () => {
    await repository.setSystemDefaults([CALLS]);
    await put(strayBalance);
    await upgradeTable(table.place);
    expect(await table.bucketItems()).toEqual([]);
    expect(await limiter.available("key-1", "gpt-4")).toEqual({ calls: 100 });
  });

  it("entities, limits and audit events are read as they are meant", async () => {
    for (const item of [entityOfPython, limitsOfPython, eventOfPython]) await put(item);
    expect(await repository.getEntity("key-1")).toMatchObject({
      id: "key-1",
      parentId: "project",
      cascade: false,
      createdAt: new Date("2026-11-16T06:06:49Z"),
    });
    expect((await repository.getChildren("project")).map(({ id }) => id)).toEqual(["key-1"]);
    expect(await repository.getLimits("key-1", { resource: "gpt-4" })).toEqual([CALLS]);
    expect(await limiter.available("key-1", "gpt-4")).toEqual({ calls: 100 });
    const { items } = await repository.getAuditEvents("key-1");
    expect(items).toMatchObject([{ eventId: EVENT_ID, action: "limits_set", resource: "gpt-4" }]);
  });

  it.each([
    ["l_calls_sched", "1|0 9 * * *|s0.5"],
    ["l_calls_rsched", "1|0 0 * * *"],
    ["l_calls_soft", true],
    ["w_calls_rsa", 18_000],
    ["disabled", "disabled"],
    ["cascade", true],
  ])("limits that mean more than we know are not read as less: %s", async (attribute, value) => {
    await put((ns) => ({ ...limitsOfPython(ns), [attribute]: value }));
    const call = { entityId: "key-1", resource: "gpt-4", consume: { calls: 1 } };
    for (const attempt of [
      () => limiter.acquire(call, () => {}),
      () => repository.getLimits("key-1", { resource: "gpt-4" }),
    ]) {
      const error = await catchError(attempt);
      expect(error).toBeInstanceOf(IncompatibleSchemaError);
      expect(error.message).toContain(`have '${attribute}', which the Python zae-limiter wrote`);
    }
    expect(await table.bucketItems()).toEqual([]);
    await repository.setLimits("key-1", [CALLS], { resource: "gpt-4" });
    expect(await limiter.available("key-1", "gpt-4")).toEqual({ calls: 100 });
  });
});

async function catchError(attempt: () => Promise<unknown> | undefined): Promise<Error> {
  return (await attempt()?.catch((error: unknown) => error)) as Error;
}

const EVENT_ID = "01M7HFE8GHMQR0HT5AMKJJA5TP";

function bucketOfPython(ns: string): Item {
  return {
    PK: `${ns}/BUCKET#key-1#gpt-4#0`,
    SK: "#STATE",
    GSI2PK: `${ns}/RESOURCE#gpt-4`,
    GSI2SK: "BUCKET#key-1#0",
    GSI3PK: `${ns}/ENTITY#key-1`,
    GSI3SK: "BUCKET#gpt-4#0",
    GSI4PK: ns,
    GSI4SK: "BUCKET#key-1#gpt-4#0",
    entity_id: "key-1",
    resource: "gpt-4",
    parent_id: "project",
    cascade: false,
    rf: 1794809209373,
    shard_count: 1,
    b_calls_tk: 90_000,
    b_calls_cp: 100_000,
    b_calls_ra: 100_000,
    b_calls_rp: 86_400_000,
    b_calls_tc: 10_000,
    b_wcu_tk: 991_000,
    b_wcu_cp: 1_000_000,
    b_wcu_ra: 1_000_000,
    b_wcu_rp: 1000,
    b_wcu_tc: 9000,
  };
}

/** What its unconditional adjustment leaves where there was no item; indexed here, to be listed. */
function strayBalance(ns: string): Item {
  const { PK, SK, GSI3PK, GSI3SK } = bucketOfPython(ns) as Record<string, string>;
  return { PK: PK!, SK: SK!, GSI3PK: GSI3PK!, GSI3SK: GSI3SK!, b_calls_tk: -500, b_calls_tc: 500 };
}

function entityOfPython(ns: string): Item {
  return {
    PK: `${ns}/ENTITY#key-1`,
    SK: "#META",
    GSI1PK: `${ns}/PARENT#project`,
    GSI1SK: "CHILD#key-1",
    GSI4PK: ns,
    GSI4SK: `${ns}/ENTITY#key-1`,
    entity_id: "key-1",
    name: "key-1",
    parent_id: "project",
    cascade: false,
    metadata: {},
    created_at: "2026-11-16T06:06:49Z",
  };
}

function limitsOfPython(ns: string): Item {
  return {
    PK: `${ns}/ENTITY#key-1`,
    SK: "#CONFIG#gpt-4",
    GSI3PK: `${ns}/ENTITY_CONFIG#gpt-4`,
    GSI3SK: "key-1",
    GSI4PK: ns,
    GSI4SK: `${ns}/ENTITY#key-1`,
    entity_id: "key-1",
    resource: "gpt-4",
    config_version: 1,
    l_calls_cp: 100,
    l_calls_ra: 100,
    l_calls_rp: 86_400,
  };
}

function eventOfPython(ns: string): Item {
  return {
    PK: `${ns}/AUDIT#key-1`,
    SK: `#AUDIT#${EVENT_ID}`,
    GSI4PK: ns,
    GSI4SK: `${ns}/AUDIT#key-1`,
    event_id: EVENT_ID,
    entity_id: "key-1",
    timestamp: "2026-11-16T06:06:49Z",
    action: "limits_set",
    principal: null,
    resource: "gpt-4",
    details: { limits: [{ name: "calls", capacity: 100 }] },
    ttl: 1802585209,
  };
}
