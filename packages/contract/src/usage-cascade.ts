import assert from "node:assert/strict";
import { InfrastructureError, Limit, type UsageSnapshot, type UsageSummary } from "zae-limiter";
import { call, failsWith, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

const HOUR_MS = 3_600_000;
const IMAGES = Limit.perDay("images", 5);

/**
 * Promise 8 with parents: over a resource each call counts once, with the entity that made it;
 * usage that came to a parent by cascade is reported separately.
 */
export const usageCascadeTopic: Topic = (test) => {
  /** A test that only applies where usage is recorded. */
  const usageTest: typeof test = (name, body) =>
    test(name, async (world) => {
      if (world.repository.capabilities.usageSnapshots) await body(world);
    });

  usageTest("a summary over a resource counts each call once", async (world) => {
    await createFamily(world);
    await take(world, { rpm: 1, tpm: 100 });
    await take(world, { rpm: 1, tpm: 20 }, { entityId: "key-2" });
    await take(world, { rpm: 1, tpm: 3 }, { entityId: "project" });
    const everyone = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual(sums(everyone), [{ rpm: 3, tpm: 123 }, 3, { rpm: 2, tpm: 120 }, 2]);
    assert.deepEqual(everyone.average, { rpm: 3, tpm: 123 }, "one window");
    assert.equal(everyone.snapshotCount, 3);
  });

  usageTest("snapshots of a resource hold each entity's own calls", async (world) => {
    await createFamily(world);
    await take(world, { rpm: 1, tpm: 100 });
    await take(world, { rpm: 1, tpm: 3 }, { entityId: "project" });
    const { items } = await world.repository.getUsageSnapshots({ resource: MODEL });
    assert.deepEqual(items.map(show), [
      [KEY, { rpm: 1, tpm: 100 }, 1, {}, 0],
      ["project", { rpm: 1, tpm: 3 }, 1, { rpm: 1, tpm: 100 }, 1],
    ]);
  });

  usageTest(
    "a query that names a parent counts all that was charged to it, and shows what came by cascade",
    async (world) => {
      await createFamily(world);
      await take(world, { rpm: 1, tpm: 100 });
      await take(world, { rpm: 1, tpm: 3 }, { entityId: "project" });
      for (const query of [{}, { resource: MODEL }]) {
        const asked = { entityId: "project", ...query };
        const { items } = await world.repository.getUsageSnapshots(asked);
        assert.deepEqual(items.map(show), [
          ["project", { rpm: 2, tpm: 103 }, 2, { rpm: 1, tpm: 100 }, 1],
        ]);
        const summary = await world.repository.getUsageSummary(asked);
        assert.deepEqual(sums(summary), [{ rpm: 2, tpm: 103 }, 2, { rpm: 1, tpm: 100 }, 1]);
      }
      const own = await world.repository.getUsageSummary({ entityId: KEY });
      assert.deepEqual(sums(own), [{ rpm: 1, tpm: 100 }, 1, {}, 0]);
    },
  );

  usageTest("settlements, further takes and give-backs count as their call does", async (world) => {
    await createFamily(world);
    const settled = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    const undone = await world.limiter.acquire(call({ rpm: 1, tpm: 10 }));
    await settled.consume({ tpm: 5 });
    await world.pass(HOUR_MS);
    settled.settle({ tpm: 165 });
    await settled.commit();
    await undone.rollback();
    const total = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual(sums(total), [{ rpm: 1, tpm: 165 }, 1, { rpm: 1, tpm: 165 }, 1]);
    assert.deepEqual(total.average, { rpm: 0.5, tpm: 82.5 }, "two windows");
    const { items } = await world.repository.getUsageSnapshots({ entityId: "project" });
    assert.deepEqual(items.map(show), [
      ["project", { rpm: 2, tpm: 115 }, 2, { rpm: 2, tpm: 115 }, 2],
      ["project", { rpm: -1, tpm: 50 }, -1, { rpm: -1, tpm: 50 }, -1],
    ]);
  });

  usageTest("a lease that took before the cascade changed counts as it took", async (world) => {
    await createFamily(world);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    await world.repository.updateEntity(KEY, { cascade: false });
    lease.settle({ tpm: 40 });
    await lease.commit();
    await take(world, { rpm: 1 });
    const parent = await world.repository.getUsageSummary({ entityId: "project" });
    assert.deepEqual(sums(parent), [{ rpm: 1, tpm: 40 }, 1, { rpm: 1, tpm: 40 }, 1]);
    const all = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual([all.total, all.requests], [{ rpm: 2, tpm: 40 }, 2]);
  });

  usageTest(
    "an entity that begins to cascade brings usage to its parent from then on",
    async (world) => {
      await createFamily(world);
      await world.repository.createEntity("late", { parentId: "project" });
      await take(world, { rpm: 1, tpm: 10 }, { entityId: "late" });
      await take(world, { rpm: 1, tpm: 3 }, { entityId: "project" });
      await world.repository.updateEntity("late", { cascade: true });
      await take(world, { rpm: 1, tpm: 200 }, { entityId: "late" });
      await world.repository.updateEntity("late", { cascade: false });
      await take(world, { rpm: 1, tpm: 30 }, { entityId: "late" });
      const parent = await world.repository.getUsageSummary({ entityId: "project" });
      assert.deepEqual(sums(parent), [{ rpm: 2, tpm: 203 }, 2, { rpm: 1, tpm: 200 }, 1]);
      const all = await world.repository.getUsageSummary({ resource: MODEL });
      assert.deepEqual(sums(all), [{ rpm: 4, tpm: 243 }, 4, { rpm: 1, tpm: 200 }, 1]);
    },
  );

  usageTest("a limit that a parent lacks is counted where the call was made", async (world) => {
    await createFamily(world);
    await world.repository.setLimits(KEY, [RPM, TPM, IMAGES]);
    await take(world, { rpm: 1, tpm: 10, images: 2 });
    await take(world, { rpm: 1, tpm: 5 }, { entityId: "project" });
    const parent = await world.repository.getUsageSummary({ entityId: "project" });
    assert.deepEqual(sums(parent), [{ rpm: 2, tpm: 15 }, 2, { rpm: 1, tpm: 10 }, 1]);
    const all = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual(sums(all), [{ rpm: 2, tpm: 15, images: 2 }, 2, { rpm: 1, tpm: 10 }, 1]);
  });

  usageTest("amounts that a parent only counts came by cascade too", async (world) => {
    await createFamily(world);
    await world.repository.setLimits("project", [RPM]);
    await world.limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => lease.settle({ tpm: 70 }));
    await take(world, { rpm: 1, tpm: 5 }, { entityId: "project" });
    const parent = await world.repository.getUsageSummary({ entityId: "project" });
    assert.deepEqual(sums(parent), [{ rpm: 2, tpm: 75 }, 2, { rpm: 1, tpm: 70 }, 1]);
    const all = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual(sums(all), [{ rpm: 2, tpm: 75 }, 2, { rpm: 1, tpm: 70 }, 1]);
  });

  usageTest("averages are by window, over all entities and resources", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 2 }, { also: { search: { rpm: 4 } } });
    await take(world, { rpm: 6 }, { entityId: "other" });
    await world.pass(HOUR_MS);
    await take(world, { rpm: 12 });
    const ofEntity = await world.repository.getUsageSummary({ entityId: KEY });
    assert.deepEqual([ofEntity.average, ofEntity.snapshotCount], [{ rpm: 9 }, 3]);
    const ofResource = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual([ofResource.average, ofResource.snapshotCount], [{ rpm: 10 }, 3]);
  });

  usageTest("usage that came by cascade stays with a deleted parent", async (world) => {
    await createFamily(world);
    await take(world, { rpm: 1, tpm: 100 });
    await world.repository.deleteEntity(KEY);
    await world.repository.deleteEntity("key-2");
    await world.repository.deleteEntity("project");
    const summary = await world.repository.getUsageSummary({ resource: MODEL });
    assert.deepEqual(sums(summary), [{ rpm: 1, tpm: 100 }, 1, { rpm: 1, tpm: 100 }, 1]);
  });

  test("usage that is not recorded is an error, never a zero", async ({ repository }) => {
    if (repository.capabilities.usageSnapshots) return;
    for (const ask of [
      () => repository.getUsageSnapshots({ entityId: KEY }),
      () => repository.getUsageSummary({ resource: MODEL }),
    ]) {
      const error = await failsWith(InfrastructureError, ask);
      assert.equal(error.code, "ERR_LIMITER_USAGE_NOT_RECORDED");
      assert.match(error.message, /does not record usage/);
    }
  });
};

/** Two keys that cascade into one project. */
async function createFamily({ repository }: World): Promise<void> {
  await repository.setSystemDefaults([RPM, TPM]);
  await repository.createEntity("project");
  for (const id of [KEY, "key-2"])
    await repository.createEntity(id, { parentId: "project", cascade: true });
}

function sums({ total, requests, cascaded, cascadedRequests }: UsageSummary): readonly unknown[] {
  return [withoutZeros(total), requests, withoutZeros(cascaded), cascadedRequests];
}

function show(snapshot: UsageSnapshot): readonly unknown[] {
  const { entityId, counters, requests, cascaded, cascadedRequests } = snapshot;
  return [entityId, withoutZeros(counters), requests, withoutZeros(cascaded), cascadedRequests];
}

/** A counter of zero may be left out. */
function withoutZeros(counters: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(Object.entries(counters).filter(([, amount]) => amount !== 0));
}
