import assert from "node:assert/strict";
import { ValidationError } from "zae-limiter";
import { allPages, failsWith, KEY, MODEL, RPM } from "./calls.ts";
import type { Topic } from "./world.ts";

const IDS = Array.from({ length: 25 }, (_, index) => `key-${String(index).padStart(2, "0")}`);

/** Lists and their pages. */
export const listingsTopic: Topic = (test) => {
  test("pages contain all entities, each once", async ({ repository }) => {
    for (const id of IDS.toReversed()) await repository.createEntity(id);
    for (const limit of [1, 7, 25, 100]) {
      const found = await allPages((paging) => repository.listEntities(paging), limit);
      assert.deepEqual(found.map(({ id }) => id).sort(), IDS, `pages of ${limit}`);
    }
    assert.equal((await repository.listEntities()).items.length, 25);
  });

  test("a page stays correct when an earlier item is deleted", async ({ repository }) => {
    for (const id of IDS) await repository.createEntity(id);
    const first = await repository.listEntities({ limit: 10 });
    for (const { id } of first.items) await repository.deleteEntity(id);
    const rest = await repository.listEntities({ limit: 100, cursor: first.cursor! });
    const all = [...first.items, ...rest.items].map(({ id }) => id);
    assert.deepEqual(all.sort(), IDS);
  });

  test("children are listed completely", async ({ repository }) => {
    await repository.createEntity("project");
    for (const id of IDS) await repository.createEntity(id, { parentId: "project" });
    const children = await repository.getChildren("project");
    assert.deepEqual(children.map(({ id }) => id).sort(), IDS);
  });

  test("entities with limits of their own are listed by resource", async ({ repository }) => {
    for (const id of IDS) await repository.setLimits(id, [RPM], { resource: MODEL });
    await repository.setLimits("other", [RPM]);
    await repository.setLimits(KEY, [RPM], { resource: "search" });
    const found = await allPages(
      (paging) => repository.listEntitiesWithCustomLimits(MODEL, paging),
      10,
    );
    assert.deepEqual(found.toSorted(), IDS);
    assert.deepEqual((await repository.listEntitiesWithCustomLimits("_default_")).items, ["other"]);
    assert.deepEqual((await repository.listEntitiesWithCustomLimits("nothing")).items, []);
  });

  test("resources are listed while something is stored for them", async ({ repository }) => {
    await repository.setResourceDefaults("b", [RPM]);
    await repository.setResourceDefaults("a/x:y", [RPM]);
    assert.deepEqual([...(await repository.listResourcesWithDefaults())].sort(), ["a/x:y", "b"]);
    await repository.deleteResourceDefaults("b");
    assert.deepEqual(await repository.listResourcesWithDefaults(), ["a/x:y"]);
    await repository.setLimits(KEY, [RPM], { resource: "b" });
    await repository.setLimits("other", [RPM], { resource: "b" });
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), ["b"]);
    await repository.deleteLimits(KEY, { resource: "b" });
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), ["b"]);
    await repository.deleteLimits("other", { resource: "b" });
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), []);
  });

  test("refuses invalid page sizes and cursors", async ({ repository }) => {
    for (const limit of [0, -1, 1.5, Number.NaN, "5" as unknown as number])
      await failsWith(ValidationError, () => repository.listEntities({ limit }), `limit ${limit}`);
    for (const cursor of ["nonsense", "", 5 as unknown as string])
      await failsWith(
        ValidationError,
        () => repository.listEntities({ cursor }),
        `cursor ${cursor}`,
      );
    for (const id of ["key-1", "key-2"]) await repository.createEntity(id);
    const cursor = (await repository.listEntities({ limit: 1 })).cursor!;
    await failsWith(
      ValidationError,
      () => repository.listEntitiesWithCustomLimits("gpt-4", { cursor }),
      "another query's",
    );
    await failsWith(
      ValidationError,
      () => repository.getAuditEvents("key-1", { cursor }),
      "another query's",
    );
    await failsWith(
      ValidationError,
      () => repository.getUsageSnapshots({ entityId: "key-1", cursor }),
      "another query's",
    );
    await failsWith(ValidationError, () => repository.getUsageSnapshots({}));
    await failsWith(ValidationError, () =>
      repository.getUsageSummary({ entityId: KEY, window: "weekly" as "daily" }),
    );
    await failsWith(ValidationError, () =>
      repository.getUsageSummary({ entityId: KEY, start: new Date(Number.NaN) }),
    );
  });
};
