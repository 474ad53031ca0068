import assert from "node:assert/strict";
import { InvalidIdentifierError, type Repository, ValidationError } from "zae-limiter";
import { allPages, failsWith, KEY, MODEL, RPM, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

const DAY_MS = 86_400_000;

/** The audit trail: who changed what, and when. */
export const auditTopic: Topic = (test) => {
  test("every change of an entity and of its limits is recorded, newest first", async (world) => {
    const { repository } = world;
    if (!repository.capabilities.auditLogging) return;
    await repository.createEntity(KEY, { name: "Ada", principal: "ops" });
    await repository.setLimits(KEY, [RPM], { principal: "ops" });
    await world.pass(5);
    await repository.setLimits(KEY, [TPM], {
      resource: MODEL,
      principal: "arn:aws:iam::123456789012:role/ops",
    });
    await repository.deleteLimits(KEY, { resource: MODEL });
    await repository.deleteEntity(KEY);
    const { items } = await repository.getAuditEvents(KEY);
    assert.deepEqual(
      items.map(({ action, principal, resource }) => [action, principal, resource]),
      [
        ["entity_deleted", undefined, undefined],
        ["limits_deleted", undefined, MODEL],
        ["limits_set", "arn:aws:iam::123456789012:role/ops", MODEL],
        ["limits_set", "ops", "_default_"],
        ["entity_created", "ops", undefined],
      ],
    );
    const ids = items.map(({ eventId }) => eventId);
    assert.deepEqual(ids, ids.toSorted().toReversed(), "ULIDs sort by time");
    assert.equal(new Set(ids).size, 5);
    for (const id of ids) assert.match(id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
    assert.deepEqual(items[0]!.timestamp, new Date(world.clock.now()));
    assert.deepEqual(items[4]!.timestamp, new Date(world.clock.now() - 5));
    for (const { entityId } of items) assert.equal(entityId, KEY);
  });

  test("changes of resource and system defaults are filed under their pseudo entities", async ({
    repository,
  }) => {
    if (!repository.capabilities.auditLogging) return;
    await repository.setResourceDefaults(MODEL, [RPM], { principal: "ops" });
    await repository.deleteResourceDefaults(MODEL, { principal: "ops" });
    await repository.setSystemDefaults([RPM], { principal: "root" });
    await repository.deleteSystemDefaults();
    const resource = await repository.getAuditEvents(`$RESOURCE:${MODEL}`);
    assert.deepEqual(
      resource.items.map(({ action, principal }) => [action, principal]),
      [
        ["limits_deleted", "ops"],
        ["limits_set", "ops"],
      ],
    );
    assert.deepEqual(
      (await readSystemEvents(repository))
        .slice(0, 2)
        .map(({ action, principal }) => [action, principal]),
      [
        ["limits_deleted", undefined],
        ["limits_set", "root"],
      ],
    );
    assert.deepEqual(
      resource.items[1]!.details["limits"],
      [RPM],
      "the event contains what was set",
    );
  });

  test("changes of namespaces are recorded", async ({ repository }) => {
    if (!repository.capabilities.auditLogging) return;
    const namespaceId = await repository.registerNamespace("tenant-a");
    await repository.registerNamespace("tenant-a");
    await repository.deleteNamespace("tenant-a");
    await repository.recoverNamespace(namespaceId);
    await repository.deleteNamespace("tenant-a");
    await repository.purgeNamespace(namespaceId);
    const events = (await readSystemEvents(repository)).filter(
      ({ details }) => details["namespaceId"] === namespaceId,
    );
    assert.deepEqual(
      events.map(({ action }) => action),
      [
        "namespace_purged",
        "namespace_deleted",
        "namespace_recovered",
        "namespace_deleted",
        "namespace_registered",
      ],
    );
  });

  test("pages list all events from the newest to the oldest, each once", async (world) => {
    const { repository } = world;
    if (!repository.capabilities.auditLogging) return;
    for (let capacity = 1; capacity <= 23; capacity += 1) {
      await repository.setLimits(KEY, [{ ...RPM, capacity }]);
      if (capacity % 4 === 0) await world.pass(1);
    }
    const events = await allPages((paging) => repository.getAuditEvents(KEY, paging), 5);
    const capacities = events.map(
      ({ details }) => (details["limits"] as readonly { readonly capacity: number }[])[0]!.capacity,
    );
    assert.deepEqual(
      capacities,
      Array.from({ length: 23 }, (_, index) => 23 - index),
    );
  });

  test("events are kept 90 days, or as long as the system defaults say", async (world) => {
    const { repository } = world;
    if (!repository.capabilities.auditLogging) return;
    await repository.createEntity(KEY);
    await world.pass(89 * DAY_MS);
    assert.equal((await repository.getAuditEvents(KEY)).items.length, 1);
    await repository.setLimits(KEY, [RPM]);
    await world.pass(2 * DAY_MS);
    assert.deepEqual(await actions(repository), ["limits_set"]);
    await repository.setSystemDefaults([RPM], { auditRetentionDays: 10 });
    await repository.deleteLimits(KEY);
    await world.pass(9 * DAY_MS);
    assert.ok((await actions(repository)).includes("limits_deleted"));
    await world.pass(2 * DAY_MS);
    assert.ok(!(await actions(repository)).includes("limits_deleted"));
  });

  test("events are listed only for an entity or a level", async ({ repository }) => {
    assert.deepEqual((await repository.getAuditEvents("$RESOURCE:models/gpt-4:latest")).items, []);
    for (const id of ["$", "$OTHER", "$SYSTEM\n", "$RESOURCE:", "$RESOURCE:a#b", "$RESOURCE:a\n"])
      await failsWith(ValidationError, () => repository.getAuditEvents(id), JSON.stringify(id));
  });

  test("a rejected change is not recorded", async ({ repository }) => {
    if (!repository.capabilities.auditLogging) return;
    await failsWith(ValidationError, () => repository.setLimits(KEY, []));
    for (const principal of ["", "two words", "a#b", "x\n", 5 as unknown as string])
      await failsWith(
        InvalidIdentifierError,
        () => repository.setLimits(KEY, [RPM], { principal }),
        JSON.stringify(principal),
      );
    assert.deepEqual((await repository.getAuditEvents(KEY)).items, []);
    assert.deepEqual(await repository.getLimits(KEY), []);
  });
};

async function actions(repository: Repository): Promise<readonly string[]> {
  return (await repository.getAuditEvents(KEY)).items.map(({ action }) => action);
}

async function readSystemEvents(repository: Repository) {
  return (await repository.getAuditEvents("$SYSTEM")).items;
}
