import assert from "node:assert/strict";
import { EntityNotFoundError, ValidationError } from "zae-limiter";
import { call, failsWith, footprint, KEY, readLeft, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Entities that are created only if they are missing, and entities that change. */
export const entityChangesTopic: Topic = (test) => {
  test("ensuring creates what is missing, and returns what exists unchanged", async (world) => {
    const { repository } = world;
    await repository.createEntity("project");
    const options = { name: "Ada", parentId: "project", cascade: true, metadata: { plan: "gold" } };
    const created = await repository.ensureEntity(KEY, options);
    assert.deepEqual(created, { id: KEY, ...options, createdAt: new Date(world.clock.now()) });
    await world.pass(1000);
    assert.deepEqual(await repository.ensureEntity(KEY, { name: "Bob" }), created);
    assert.deepEqual(await repository.getEntity(KEY), created);
    const { items } = await repository.getAuditEvents(KEY);
    assert.deepEqual(
      items.map(({ action }) => action),
      ["entity_created"],
    );
  });

  test("of several concurrent calls that ensure one entity, one creates it", async ({
    repository,
  }) => {
    const answers = await Promise.all(
      ["a", "b", "c", "d"].map((name) => repository.ensureEntity(KEY, { name })),
    );
    const stored = await repository.getEntity(KEY);
    for (const answer of answers) assert.deepEqual(answer, stored);
    assert.equal((await repository.getAuditEvents(KEY)).items.length, 1);
  });

  test("ensuring checks its options, also those of an entity that exists", async (world) => {
    const { repository } = world;
    const unknown = await failsWith(EntityNotFoundError, () =>
      repository.ensureEntity(KEY, { parentId: "project" }),
    );
    assert.equal(unknown.entityId, "project");
    await repository.createEntity(KEY);
    const before = await footprint(repository);
    for (const options of [{ name: "" }, { parentId: KEY }, { cascade: 1 }, { principal: "a b" }])
      await failsWith(ValidationError, () => repository.ensureEntity(KEY, options as object));
    assert.deepEqual(await footprint(repository), before);
  });

  test("an update changes what it names, and leaves the rest", async (world) => {
    const { repository } = world;
    await repository.createEntity("project");
    const created = await repository.createEntity(KEY, {
      name: "Ada",
      parentId: "project",
      cascade: true,
      metadata: { plan: "gold", region: "eu" },
    });
    await world.pass(1000);
    const renamed = await repository.updateEntity(KEY, { name: "Bob" });
    assert.deepEqual(renamed, { ...created, name: "Bob" });
    assert.deepEqual(await repository.getEntity(KEY), renamed);
    const changed = await repository.updateEntity(KEY, { metadata: { plan: "" }, cascade: false });
    assert.deepEqual(changed, { ...renamed, metadata: { plan: "" }, cascade: false });
    assert.deepEqual(await repository.getEntity(KEY), changed);
    assert.deepEqual(await repository.getChildren("project"), [changed]);
  });

  test("concurrent updates of different fields all stay, each with its event", async (world) => {
    const { repository } = world;
    await repository.createEntity(KEY, { metadata: { plan: "gold" } });
    await Promise.all([
      repository.updateEntity(KEY, { name: "Ada" }),
      repository.updateEntity(KEY, { metadata: { plan: "silver" } }),
      repository.updateEntity(KEY, { cascade: true }),
    ]);
    const { name, metadata, cascade } = (await repository.getEntity(KEY))!;
    assert.deepEqual([name, metadata, cascade], ["Ada", { plan: "silver" }, true]);
    assert.equal((await repository.getAuditEvents(KEY)).items.length, 4);
  });

  test("the event of an update has the principal, and the values before and after", async (world) => {
    const { repository } = world;
    if (!repository.capabilities.auditLogging) return;
    await repository.createEntity(KEY, { name: "Ada", metadata: { plan: "gold" } });
    await world.pass(5);
    await repository.updateEntity(KEY, {
      name: "Bob",
      metadata: { region: "eu" },
      principal: "ops",
    });
    await repository.updateEntity(KEY, { cascade: true });
    const [second, first] = (await repository.getAuditEvents(KEY)).items;
    assert.deepEqual(second?.details, { before: { cascade: false }, after: { cascade: true } });
    assert.equal(first?.action, "entity_updated");
    assert.equal(first.principal, "ops");
    assert.deepEqual(first.timestamp, new Date(world.clock.now()));
    assert.deepEqual(first.details, {
      before: { name: "Ada", metadata: { plan: "gold" } },
      after: { name: "Bob", metadata: { region: "eu" } },
    });
  });

  test("of concurrent updates of one field, each event names the value that it replaced", async ({
    repository,
  }) => {
    await repository.createEntity(KEY, { name: "0" });
    await Promise.all(["1", "2", "3"].map((name) => repository.updateEntity(KEY, { name })));
    const { items } = await repository.getAuditEvents(KEY);
    const updates = items
      .filter(({ action }) => action === "entity_updated")
      .map(({ details }) => details as Record<"before" | "after", { readonly name: string }>);
    let name = "0";
    for (let count = 0; count < 3; count += 1)
      name = updates.find(({ before }) => before.name === name)?.after.name ?? "missing";
    assert.equal(name, (await repository.getEntity(KEY))?.name, JSON.stringify(updates));
  });

  test("an update of an unknown entity, of no field or of the parent throws and changes nothing", async ({
    repository,
  }) => {
    await repository.setSystemDefaults([RPM]);
    const before = await footprint(repository);
    const error = await failsWith(EntityNotFoundError, () =>
      repository.updateEntity(KEY, { name: "Ada" }),
    );
    assert.equal(error.entityId, KEY);
    assert.deepEqual(await footprint(repository), before);
    await repository.createEntity("project");
    await repository.createEntity(KEY);
    const created = await footprint(repository);
    const bad: unknown[] = [
      undefined,
      {},
      { principal: "ops" },
      { parentId: "project" },
      { name: "Ada", parentId: "project" },
      { name: "" },
      { metadata: { plan: 5 } },
      { cascade: "yes" },
      { name: "Ada", principal: "bad one" },
    ];
    for (const options of bad)
      await failsWith(
        ValidationError,
        () => repository.updateEntity(KEY, options as object),
        JSON.stringify(options),
      );
    assert.match(
      (await failsWith(ValidationError, () => repository.updateEntity(KEY, bad[3] as object)))
        .message,
      /parentId.*cannot be changed yet/,
    );
    assert.deepEqual(await footprint(repository), created);
  });

  test("a changed cascade holds for the next call, and a lease gives back where it took", async (world) => {
    const { repository, limiter } = world;
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project" });
    const alone = await limiter.acquire(call({ rpm: 10, tpm: 100 }));
    await repository.updateEntity(KEY, { cascade: true });
    const both = await limiter.acquire(call({ rpm: 1, tpm: 50 }));
    assert.deepEqual(await readLeft(world, "project"), { rpm: 99, tpm: 950 });
    alone.settle({ tpm: 200 });
    await alone.commit();
    assert.deepEqual(await readLeft(world, "project"), { rpm: 99, tpm: 950 });
    await repository.updateEntity(KEY, { cascade: false });
    await take(world, { rpm: 1 });
    assert.deepEqual(await readLeft(world, "project"), { rpm: 99, tpm: 950 });
    await both.rollback();
    assert.deepEqual(await readLeft(world, "project"), { rpm: 100, tpm: 1000 });
    assert.deepEqual(await readLeft(world), { rpm: 89, tpm: 800 });
  });
};
