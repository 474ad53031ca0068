import { expect, it } from "vitest";
import {
  EntityExistsError,
  EntityNotFoundError,
  Limit,
  RateLimiter,
  RateLimiterUnavailable,
  ValidationError,
} from "zae-limiter";
import { usageItem } from "../../support/usage-item.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { keysOf, useProxiedTable } from "../../support/proxied-table.ts";

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

  it("an entity with an unknown parent is not created at all", async () => {
    const repository = await table.open();
    const before = keysOf(await table.items());
    await expect(repository.createEntity("e", { parentId: "nobody" })).rejects.toThrow(
      EntityNotFoundError,
    );
    expect(keysOf(await table.items())).toEqual(before);
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

  it("entities are listed page by page, undisturbed by what else they have", async () => {
    const repository = await table.open();
    for (const id of ["b", "a", "c"]) {
      await repository.createEntity(id);
      for (const resource of ["r1", "r2", "r3"])
        await repository.setLimits(id, [RPM], { resource });
    }
    const first = await repository.listEntities({ limit: 2 });
    expect(first.items.map(({ id }) => id)).toEqual(["a", "b"]);
    const second = await repository.listEntities({ limit: 2, cursor: first.cursor! });
    expect(second).toMatchObject({ items: [{ id: "c" }], cursor: undefined });
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
    const left = keysOf(await table.items()).filter(
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
