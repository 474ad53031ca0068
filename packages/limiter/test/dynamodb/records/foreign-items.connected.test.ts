/*
 * Policies of AWS bind a tenant to the keys of its own items. What an item says about indexes is
 * its own affair: here a tenant files all that it has under the partitions of another one.
 */
import { expect, it } from "vitest";
import { Limit, RateLimiter, type Repository } from "zae-limiter";
import type { AttributeMap } from "../../../src/repository/dynamodb/transport/attribute-values.ts";
import { ManualClock } from "zae-limiter/testing";
import { take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { heartbeatItem, usageItem } from "../../support/usage-item.ts";

const RPM = [Limit.perDay("rpm", 10)];
const HOUR_MS = 3_600_000;

describeWithEngine("items that another tenant filed under one's own partitions", (engine) => {
  const table = useProxiedTable(engine);

  it("are not seen, whatever is listed, and not deleted", async () => {
    const clock = new ManualClock(Date.now());
    const victim = await table.open("victim", { clock });
    const intruder = await table.open("intruder", { clock });
    await fill(victim, "mine");
    await fill(intruder, "theirs");
    const before = await getEverything(victim);
    expect(JSON.stringify(before)).toContain("mine");
    const filed = (await table.items()).filter((item) =>
      toText(item, "PK").startsWith(intruder.namespaceId),
    );
    expect(filed.length).toBeGreaterThan(6);
    for (const item of filed) await fileUnder(victim.namespaceId, intruder.namespaceId, item);
    expect(await getEverything(victim)).toEqual(before);
    await victim.deleteEntity("mine-child");
    const operator = await table.open("operator", { clock });
    await operator.deleteNamespace("victim");
    await operator.purgeNamespace(victim.namespaceId);
    const left = (await table.items()).map((item) => toText(item, "PK"));
    expect(filed.filter((item) => !left.includes(toText(item, "PK")))).toEqual([]);
    expect(left.filter((key) => key.startsWith(victim.namespaceId))).toEqual([]);
  });

  /** Limits, a child of "parent", a bucket of each, and usage, all with the tenant's own names. */
  async function fill(repository: Repository, name: string): Promise<void> {
    const nowMs = Date.now();
    await repository.ensureEntity("parent");
    await repository.createEntity(`${name}-child`, { parentId: "parent", cascade: true });
    await repository.setSystemDefaults(RPM);
    await repository.setResourceDefaults(`${name}-resource`, RPM);
    await repository.setLimits(`${name}-child`, RPM, { resource: "r" });
    await repository.setLimits(`${name}-child`, RPM, { resource: `${name}-resource` });
    await take(new RateLimiter({ repository }), { rpm: 1 }, `${name}-child`);
    const row = {
      entityId: `${name}-child`,
      resource: "r",
      window: "hourly",
      windowStartMs: Math.floor(nowMs / HOUR_MS) * HOUR_MS,
      counters: { rpm: 1 },
      requests: 1,
    } as const;
    const expiry = Math.floor(nowMs / 1000) + 86_400;
    await table.raw("PutItem", { Item: usageItem(repository.namespaceId, row, expiry) });
    await table.raw("PutItem", { Item: heartbeatItem(nowMs) });
  }

  async function fileUnder(to: string, from: string, item: AttributeMap): Promise<void> {
    const Item = Object.fromEntries(
      Object.entries(item).map(([name, value]) =>
        /^GSI\d[PS]K$/.test(name) && "S" in value
          ? [name, { S: value.S.replace(from, to) }]
          : [name, value],
      ),
    );
    await table.raw("PutItem", { Item });
  }
});

function toText(item: AttributeMap, attribute: string): string {
  const value = item[attribute];
  return value !== undefined && "S" in value ? value.S : "";
}

async function getEverything(repository: Repository): Promise<object> {
  return {
    children: await repository.getChildren("parent"),
    entities: await repository.listEntities({ limit: 1 }),
    more: await repository.listEntities(),
    defaults: await repository.listResourcesWithDefaults(),
    configured: await repository.listResourcesWithEntityConfigs(),
    limited: await repository.listEntitiesWithCustomLimits("r"),
    buckets: await repository.getBuckets("mine-child"),
    capacity: (await repository.getResourceCapacity("r", "rpm")).entities,
    usage: (await repository.getUsageSnapshots({ resource: "r" })).items,
  };
}
