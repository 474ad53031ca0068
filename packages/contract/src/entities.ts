import assert from "node:assert/strict";
import { EntityExistsError, EntityNotFoundError, ValidationError } from "zae-limiter";
import { call, failsWith, footprint, KEY, readLeft, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Entities and their parents. */
export const entitiesTopic: Topic = (test) => {
  test("an entity reads back as it was created", async ({ repository, clock }) => {
    await repository.createEntity("project");
    const created = await repository.createEntity("user:1@example.com", {
      name: "Ada's key",
      parentId: "project",
      cascade: true,
      metadata: { plan: "gold", constructor: "odd", empty: "" },
    });
    assert.deepEqual(created, {
      id: "user:1@example.com",
      name: "Ada's key",
      parentId: "project",
      cascade: true,
      metadata: { plan: "gold", constructor: "odd", empty: "" },
      createdAt: new Date(clock.now()),
    });
    assert.deepEqual(await repository.getEntity("user:1@example.com"), created);
  });

  test("omitted fields have their defaults", async ({ repository, clock }) => {
    assert.deepEqual(await repository.createEntity(KEY), {
      id: KEY,
      name: KEY,
      parentId: undefined,
      cascade: false,
      metadata: {},
      createdAt: new Date(clock.now()),
    });
    assert.equal(await repository.getEntity("other"), undefined);
    assert.deepEqual(await repository.getChildren("other"), []);
  });

  test("an entity is created once", async ({ repository }) => {
    await repository.createEntity(KEY, { name: "first" });
    const before = await footprint(repository);
    const error = await failsWith(EntityExistsError, () =>
      repository.createEntity(KEY, { name: "second" }),
    );
    assert.equal(error.entityId, KEY);
    assert.deepEqual(await footprint(repository), before);
  });

  test("of several concurrent creations of one entity, one succeeds", async ({ repository }) => {
    const answers = await Promise.allSettled(
      ["a", "b", "c"].map((name) => repository.createEntity(KEY, { name })),
    );
    assert.equal(answers.filter(({ status }) => status === "fulfilled").length, 1);
    for (const answer of answers)
      if (answer.status === "rejected") assert.ok(answer.reason instanceof EntityExistsError);
    assert.equal((await repository.getAuditEvents(KEY)).items.length, 1);
  });

  test("a parent must exist, and an entity cannot be its own parent", async ({ repository }) => {
    const before = await footprint(repository);
    const unknown = await failsWith(EntityNotFoundError, () =>
      repository.createEntity(KEY, { parentId: "project" }),
    );
    assert.equal(unknown.entityId, "project");
    await failsWith(ValidationError, () => repository.createEntity(KEY, { parentId: KEY }));
    assert.deepEqual(await footprint(repository), before);
  });

  test("an entity that has children cannot be deleted", async ({ repository }) => {
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project" });
    assert.deepEqual(
      (await repository.getChildren("project")).map(({ id }) => id),
      [KEY],
    );
    await failsWith(ValidationError, () => repository.deleteEntity("project"));
    assert.notEqual(await repository.getEntity("project"), undefined);
    await repository.deleteEntity(KEY);
    assert.deepEqual(await repository.getChildren("project"), []);
    await repository.deleteEntity("project");
    assert.equal(await repository.getEntity("project"), undefined);
  });

  test("deleting an entity takes its limits and buckets with it", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([RPM]);
    await repository.createEntity(KEY);
    await repository.setLimits(KEY, [TPM]);
    await repository.setLimits(KEY, [TPM], { resource: MODEL });
    await take(world, { tpm: 600 });
    await repository.deleteEntity(KEY);
    assert.deepEqual(await repository.getBuckets(KEY), []);
    assert.deepEqual(await repository.getLimits(KEY), []);
    assert.deepEqual(await repository.getLimits(KEY, { resource: MODEL }), []);
    assert.deepEqual(await repository.listResourcesWithEntityConfigs(), []);
    assert.equal((await repository.resolveLimits(KEY, MODEL))?.source, "system");
    assert.deepEqual(await readLeft(world), { rpm: 100 });
  });

  test("deleting an entity that does not exist throws", async ({ repository }) => {
    assert.equal(
      (await failsWith(EntityNotFoundError, () => repository.deleteEntity(KEY))).entityId,
      KEY,
    );
    await repository.createEntity(KEY);
    await repository.deleteEntity(KEY);
    await failsWith(EntityNotFoundError, () => repository.deleteEntity(KEY));
  });

  test("a lease that ends after its entity was deleted leaves no bucket behind", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.repository.createEntity(KEY);
    const settled = await world.limiter.acquire(call({ rpm: 1 }));
    const undone = await world.limiter.acquire(call({ rpm: 1 }));
    await world.repository.deleteEntity(KEY);
    settled.settle({ tpm: 500 });
    await settled.commit();
    await undone.rollback();
    assert.deepEqual(await world.repository.getBuckets(KEY), []);
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 1000 });
  });

  test("an entity that is created again starts fresh", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    await take(world, { rpm: 10 });
    await world.repository.deleteEntity(KEY);
    await world.repository.createEntity(KEY, { name: "again" });
    await take(world, { rpm: 1 });
    assert.deepEqual(await readLeft(world), { rpm: 99 });
    assert.deepEqual(await readLeft(world, "project"), { rpm: 90 });
  });

  test("refuses names and metadata that are not valid text", async ({ repository }) => {
    const before = await footprint(repository);
    const bad: unknown[] = [
      { name: "" },
      { name: 5 },
      { name: "x".repeat(2000) },
      { cascade: "yes" },
      { metadata: { plan: 5 } },
      { metadata: [] },
      { metadata: null },
      { parentId: "a#b" },
      { principal: "bad one" },
    ];
    for (const options of bad)
      await failsWith(
        ValidationError,
        () => repository.createEntity(KEY, options as object),
        JSON.stringify(options).slice(0, 40),
      );
    assert.deepEqual(await footprint(repository), before);
  });
};
