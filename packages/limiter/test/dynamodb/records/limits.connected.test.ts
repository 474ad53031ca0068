import { expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const RPM = Limit.perMinute("rpm", 10);
const TPM = Limit.perHour("tpm", 1000, { burst: 5000 });
const DAY_MS = 86_400_000;

describeWithEngine("limits on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it("limits are stored in the wire format, in whole tokens and seconds", async () => {
    const repository = await table.open();
    await repository.setLimits("e", [TPM, RPM], { resource: "gpt" });
    const { Item } = await table.raw<{ Item: object }>("GetItem", {
      Key: { PK: { S: `${repository.namespaceId}/ENTITY#e` }, SK: { S: "#CONFIG#gpt" } },
    });
    expect(Item).toMatchObject({
      entity_id: { S: "e" },
      resource: { S: "gpt" },
      l_tpm_cp: { N: "5000" },
      l_tpm_ra: { N: "1000" },
      l_tpm_rp: { N: "3600" },
      l_rpm_cp: { N: "10" },
      GSI3PK: { S: `${repository.namespaceId}/ENTITY_CONFIG#gpt` },
      GSI3SK: { S: "e" },
      GSI4PK: { S: repository.namespaceId },
    });
    expect(await repository.getLimits("e", { resource: "gpt" })).toEqual([TPM, RPM]);
  });

  it("limits of many entities are set at once without contending for a registry [W-63]", async () => {
    const repository = await table.open();
    const ids = Array.from({ length: 40 }, (_, index) => `e${String(index).padStart(2, "0")}`);
    table.proxy.decide = script("TransactWriteItems", [
      "conflict",
      undefined,
      "conflict",
      "throttle",
    ]);
    await Promise.all(ids.map(async (id) => repository.setLimits(id, [RPM], { resource: "gpt" })));
    const first = await repository.listEntitiesWithCustomLimits("gpt", { limit: 25 });
    const second = await repository.listEntitiesWithCustomLimits("gpt", {
      limit: 25,
      cursor: first.cursor!,
    });
    expect([...first.items, ...second.items]).toEqual(ids);
    expect(second.cursor).toBeUndefined();
    const keys = table.proxy.seen.flatMap(
      ({ input }) =>
        (input["TransactItems"] as { Put?: { Item: { SK: { S: string } } } }[] | undefined) ?? [],
    );
    expect(keys.some(({ Put }) => /RESOURCES/.test(Put?.Item.SK.S ?? ""))).toBe(false);
  });

  it("limits may be set for resources that are named like attributes [W-63]", async () => {
    const repository = await table.open();
    const resources = ["GSI4PK", "PK", "SK", "ttl"];
    for (const resource of resources) {
      await repository.setResourceDefaults(resource, [RPM]);
      await repository.setLimits("e", [TPM], { resource });
    }
    expect(await repository.listResourcesWithDefaults()).toEqual(resources);
    expect(await repository.listResourcesWithEntityConfigs()).toEqual(resources);
    for (const resource of resources) {
      expect(await repository.getResourceDefaults(resource)).toEqual([RPM]);
      await repository.deleteResourceDefaults(resource);
      await repository.deleteLimits("e", { resource });
    }
    expect(await repository.listResourcesWithDefaults()).toEqual([]);
    expect(await repository.listResourcesWithEntityConfigs()).toEqual([]);
  });

  it("the resources that entities have limits for are found with one small query each", async () => {
    const repository = await table.open();
    const resources = ["a", "a-b", "a/b", "b"];
    for (const resource of resources)
      for (const id of ["e1", "e2", "e3"]) await repository.setLimits(id, [RPM], { resource });
    const before = table.proxy.seen.length;
    expect(await repository.listResourcesWithEntityConfigs()).toEqual(resources);
    expect(
      table.proxy.seen.slice(before).filter(({ operation }) => operation === "Query"),
    ).toHaveLength(resources.length + 1);
  });

  it("limits and settings of the system level are stored apart, and neither erases the other [W-62]", async () => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const repository = await table.open("app", { clock });
    await repository.setSystemDefaults([RPM], { auditRetentionDays: 7, onUnavailable: "allow" });
    await repository.setSystemDefaults([TPM]);
    expect(await repository.getSystemDefaults()).toEqual({
      limits: [TPM],
      onUnavailable: "allow",
      auditRetentionDays: 7,
      usageRetentionDays: 90,
    });
    const other = await table.open("app", { clock });
    await other.createEntity("e");
    const { Items } = await table.raw<{ Items: { PK: { S: string }; ttl?: { N: string } }[] }>(
      "Scan",
    );
    const event = Items.find(({ PK }) => PK.S.endsWith("/AUDIT#e"));
    expect(Number(event!.ttl!.N) * 1000).toBe(clock.now() + 7 * DAY_MS);
  });
});
