import assert from "node:assert/strict";
import { EntityNotFoundError, ValidationError } from "zae-limiter";
import { allPages, call, failsWith, footprint, KEY, MODEL, RPM, take } from "./calls.ts";
import type { Topic, World } from "./world.ts";

const HOUR_MS = 3_600_000;
const HISTORY = { history: true } as const;

/** Deletions of entities with their history. */
export const erasingTopic: Topic = (test) => {
  test("erasing an entity leaves nothing of it, and everything of the others", async (world) => {
    const { repository } = world;
    await createFamily(world);
    const others = ["key-2", "project"];
    const before = await Promise.all(others.map((id) => readHistory(world, id)));
    const counts: number[] = [];
    const erased = await repository.deleteEntity(KEY, {
      ...HISTORY,
      principal: "officer",
      onProgress: (count) => counts.push(count),
    });
    // The record and the bucket.
    assert.equal(erased.records, 2);
    const { usageSnapshots, auditLogging } = repository.capabilities;
    assert.equal(erased.usageRecords > 0, usageSnapshots);
    // The creation and the deletion.
    assert.equal(erased.auditEvents, auditLogging ? 2 : 0);
    assert.equal(erased.usageMayFollowUntil, undefined);
    const total = erased.records + erased.usageRecords + erased.auditEvents;
    assert.deepEqual(counts, counts.toSorted(byValue));
    if (auditLogging) assert.equal(counts.at(-1), total);

    const nothing = usageSnapshots ? [[], [], [], []] : [[]];
    assert.deepEqual(await readHistory(world, KEY), nothing);
    assert.deepEqual(await repository.getBuckets(KEY), []);
    assert.equal(await repository.getEntity(KEY), undefined);
    assert.deepEqual(await Promise.all(others.map((id) => readHistory(world, id))), before);
    if (!auditLogging) return;
    const events = await readSystemEvents(world);
    assert.deepEqual(
      [events[0]?.action, events[0]?.principal, events[0]?.details["recordsDeleted"]],
      ["entity_erased", "officer", 2],
    );
    assert.ok(!JSON.stringify(events).includes(KEY), "no event names who was erased");
  });

  test("an entity that is gone already is erased, and erasing nothing leaves no event", async (world) => {
    const { repository } = world;
    await createFamily(world);
    await repository.deleteEntity(KEY);
    await failsWith(EntityNotFoundError, () => repository.deleteEntity(KEY));
    const { records, usageRecords, auditEvents } = await repository.deleteEntity(KEY, HISTORY);
    const { usageSnapshots, auditLogging } = repository.capabilities;
    assert.deepEqual(
      [records, usageRecords > 0, auditEvents > 0],
      [0, usageSnapshots, auditLogging],
    );
    const before = await readSystemEvents(world);
    const again = await repository.deleteEntity(KEY, HISTORY);
    assert.deepEqual([again.records, again.usageRecords, again.auditEvents], [0, 0, 0]);
    assert.deepEqual(await readSystemEvents(world), before);
  });

  test("an erased entity that comes back begins without a history", async (world) => {
    await createFamily(world);
    const open = await world.limiter.acquire(call({ rpm: 1 }));
    await world.repository.deleteEntity(KEY, HISTORY);
    await open.commit();
    await take(world, { rpm: 5 });
    if (!world.repository.capabilities.usageSnapshots) return;
    const { total } = await world.repository.getUsageSummary({ entityId: KEY });
    assert.deepEqual(total, { rpm: 5 });
  });

  test("what is refused or stopped erases nothing", async (world) => {
    const { repository } = world;
    await createFamily(world);
    const before = [await footprint(repository), await readHistory(world, KEY)];
    await failsWith(ValidationError, () => repository.deleteEntity("project", HISTORY));
    const signal = AbortSignal.abort(new RangeError("stop"));
    await failsWith(RangeError, () => repository.deleteEntity(KEY, { ...HISTORY, signal }));
    for (const history of ["yes", null, 1])
      await failsWith(ValidationError, () =>
        repository.deleteEntity(KEY, { history } as unknown as typeof HISTORY),
      );
    assert.deepEqual([await footprint(repository), await readHistory(world, KEY)], before);
  });

  test("an erasure that is stopped half-way goes on", async (world) => {
    const { repository } = world;
    await createFamily(world);
    const stopping = new AbortController();
    const onProgress = (): void => stopping.abort(new RangeError("stop"));
    const stopped = repository.deleteEntity(KEY, {
      ...HISTORY,
      signal: stopping.signal,
      onProgress,
    });
    if (repository.capabilities.usageSnapshots) await failsWith(RangeError, () => stopped);
    else await stopped;
    await repository.deleteEntity(KEY, HISTORY);
    assert.deepEqual((await readHistory(world, KEY)).flat(), []);
  });
};

/** Two children that cascade into a project, each with usage in two hours. */
async function createFamily(world: World): Promise<void> {
  const { repository } = world;
  await repository.setSystemDefaults([RPM]);
  await repository.createEntity("project");
  for (const entityId of [KEY, "key-2"]) {
    await repository.createEntity(entityId, { parentId: "project", cascade: true });
    await take(world, { rpm: 1 }, { entityId });
  }
  await world.pass(HOUR_MS);
  for (const entityId of [KEY, "key-2"]) await take(world, { rpm: 2 }, { entityId });
}

/** The audit events of an entity, and its windows of every length. */
async function readHistory({ repository }: World, entityId: string): Promise<readonly unknown[][]> {
  const events = await allPages((paging) => repository.getAuditEvents(entityId, paging), 50);
  const lists: unknown[][] = [[...events]];
  if (repository.capabilities.usageSnapshots)
    for (const window of ["hourly", "daily", "monthly"] as const)
      lists.push([
        ...(await repository.getUsageSnapshots({ entityId, resource: MODEL, window })).items,
      ]);
  return lists;
}

async function readSystemEvents({ repository }: World) {
  return (await repository.getAuditEvents("$SYSTEM")).items;
}

function byValue(left: number, right: number): number {
  return left - right;
}
