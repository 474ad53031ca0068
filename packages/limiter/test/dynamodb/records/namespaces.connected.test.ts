import { expect, it, vi } from "vitest";
import {
  Limit,
  NamespaceNotFoundError,
  NamespaceStateError,
  RateLimiter,
  RateLimiterUnavailable,
} from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { usageItem } from "../../support/usage-item.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script, type Fault } from "../../support/fault-proxy.ts";
import { listKeys, useProxiedTable } from "../../support/proxied-table.ts";

const RPM = Limit.perMinute("rpm", 10);

describeWithEngine("namespaces on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it.each<[Fault, boolean]>([
    ["lost-request", false],
    ["lost-reply", true],
    ["throttle", false],
    ["conflict", false],
  ])(
    "a change of state that suffers %s happens whole or not at all, and can be tried again [W-61]",
    async (fault, applied) => {
      const repository = await table.open("app", { maxAttempts: 1 });
      const id = await repository.registerNamespace("tenant");

      table.proxy.decide = script("TransactWriteItems", [fault]);
      await expect(repository.deleteNamespace("tenant")).rejects.toThrow(RateLimiterUnavailable);
      expect(await readState(repository, id)).toBe(applied ? "deleted" : "active");
      await repository.deleteNamespace("tenant");
      expect(await readState(repository, id)).toBe("deleted");

      table.proxy.decide = script("TransactWriteItems", [fault]);
      await expect(repository.recoverNamespace(id)).rejects.toThrow(RateLimiterUnavailable);
      expect(await readState(repository, id)).toBe(applied ? "active" : "deleted");
      if (!applied) expect(await repository.recoverNamespace(id)).toBe("tenant");
      expect(await readState(repository, id)).toBe("active");
    },
  );

  it("a namespace is registered once by processes that do it together", async () => {
    const repositories = await Promise.all([table.open(), table.open(), table.open()]);
    expect(new Set(repositories.map(({ namespaceId }) => namespaceId)).size).toBe(1);
    const ids = await Promise.all(
      repositories.map(async (repository) => repository.registerNamespace("tenant")),
    );
    expect(new Set(ids).size).toBe(1);
  });

  it("a purge removes a namespace completely, and nothing else", async () => {
    const operator = await table.open();
    const tenant = await table.open("tenant");
    for (const repository of [operator, tenant]) await fill(repository);
    await table.raw("PutItem", {
      Item: usageItem(
        tenant.namespaceId,
        {
          entityId: "c",
          resource: "r",
          window: "daily",
          windowStartMs: 0,
          counters: {},
          requests: 1,
        },
        9e9,
      ),
    });
    const all = listKeys(await table.items());
    const ofTenant = all.filter(
      (key) =>
        key.startsWith(`${tenant.namespaceId}/`) ||
        key.includes(tenant.namespaceId) ||
        key.endsWith("#tenant"),
    );
    await expect(operator.purgeNamespace(tenant.namespaceId)).rejects.toThrow(NamespaceStateError);
    await operator.deleteNamespace("tenant");
    const progress: number[] = [];
    await operator.purgeNamespace(tenant.namespaceId, {
      onProgress: (count) => progress.push(count),
    });
    const left = listKeys(await table.items()).filter((key) => !key.includes("#AUDIT#"));
    expect(left).toEqual(all.filter((key) => !ofTenant.includes(key) && !key.includes("#AUDIT#")));
    expect(progress.at(-1)).toBe(ofTenant.length - 2);
    expect(await operator.listOrphanNamespaces()).toEqual([]);
  });

  it("a purge that was interrupted is completed by the next one [W-61]", async () => {
    const operator = await table.open("app", { maxAttempts: 1 });
    const tenant = await table.open("tenant");
    await Promise.all(
      Array.from({ length: 80 }, async (_, index) => tenant.createEntity(`e${index}`)),
    );
    const { namespaceId } = tenant;
    await operator.deleteNamespace("tenant");
    table.proxy.decide = script("BatchWriteItem", [undefined, "half-unprocessed", "internal"]);
    await expect(operator.purgeNamespace(namespaceId)).rejects.toThrow(RateLimiterUnavailable);
    expect(await operator.listOrphanNamespaces()).toMatchObject([
      { namespaceId, status: "purging" },
    ]);
    await expect(operator.recoverNamespace(namespaceId)).rejects.toThrow(NamespaceStateError);

    const stopped = new Error("stop");
    const controller = new AbortController();
    controller.abort(stopped);
    await expect(operator.purgeNamespace(namespaceId, { signal: controller.signal })).rejects.toBe(
      stopped,
    );

    await operator.purgeNamespace(namespaceId);
    expect(listKeys(await table.items()).filter((key) => key.includes(namespaceId))).toEqual([]);
    expect(await operator.listOrphanNamespaces()).toEqual([]);
  });

  it("a purge removes a namespace however much it holds", async () => {
    const operator = await table.open();
    const { namespaceId } = await table.open("tenant");
    const count = 1010;
    for (let start = 0; start < count; start += 25) {
      const requests = Array.from({ length: Math.min(25, count - start) }, (_, index) => {
        const Item = {
          PK: { S: `${namespaceId}/X#${start + index}` },
          SK: { S: "#X" },
          GSI4PK: { S: namespaceId },
          GSI4SK: { S: "X" },
        };
        return { PutRequest: { Item } };
      });
      await table.raw("BatchWriteItem", { RequestItems: { [operator.tableName]: requests } });
    }
    await operator.deleteNamespace("tenant");
    const progress: number[] = [];
    await operator.purgeNamespace(namespaceId, { onProgress: (deleted) => progress.push(deleted) });
    expect(progress).toEqual([500, 1000, 1010]);
    expect(listKeys(await table.items()).filter((key) => key.includes(namespaceId))).toEqual([]);
  });

  it("a process that has a purged namespace open is granted nothing, on a bucket that it knows, a new one and one of another entity", async () => {
    const operator = await table.open();
    const running = await table.open("tenant");
    await running.setSystemDefaults([RPM]);
    const limiter = new RateLimiter({ repository: running, onUnavailable: "allow" });
    const acquire = async (entityId: string, resource = "r"): Promise<void> =>
      limiter.acquire({ entityId, resource, consume: { rpm: 1 } }, async () => {});
    await acquire("e");
    const open = await limiter.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 } });
    await limiter.available("e", "seen");
    await operator.deleteNamespace("tenant");
    await acquire("e");
    await operator.purgeNamespace(running.namespaceId);
    await expect(acquire("e")).rejects.toThrow(NamespaceNotFoundError);

    // Each process finds out by itself, whatever it asks for first.
    const firsts: ((limiter: RateLimiter) => Promise<unknown>)[] = [
      (each) => each.acquire({ entityId: "e", resource: "seen", consume: { rpm: 1 } }),
      (each) => each.acquire({ entityId: "e", resource: "new", consume: { rpm: 1 } }),
      (each) => each.acquire({ entityId: "new", resource: "r", consume: { rpm: 1 } }),
      (each) => each.charge({ entityId: "e", resource: "r", amounts: { rpm: 1 } }),
      (each) => each.charge({ entityId: "new", resource: "r", amounts: { rpm: 1 } }),
    ];
    const ids: string[] = [];
    for (const [index, first] of firsts.entries()) {
      const repository = await table.open(`tenant-${index}`);
      await repository.setSystemDefaults([RPM]);
      const each = new RateLimiter({ repository, onUnavailable: "allow" });
      await each.acquire({ entityId: "e", resource: "r", consume: { rpm: 1 } }, async () => {});
      await each.available("e", "seen");
      await operator.deleteNamespace(`tenant-${index}`);
      await operator.purgeNamespace(repository.namespaceId);
      await expect(first(each), `call ${index}`).rejects.toThrow(NamespaceNotFoundError);
      ids.push(repository.namespaceId);
    }
    // What was granted before ends without a trace.
    await open.commit();
    for (const id of [...ids, running.namespaceId])
      expect(listKeys(await table.items()).filter((key) => key.includes(id))).toEqual([]);
  });

  it("a call that met a bucket which is purged before it writes does not bring it back", async () => {
    const [operator, other, running] = [
      await table.open(),
      await table.open("tenant"),
      await table.open("tenant", { shareRequests: false }),
    ];
    await other.setSystemDefaults([RPM]);
    const request = { entityId: "e", resource: "r", consume: { rpm: 1 } };
    await new RateLimiter({ repository: other }).acquire(request, async () => {});
    table.proxy.decide = ({ operation }) =>
      operation === "UpdateItem" ? { delayMs: 500 } : undefined;
    const seen = table.proxy.seen.length;
    const acquiring = new RateLimiter({ repository: running }).acquire(request);
    const refused = expect(acquiring).rejects.toThrow(NamespaceNotFoundError);
    const isWriting = (): boolean =>
      table.proxy.seen.slice(seen).some(({ operation }) => operation === "UpdateItem");
    await vi.waitUntil(isWriting);
    await operator.deleteNamespace("tenant");
    await operator.purgeNamespace(running.namespaceId);
    await refused;
    const left = listKeys(await table.items());
    expect(left.filter((key) => key.includes(running.namespaceId))).toEqual([]);
  });

  it("a purge that is run again removes what was written behind its back, but never the registry", async () => {
    const operator = await table.open();
    const { namespaceId } = await table.open("tenant");
    await operator.deleteNamespace("tenant");
    await operator.purgeNamespace(namespaceId);
    const late = { S: `${namespaceId}/ENTITY#e` };
    await table.raw("PutItem", {
      Item: { PK: late, SK: { S: "#LATE" }, GSI4PK: { S: namespaceId }, GSI4SK: late },
    });
    const progress: number[] = [];
    const onProgress = (deleted: number): void => void progress.push(deleted);
    await operator.purgeNamespace(namespaceId, { onProgress });
    await operator.purgeNamespace(namespaceId, { onProgress });
    expect(progress).toEqual([1]);
    const purges = (await operator.getAuditEvents("$SYSTEM")).items;
    expect(purges.filter(({ action }) => action === "namespace_purged")).toHaveLength(2);

    const before = listKeys(await table.items());
    await operator.purgeNamespace("_");
    expect(listKeys(await table.items())).toEqual(before);
  });

  it("a namespace whose record is missing, but which has a name, is not purged", async () => {
    const operator = await table.open();
    const tenant = await table.open("tenant");
    await tenant.setSystemDefaults([RPM]);
    const { namespaceId } = tenant;
    await table.raw("DeleteItem", {
      Key: { PK: { S: "_/SYSTEM#" }, SK: { S: `#NSID#${namespaceId}` } },
    });
    const before = listKeys(await table.items());
    await expect(operator.purgeNamespace(namespaceId)).rejects.toThrow(NamespaceStateError);
    expect(listKeys(await table.items())).toEqual(before);
  });

  it("namespaces index every item that they write, so that a purge finds it [W-61]", async () => {
    await fill(await table.open());
    for (const item of await table.items())
      expect([item["GSI4PK"], item["GSI4SK"]], JSON.stringify(item["SK"])).toEqual([
        { S: expect.any(String) },
        { S: expect.any(String) },
      ]);
  });
});

/** Writes one item of every kind. */
async function fill(repository: DynamoRepository): Promise<void> {
  await repository.createEntity("p");
  await repository.createEntity("c", { parentId: "p", cascade: true });
  await repository.setSystemDefaults([RPM]);
  await repository.setResourceDefaults("r", [RPM]);
  await repository.setLimits("c", [RPM], { resource: "r" });
  await repository.putProvisionerState({
    ...(await repository.getProvisionerState()),
    managedResources: Array.from({ length: 500 }, (_, index) => `resource-${index}`),
  });
  await new RateLimiter({ repository }).acquire(
    { entityId: "c", resource: "r", consume: { rpm: 1 } },
    async () => {},
  );
}

/** The state of the namespace named tenant, as both of its items say. */
async function readState(repository: DynamoRepository, namespaceId: string): Promise<string> {
  const active = (await repository.listNamespaces()).find(
    (info) => info.namespaceId === namespaceId,
  );
  const orphan = (await repository.listOrphanNamespaces()).find(
    (info) => info.namespaceId === namespaceId,
  );
  const named = await repository.getNamespace("tenant");
  // The item by name and the item by id always agree.
  expect(named?.namespaceId).toBe(active?.namespaceId);
  return active?.status ?? orphan?.status ?? "none";
}
