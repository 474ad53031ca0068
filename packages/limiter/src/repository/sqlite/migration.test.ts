import { expect, it } from "vitest";
import { Limit, RateLimiter, type UsageSummary } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import { SCHEMA_1_FILE } from "../../../test/support/schema-1-file.ts";
import {
  closeLater,
  otherConnection,
  temporaryFile,
} from "../../../test/support/temporary-file.ts";

const HOUR_MS = 3_600_000;
/** Within the hour that the buckets of the old file still count. */
const NOW_MS = Date.UTC(2026, 2, 1, 13, 30);

async function openOldFile(): Promise<{ path: string; repository: SqliteRepository }> {
  const path = temporaryFile();
  (await otherConnection(path)).exec(SCHEMA_1_FILE);
  const clock = new ManualClock(NOW_MS);
  return { path, repository: closeLater(await SqliteRepository.open(path, { clock })) };
}

const sums = ({ total, requests, cascaded, cascadedRequests }: UsageSummary): unknown => [
  total,
  requests,
  cascaded,
  cascadedRequests,
];

it("opens a file of schema 1 and keeps everything; what was counted then counts as own usage", async () => {
  const { repository } = await openOldFile();
  expect(await repository.getEntity("key-1")).toMatchObject({ parentId: "project", cascade: true });
  expect(await new RateLimiter({ repository }).available("project", "gpt-4")).toEqual({
    rpm: 100,
    tpm: 10_000,
  });
  expect((await repository.getAuditEvents("key-1")).items).toHaveLength(1);
  const before = [{ rpm: 6, tpm: 1660 }, 6, {}, 0];
  expect(sums(await repository.getUsageSummary({ resource: "gpt-4" }))).toEqual(before);
});

it("counts apart what comes by cascade from then on, also in an hour that began before", async () => {
  const { repository } = await openOldFile();
  const limiter = new RateLimiter({ repository });
  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 7 } };
  await limiter.acquire(call, () => {});
  const expected = [{ rpm: 7, tpm: 1667 }, 7, { rpm: 1, tpm: 7 }, 1];
  expect(sums(await repository.getUsageSummary({ resource: "gpt-4" }))).toEqual(expected);
  expect(sums(await repository.getUsageSummary({ entityId: "project" }))).toEqual([
    { rpm: 5, tpm: 867 },
    5,
    { rpm: 1, tpm: 7 },
    1,
  ]);
  await (repository.clock as ManualClock).advance(HOUR_MS);
  await limiter.acquire(call, () => {});
  expect(sums(await repository.getUsageSummary({ resource: "gpt-4" }))).toEqual([
    { rpm: 8, tpm: 1674 },
    8,
    { rpm: 2, tpm: 14 },
    2,
  ]);
});

it("loses no usage when a process of the release before is still writing", async () => {
  const { path, repository } = await openOldFile();
  const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 7 } };
  await new RateLimiter({ repository }).acquire(call, () => {});
  const old = await otherConnection(path);
  // What that release writes when an hour ends: it knows neither the columns nor the part.
  old.exec(`
    INSERT INTO usage (namespace_id, entity_id, resource, hour_ms, requests, counters)
    SELECT namespace_id, entity_id, resource, hour ->> '$.hourMs', hour ->> '$.requests', hour -> '$.counters'
    FROM buckets WHERE TRUE ON CONFLICT DO UPDATE SET requests = excluded.requests, counters = excluded.counters;
    UPDATE buckets SET hour = '{"hourMs":${NOW_MS + HOUR_MS / 2},"requests":0,"counters":{}}';`);
  const { total, requests } = await repository.getUsageSummary({ entityId: "project" });
  expect([total, requests]).toEqual([{ rpm: 5, tpm: 867 }, 5]);
});

it("keeps the state of declared limits", async () => {
  const { repository } = await openOldFile();
  const state = await repository.getProvisionerState();
  expect(state).toEqual({
    managedSystem: true,
    managedResources: ["gpt-4"],
    managedEntities: {},
    lastApplied: new Date("2026-03-01T12:00:00.000Z"),
    appliedHash: "abc",
    revision: 4,
  });
  await repository.putProvisionerState(state);
  expect((await repository.getProvisionerState()).revision).toBe(5);
});

it("marks a migrated file, so that earlier releases refuse it", async () => {
  const { path } = await openOldFile();
  const connection = await otherConnection(path);
  const version = connection.prepare("PRAGMA user_version").get() as object;
  expect(Object.values(version)[0]).toBeGreaterThan(1);
});

it("keeps an hour whose own calls and give-backs by cascade add up to nothing", async () => {
  const path = temporaryFile();
  const clock = new ManualClock(NOW_MS);
  const repository = closeLater(await SqliteRepository.open(path, { clock }));
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  await repository.createEntity("project");
  await repository.createEntity("key-1", { parentId: "project", cascade: true });
  const limiter = new RateLimiter({ repository });
  const lease = await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: {} });
  await clock.advance(HOUR_MS);
  await limiter.acquire({ entityId: "project", resource: "gpt-4", consume: {} }, () => {});
  await lease.rollback();
  await clock.advance(HOUR_MS);
  await limiter.acquire({ entityId: "project", resource: "gpt-4", consume: {} }, () => {});
  const { items } = await repository.getUsageSnapshots({ entityId: "project" });
  expect(items.map(({ requests, cascadedRequests }) => [requests, cascadedRequests])).toEqual([
    [1, 1],
    [0, -1],
    [1, 0],
  ]);
});
