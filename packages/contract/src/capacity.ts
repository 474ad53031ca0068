import assert from "node:assert/strict";
import { Limit, ValidationError } from "zae-limiter";
import { call, failsWith, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** The capacity that all entities of a resource have left together. */
export const capacityTopic: Topic = (test) => {
  test("sums what every entity has of one limit", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.repository.setLimits("key-2", [Limit.perMinute("rpm", 300)], {
      inherit: false,
    });
    await take(world, { rpm: 25 });
    await take(world, { rpm: 75 }, { entityId: "key-2" });
    await take(world, { rpm: 1 }, { entityId: "key-3", resource: "search" });
    assert.deepEqual(await world.repository.getResourceCapacity(MODEL, "rpm"), {
      resource: MODEL,
      limitName: "rpm",
      totalCapacity: 400,
      totalAvailable: 300,
      utilizationPct: 25,
      cascadedCapacity: 0,
      cascadedAvailable: 0,
      entities: [
        { entityId: KEY, capacity: 100, available: 75, utilizationPct: 25 },
        { entityId: "key-2", capacity: 300, available: 225, utilizationPct: 25 },
      ],
    });
    await world.pass(6000);
    assert.equal(
      (await world.repository.getResourceCapacity(MODEL, "rpm")).totalAvailable,
      85 + 255,
      "refill included",
    );
    assert.deepEqual(
      (await world.repository.getResourceCapacity(MODEL, "tpm")).entities.map(
        ({ entityId }) => entityId,
      ),
      [KEY],
    );
  });

  test("counts debt", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.settle({ tpm: 1500 }));
    const { totalAvailable, utilizationPct } = await world.repository.getResourceCapacity(
      MODEL,
      "tpm",
    );
    assert.deepEqual([totalAvailable, utilizationPct], [-500, 150]);
  });

  test("can be restricted to entities without a parent", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    await take(world, { rpm: 10 });
    await take(world, { rpm: 10 }, { entityId: "alone" });
    const ids = async (parentsOnly: boolean): Promise<readonly string[]> =>
      (await world.repository.getResourceCapacity(MODEL, "rpm", { parentsOnly })).entities.map(
        ({ entityId }) => entityId,
      );
    assert.deepEqual(await ids(false), ["alone", KEY, "project"]);
    assert.deepEqual(await ids(true), ["alone", "project"]);
  });

  test("shows how much of the totals belongs to parents whose children are counted too", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([RPM]);
    await repository.setLimits("project", [Limit.perMinute("rpm", 300)]);
    for (const id of ["project", "group", "quiet"]) await repository.createEntity(id);
    await repository.createEntity(KEY, { parentId: "project", cascade: true });
    await repository.createEntity("member", { parentId: "group" });
    await repository.createEntity("silent", { parentId: "quiet", cascade: true });
    await take(world, { rpm: 10 });
    for (const entityId of ["project", "member", "group", "quiet"])
      await take(world, { rpm: 1 }, { entityId });
    const capacity = async (): Promise<readonly number[]> => {
      const all = await repository.getResourceCapacity(MODEL, "rpm");
      return [all.totalCapacity, all.totalAvailable, all.cascadedCapacity, all.cascadedAvailable];
    };
    assert.deepEqual(
      await capacity(),
      [700, 676, 300, 289],
      "of project; no child of quiet has a bucket",
    );
    await repository.updateEntity("member", { cascade: true });
    await repository.updateEntity(KEY, { cascade: false });
    assert.deepEqual(await capacity(), [700, 676, 100, 99], "of group");
  });

  test("a resource that was never used has no capacity", async ({ repository }) => {
    assert.deepEqual(await repository.getResourceCapacity(MODEL, "rpm"), {
      resource: MODEL,
      limitName: "rpm",
      totalCapacity: 0,
      totalAvailable: 0,
      utilizationPct: 0,
      cascadedCapacity: 0,
      cascadedAvailable: 0,
      entities: [],
    });
    await failsWith(ValidationError, () => repository.getResourceCapacity("a#b", "rpm"));
    await failsWith(ValidationError, () => repository.getResourceCapacity(MODEL, ""));
  });

  test("counts all of many entities", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await Promise.all(
      Array.from({ length: 120 }, (_, index) =>
        take(world, { rpm: 1 }, { entityId: `key-${index}` }),
      ),
    );
    const { entities, totalCapacity, totalAvailable } = await world.repository.getResourceCapacity(
      MODEL,
      "rpm",
    );
    assert.deepEqual([entities.length, totalCapacity, totalAvailable], [120, 12_000, 11_880]);
  });
};
