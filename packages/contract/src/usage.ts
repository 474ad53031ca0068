import assert from "node:assert/strict";
import { Limit, type UsageSummary, type UsageWindow } from "zae-limiter";
import { allPages, call, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Promise 8: snapshots equal what was consumed, by the time of each change, each counted once. */
export const usageTopic: Topic = (test) => {
  /** A test that only applies where usage is recorded. */
  const usageTest: typeof test = (name, body) =>
    test(name, async (world) => {
      if (world.repository.capabilities.usageSnapshots) await body(world);
    });

  usageTest("snapshots equal what was consumed, in hours, days and months", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 1, tpm: 100 });
    await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.settle({ tpm: 50 }));
    for (const window of ["hourly", "daily", "monthly"] as const)
      assert.deepEqual(
        await show(world, window),
        [`${getStart(window, world.clock.now())} rpm 2 tpm 150 in 2`],
        window,
      );
    const [snapshot] = (await world.repository.getUsageSnapshots({ entityId: KEY })).items;
    assert.equal(snapshot?.window, "hourly", "hourly unless asked otherwise");
    assert.equal(snapshot.complete, false);
    assert.equal(snapshot.windowEnd.getTime() - snapshot.windowStart.getTime(), HOUR_MS);
    assert.deepEqual([snapshot.entityId, snapshot.resource], [KEY, MODEL]);
    await world.pass(HOUR_MS);
    assert.equal(
      (await world.repository.getUsageSnapshots({ entityId: KEY })).items[0]?.complete,
      true,
    );
  });

  usageTest(
    "midnight and the end of a month separate windows to the millisecond",
    async (world) => {
      await world.repository.setSystemDefaults([Limit.perMinute("rpm", 1000)]);
      world.clock.set(Date.UTC(2026, 1, 28, 23, 59, 59, 999));
      await take(world, { rpm: 1 });
      await world.pass(1);
      await take(world, { rpm: 10 });
      await world.pass(HOUR_MS);
      await take(world, { rpm: 100 });
      assert.deepEqual(await show(world, "hourly"), [
        "2026-02-28T23:00:00.000Z rpm 1 in 1",
        "2026-03-01T00:00:00.000Z rpm 10 in 1",
        "2026-03-01T01:00:00.000Z rpm 100 in 1",
      ]);
      assert.deepEqual(await show(world, "daily"), [
        "2026-02-28T00:00:00.000Z rpm 1 in 1",
        "2026-03-01T00:00:00.000Z rpm 110 in 2",
      ]);
      assert.deepEqual(await show(world, "monthly"), [
        "2026-02-01T00:00:00.000Z rpm 1 in 1",
        "2026-03-01T00:00:00.000Z rpm 110 in 2",
      ]);
      const { items } = await world.repository.getUsageSnapshots({
        entityId: KEY,
        window: "monthly",
      });
      assert.deepEqual(items[0]?.windowEnd, new Date(Date.UTC(2026, 2, 1)));
      assert.deepEqual(items[1]?.windowEnd, new Date(Date.UTC(2026, 3, 1)));
    },
  );

  usageTest(
    "a change counts in the window in which it is written, which may become negative",
    async (world) => {
      await world.repository.setSystemDefaults([RPM, TPM]);
      const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 500 }));
      await world.pass(HOUR_MS);
      lease.settle({ tpm: 200 });
      await lease.commit();
      const startMs = world.clock.now() - HOUR_MS;
      assert.deepEqual(await show(world, "hourly"), [
        `${getStart("hourly", startMs)} rpm 1 tpm 500 in 1`,
        `${getStart("hourly", world.clock.now())} tpm -300 in 0`,
      ]);
      assert.deepEqual((await world.repository.getUsageSummary({ entityId: KEY })).total, {
        rpm: 1,
        tpm: 200,
      });
    },
  );

  usageTest("a call that is rolled back or refused does not count as a request", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 3)]);
    const undone = await world.limiter.acquire(call({ rpm: 1 }));
    await undone.consume({ rpm: 1 });
    await undone.rollback();
    await take(world, { rpm: 3 });
    await world.limiter.tryAcquire(call({ rpm: 1 }));
    await world.limiter.check(call({ rpm: 1 }));
    const summary = await world.repository.getUsageSummary({ entityId: KEY });
    assert.equal(summary.requests, 1);
    assert.deepEqual(summary.total, { rpm: 3 });
  });

  usageTest("later takes of a lease belong to the same request", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const lease = await world.limiter.acquire(call({ rpm: 1 }));
    await lease.consume({ tpm: 10 });
    await lease.consume({ tpm: 10 });
    await lease.commit();
    assert.deepEqual(await show(world, "daily"), [
      `${getStart("daily", world.clock.now())} rpm 1 tpm 20 in 1`,
    ]);
  });

  usageTest(
    "a parent's usage counts what its children take, separately for each resource",
    async (world) => {
      await world.repository.setSystemDefaults([RPM]);
      await world.repository.createEntity("project");
      for (const id of [KEY, "key-2"])
        await world.repository.createEntity(id, { parentId: "project", cascade: true });
      await take(world, { rpm: 1 });
      await take(world, { rpm: 2 }, { entityId: "key-2", also: { search: { rpm: 5 } } });
      const get = async (entityId: string, resource: string): Promise<unknown> => {
        const { total, requests } = await world.repository.getUsageSummary({ entityId, resource });
        return [total["rpm"], requests];
      };
      assert.deepEqual(await get("project", MODEL), [3, 2]);
      assert.deepEqual(await get("project", "search"), [5, 1]);
      assert.deepEqual(await get(KEY, MODEL), [1, 1]);
      const everyone = await world.repository.getUsageSummary({ resource: MODEL });
      assert.deepEqual([everyone.snapshotCount, everyone.total["rpm"]], [3, 3]);
    },
  );

  usageTest(
    "the end of a query is exclusive, and pages contain all of its windows",
    async (world) => {
      await world.repository.setSystemDefaults([RPM]);
      const firstMs = Math.floor(world.clock.now() / HOUR_MS) * HOUR_MS;
      for (let hour = 0; hour < 12; hour += 1) {
        await take(world, { rpm: 1 + hour });
        await world.pass(HOUR_MS);
      }
      const start = new Date(firstMs + 2 * HOUR_MS);
      const end = new Date(firstMs + 9 * HOUR_MS);
      const pages = await allPages(
        (paging) => world.repository.getUsageSnapshots({ entityId: KEY, start, end, ...paging }),
        3,
      );
      assert.deepEqual(
        pages.map(({ counters }) => counters["rpm"]),
        [3, 4, 5, 6, 7, 8, 9],
      );
      const summary = await world.repository.getUsageSummary({ entityId: KEY, start, end });
      assert.deepEqual(withoutTimes(summary), {
        snapshotCount: 7,
        total: { rpm: 42 },
        average: { rpm: 6 },
        requests: 7,
        cascaded: {},
        cascadedRequests: 0,
        minWindowStart: start,
        maxWindowStart: new Date(firstMs + 8 * HOUR_MS),
      });
      // A range that ends before it starts has no windows.
      for (const who of [{ entityId: KEY }, { resource: MODEL }]) {
        const none = { ...who, start: end, end: start };
        assert.deepEqual((await world.repository.getUsageSnapshots(none)).items, []);
      }
    },
  );

  usageTest("a summary of no usage is empty", async (world) => {
    const summary = await world.repository.getUsageSummary({ entityId: KEY });
    assert.deepEqual(withoutTimes(summary), {
      snapshotCount: 0,
      total: {},
      average: {},
      requests: 0,
      cascaded: {},
      cascadedRequests: 0,
      minWindowStart: undefined,
      maxWindowStart: undefined,
    });
  });

  usageTest("windows are kept 90 days, or as long as the system defaults say", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    await world.pass(89 * DAY_MS);
    assert.equal((await show(world, "hourly")).length, 1);
    await world.pass(2 * DAY_MS);
    assert.deepEqual(await show(world, "hourly"), []);
    await world.repository.setSystemDefaults([RPM], { usageRetentionDays: 3 });
    await take(world, { rpm: 1 });
    await world.pass(2 * DAY_MS);
    assert.equal((await show(world, "daily")).length, 1);
    await world.pass(3 * DAY_MS);
    assert.deepEqual(await show(world, "daily"), []);
  });

  usageTest("a window is complete when it has ended and all of it is counted", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    for (let hours = 0; hours < 3; hours += 1) {
      await take(world, { rpm: 1 });
      const { items, countedUntil } = await world.repository.getUsageSnapshots({ entityId: KEY });
      const countedMs = Math.min(world.clock.now(), countedUntil?.getTime() ?? Infinity);
      assert.deepEqual(
        items.map(({ complete }) => complete),
        items.map(({ windowEnd }) => windowEnd.getTime() <= countedMs),
      );
      assert.equal(items.at(-1)?.complete, false);
      await world.pass(HOUR_MS);
    }
  });

  usageTest("a resource's windows come in order, page by page", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    for (let hours = 0; hours < 3; hours += 1) {
      for (const entityId of ["b", "a", "c"]) await take(world, { rpm: 1 + hours }, { entityId });
      await world.pass(HOUR_MS);
    }
    for (const window of ["hourly", "daily"] as const) {
      const pages = await allPages(
        (paging) => world.repository.getUsageSnapshots({ resource: MODEL, window, ...paging }),
        2,
      );
      assert.deepEqual(
        pages.map(({ entityId, counters }) => `${entityId} ${counters["rpm"]}`),
        window === "daily"
          ? ["a 6", "b 6", "c 6"]
          : ["a 1", "b 1", "c 1", "a 2", "b 2", "c 2", "a 3", "b 3", "c 3"],
      );
    }
  });

  usageTest("usage of a deleted entity stays", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.createEntity(KEY);
    await take(world, { rpm: 7 });
    await world.repository.deleteEntity(KEY);
    assert.deepEqual((await world.repository.getUsageSummary({ entityId: KEY })).total, { rpm: 7 });
  });
};

/** A summary without `countedUntil`, which only some backends report. */
function withoutTimes(summary: UsageSummary): Partial<UsageSummary> {
  const { countedUntil, ...rest } = summary;
  assert.ok(countedUntil === undefined || countedUntil instanceof Date);
  return rest;
}

/** Reads the windows of the usual entity as text, without zero counters, which may be missing. */
async function show({ repository }: World, window: UsageWindow): Promise<readonly string[]> {
  const { items } = await repository.getUsageSnapshots({ entityId: KEY, window });
  return items.map(({ windowStart, counters, requests }) => {
    const used = Object.entries(counters).filter(([, amount]) => amount !== 0);
    const amounts = used.map(([name, amount]) => ` ${name} ${amount}`);
    return `${windowStart.toISOString()}${amounts.sort().join("")} in ${requests}`;
  });
}

function getStart(window: UsageWindow, timeMs: number): string {
  const text = new Date(timeMs).toISOString();
  if (window === "hourly") return `${text.slice(0, 13)}:00:00.000Z`;
  return window === "daily"
    ? `${text.slice(0, 10)}T00:00:00.000Z`
    : `${text.slice(0, 7)}-01T00:00:00.000Z`;
}
