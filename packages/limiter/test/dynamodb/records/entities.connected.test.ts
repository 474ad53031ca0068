import { expect, it } from "vitest";
import {
  EntityExistsError,
  EntityNotFoundError,
  Limit,
  RateLimiter,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { usageItem } from "../../support/usage-item.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { listKeys, useProxiedTable } from "../../support/proxied-table.ts";

const RPM = Limit.perMinute("rpm", 10);

describeWithEngine("entities on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it("entities are stored in the wire format, with the event of their creation", async () => {
    const repository = await table.open();
    await repository.createEntity("parent");
    await repository.createEntity("child", {
      name: "A child",
      parentId: "parent",
      cascade: true,
      metadata: { plan: "pro" },
    });
    const { Item } = await table.raw<{ Item: object }>("GetItem", {
      Key: { PK: { S: `${repository.namespaceId}/ENTITY#child` }, SK: { S: "#META" } },
    });
    expect(Item).toMatchObject({
      entity_id: { S: "child" },
      name: { S: "A child" },
      parent_id: { S: "parent" },
      cascade: { BOOL: true },
      metadata: { M: { plan: { S: "pro" } } },
      GSI1PK: { S: `${repository.namespaceId}/PARENT#parent` },
      GSI1SK: { S: "CHILD#child" },
      GSI4PK: { S: repository.namespaceId },
      GSI4SK: { S: `${repository.namespaceId}/ENTITY#child` },
    });
    expect((await repository.getAuditEvents("child")).items.map(({ action }) => action)).toEqual([
      "entity_created",
    ]);
  });

  it("an entity is created once although the answer was lost", async () => {
    const repository = await table.open();
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    await repository.createEntity("e");
    expect((await repository.getAuditEvents("e")).items).toHaveLength(1);
    await expect(repository.createEntity("e")).rejects.toThrow(EntityExistsError);
  });

  it("an update sends only the fields that it changes, together with its event, once", async () => {
    const repository = await table.open();
    await repository.createEntity("e", { name: "Ada", metadata: { plan: "gold" } });
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    const all = await table.sentDuring(async () => repository.updateEntity("e", { name: "Bob" }));
    const sent = all.find(({ operation }) => operation === "TransactWriteItems");
    const [change, event, ...others] = (
      sent!.input as { TransactItems: Record<"Update" | "Put", Record<string, unknown>>[] }
    ).TransactItems;
    expect(others).toEqual([]);
    expect(change!.Update["UpdateExpression"]).toBe("SET #n1=:v1");
    expect(change!.Update["ExpressionAttributeNames"]).toEqual({ "#n0": "PK", "#n1": "name" });
    expect(event!.Put).toMatchObject({ Item: { action: { S: "entity_updated" } } });
    expect(await repository.getEntity("e")).toMatchObject({
      name: "Bob",
      metadata: { plan: "gold" },
    });
    expect((await repository.getAuditEvents("e")).items).toHaveLength(2);
  });

  it("an entity that another client stored without metadata or cascade can be updated", async () => {
    const repository = await table.open();
    await repository.createEntity("e");
    await table.raw("UpdateItem", {
      Key: { PK: { S: `${repository.namespaceId}/ENTITY#e` }, SK: { S: "#META" } },
      UpdateExpression: "REMOVE metadata, #cascade",
      ExpressionAttributeNames: { "#cascade": "cascade" },
    });
    const change = { metadata: { plan: "gold" }, cascade: true };
    expect(await repository.updateEntity("e", change)).toMatchObject(change);
    expect(await repository.getEntity("e")).toMatchObject(change);
  });

  it("a changed cascade reaches other processes within the cache time", async () => {
    const clock = new ManualClock();
    const configCacheTtlMs = 60_000;
    const [here, there] = [
      await table.open("app", { clock, configCacheTtlMs }),
      await table.open("app", { clock, configCacheTtlMs }),
    ];
    await here.setSystemDefaults([Limit.perDay("rpm", 10)]);
    await here.createEntity("project");
    await here.createEntity("e", { parentId: "project" });
    const limiter = new RateLimiter({ repository: there });
    const take = (): Promise<unknown> =>
      limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 } }, () => {});
    const takenFromProject = async (): Promise<number | undefined> =>
      (await here.getBuckets("project"))[0]?.totalConsumedMilli;
    await take();
    await here.updateEntity("e", { cascade: true });
    await clock.advance(configCacheTtlMs);
    await take();
    expect(await takenFromProject()).toBe(1000);
    await here.updateEntity("e", { cascade: false });
    await clock.advance(configCacheTtlMs);
    await take();
    expect(await takenFromProject()).toBe(1000);
  });

  it("all children are listed, over all pages [W-60]", async () => {
    const repository = await table.open();
    await repository.createEntity("parent");
    // A page of an index holds one megabyte: thirty children of 50 kB are two.
    const metadata = Object.fromEntries(
      Array.from({ length: 50 }, (_, index) => [`key-${index}`, "x".repeat(1000)]),
    );
    const ids = Array.from({ length: 30 }, (_, index) => `child-${String(index).padStart(2, "0")}`);
    await Promise.all(
      ids.map(async (id) => repository.createEntity(id, { parentId: "parent", metadata })),
    );
    expect((await repository.getChildren("parent")).map(({ id }) => id)).toEqual(ids);
    await expect(repository.deleteEntity("parent")).rejects.toThrow(ValidationError);
  });

  it("entities are deleted with limits, buckets and registry, while usage and audit stay [W-59]", async () => {
    const repository = await table.open();
    const limiter = new RateLimiter({ repository });
    await repository.createEntity("e");
    await repository.setSystemDefaults([RPM]);
    const resources = Array.from({ length: 60 }, (_, index) => `resource-${index}`);
    await Promise.all(
      resources.map(async (resource) => repository.setLimits("e", [RPM], { resource })),
    );
    await Promise.all(
      resources
        .slice(0, 30)
        .map(async (resource) =>
          limiter.acquire({ entityId: "e", resource, consume: { rpm: 3 } }, async () => {}),
        ),
    );
    const row = {
      entityId: "e",
      resource: "r",
      window: "hourly",
      windowStartMs: 0,
      counters: {},
      requests: 1,
    } as const;
    await table.raw("PutItem", { Item: usageItem(repository.namespaceId, row, 9_999_999_999) });

    table.proxy.decide = script("BatchWriteItem", [
      "half-unprocessed",
      "unprocessed",
      "half-unprocessed",
      "throttle",
    ]);
    await repository.deleteEntity("e");

    const ns = repository.namespaceId;
    const left = listKeys(await table.items()).filter(
      (key) => key.startsWith(`${ns}/ENTITY#e`) || key.startsWith(`${ns}/BUCKET#`),
    );
    expect(left).toEqual([`${ns}/ENTITY#e #USAGE#hourly#1970-01-01T00:00:00Z#r`]);
    expect(await repository.listResourcesWithEntityConfigs()).toEqual([]);
    expect((await repository.getAuditEvents("e")).items[0]).toMatchObject({
      action: "entity_deleted",
      details: { recordsDeleted: 91 },
    });
    expect(await limiter.available("e", "resource-0")).toEqual({ rpm: 10 });
    await expect(repository.deleteEntity("e")).rejects.toThrow(EntityNotFoundError);
  });

  it("reads of many ask again for what a busy table left unprocessed", async () => {
    const repository = await table.open();
    await repository.setSystemDefaults([RPM]);
    const limiter = new RateLimiter({ repository });
    const ids = [..."abcde"];
    for (const entityId of ids)
      await limiter.acquire({ entityId, resource: "r", consume: { rpm: 1 } }, () => undefined);
    const faults = ["half-unprocessed", "unprocessed", "half-unprocessed", "throttle"] as const;
    table.proxy.decide = script("BatchGetItem", faults);
    const buckets = await repository.batchGetBuckets(ids, { resource: "r" });
    expect([...buckets.values()].map((states) => states[0]?.available)).toEqual([9, 9, 9, 9, 9]);
    table.proxy.decide = script("BatchGetItem", faults);
    const { items } = await repository.getResourceBuckets("r");
    expect(items.map(({ entityId }) => entityId)).toEqual(ids);
  });

  it("a deletion that was interrupted is completed by trying again", async () => {
    const repository = await table.open("app", { maxAttempts: 1 });
    await repository.createEntity("e");
    for (const resource of ["r1", "r2"]) await repository.setLimits("e", [RPM], { resource });
    table.proxy.decide = script("TransactWriteItems", ["lost-request"]);
    await expect(repository.deleteEntity("e")).rejects.toThrow(RateLimiterUnavailable);
    expect(await repository.getEntity("e")).toMatchObject({ id: "e" });
    await repository.deleteEntity("e");
    expect(await repository.getEntity("e")).toBeUndefined();
  });
});
