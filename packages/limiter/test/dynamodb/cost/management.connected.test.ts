import { expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import { describeWithEngine, freshTableName } from "../../support/engine.ts";
import { expectOnPage, HEADER, openAccount } from "./account.ts";

const MODEL = "gpt-4o-mini1";
const LIMITS = ["rpmx", "tpmx"].map((name) => Limit.perMinute(name, 1_000_000));
const ENTITIES = Array.from({ length: 600 }, (_, index) => `entity-${index}`.padEnd(20, "-"));
const HUNDRED = ENTITIES.slice(0, 100);

describeWithEngine("the guide's page on cost", (engine) => {
  it("the page says what management, listings and reads of many cost", async () => {
    const clock = new ManualClock(Date.UTC(2030, 0, 1));
    const { repository, limiter, transport, row } = await openAccount(engine(), {
      clock,
      stack: freshTableName(),
    });
    const rows: (readonly string[])[] = [];
    const measure = async (operation: string, work: () => Promise<unknown>): Promise<void> => {
      rows.push(await row(operation, work));
    };
    await repository.setSystemDefaults(undefined, { auditRetentionDays: 30 });
    await measure("`setSystemDefaults`", () => repository.setSystemDefaults(LIMITS));
    await measure("`setResourceDefaults`", () => repository.setResourceDefaults(MODEL, LIMITS));
    await measure("`createEntity`", () => repository.createEntity("parent"));
    const child = { parentId: "parent", cascade: true };
    await measure("`createEntity` with a parent", () => repository.createEntity("child", child));
    await measure("`updateEntity`", () => repository.updateEntity("child", { name: "Ada" }));
    await measure("`getEntity`", () => repository.getEntity("child"));
    await measure("`setLimits`", () => repository.setLimits("child", LIMITS, { resource: MODEL }));
    await measure("`getLimits`, or `getLevel`", () => repository.getLimits("child"));
    await measure("`resolveLimits`, nothing in the cache", () =>
      repository.resolveLimits("child", MODEL),
    );
    const use = (entityId: string): Promise<void> =>
      limiter.acquire({ entityId, resource: MODEL, consume: { rpmx: 1 } }, () => undefined);
    await use("child");
    await measure("`getBuckets` of an entity with one bucket", () =>
      repository.getBuckets("child"),
    );
    await measure("`getBuckets` of one resource", () =>
      repository.getBuckets("child", { resource: MODEL }),
    );
    await measure("`getBucket`", () => repository.getBucket("child", MODEL));
    expect(transport.counts().byOperation).toEqual({ GetItem: 1 });
    await measure("`deleteLimits`", () => repository.deleteLimits("child", { resource: MODEL }));
    await repository.setLimits("child", LIMITS);
    await measure("`deleteEntity` with a bucket and limits at one level", () =>
      repository.deleteEntity("child"),
    );
    await measure("`getAuditEvents`, seven events", () => repository.getAuditEvents("child"));

    for (const entityId of HUNDRED) await repository.createEntity(entityId, child);
    for (const entityId of HUNDRED) await repository.setLimits(entityId, LIMITS);
    for (let start = 0; start < ENTITIES.length; start += 50)
      await Promise.all(ENTITIES.slice(start, start + 50).map(use));
    await measure("`listEntities`, a page of 100", () => repository.listEntities());
    await measure("`getChildren`, 100 of them", () => repository.getChildren("parent"));
    await measure("`listEntitiesWithCustomLimits`, a page of 100", () =>
      repository.listEntitiesWithCustomLimits("_default_"),
    );
    await measure("`listResourcesWithDefaults`, one resource", () =>
      repository.listResourcesWithDefaults(),
    );
    await measure("`batchGetLevels` of 100 levels", () =>
      repository.batchGetLevels(HUNDRED.map((entityId) => ({ entityId }))),
    );
    await measure("`batchGetBuckets` of 100 entities on one resource", () =>
      repository.batchGetBuckets(HUNDRED, { resource: MODEL }),
    );
    await measure("`batchGetBuckets` of 100 entities on all resources", () =>
      repository.batchGetBuckets(HUNDRED),
    );
    await measure("`getResourceBuckets`, a page of 100", () =>
      repository.getResourceBuckets(MODEL),
    );
    await measure("`getResourceCapacity`, 601 buckets", () =>
      repository.getResourceCapacity(MODEL, "rpmx"),
    );
    await repository.splitBucket!(ENTITIES[0]!, MODEL, { shards: 4 });
    await measure("`batchGetBuckets` of 100 entities, one with four shards", () =>
      repository.batchGetBuckets(HUNDRED, { resource: MODEL }),
    );
    await repository.close();
    // DynamoDB Local counts units of transactions and of missing items in its own way.
    expectOnPage(["call", ...HEADER.slice(1)], rows, engine().name === "dynoxide" ? 6 : 3);
  });
});
