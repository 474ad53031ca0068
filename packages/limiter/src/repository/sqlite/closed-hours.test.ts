import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { SqliteRepository } from "zae-limiter/sqlite";
import { ManualClock } from "zae-limiter/testing";
import { closeLater, temporaryFile } from "../../../test/support/temporary-file.ts";

const HOUR_MS = 3_600_000;
const KEY = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
const PROJECT = { entityId: "project", resource: "gpt-4", consume: {} };

/** A project into which a key cascades. */
async function openProject(clock: ManualClock): Promise<SqliteRepository> {
  const repository = closeLater(await SqliteRepository.open(temporaryFile(), { clock }));
  await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
  await repository.createEntity("project");
  await repository.createEntity("key-1", { parentId: "project", cascade: true });
  return repository;
}

it("counts cascaded usage separately, also after its hour has ended", async () => {
  const clock = new ManualClock();
  const repository = await openProject(clock);
  const limiter = new RateLimiter({ repository });
  await limiter.acquire(KEY, () => {});
  await clock.advance(HOUR_MS);
  await limiter.acquire(KEY, () => {});
  expect(await repository.getUsageSummary({ resource: "gpt-4" })).toMatchObject({
    total: { rpm: 2 },
    requests: 2,
    cascaded: { rpm: 2 },
    cascadedRequests: 2,
  });
});

it("keeps an hour whose own calls and give-backs by cascade add up to nothing", async () => {
  const clock = new ManualClock();
  const repository = await openProject(clock);
  const limiter = new RateLimiter({ repository });
  const lease = await limiter.acquire({ ...KEY, consume: {} });
  await clock.advance(HOUR_MS);
  await limiter.acquire(PROJECT, () => {});
  await lease.rollback();
  await clock.advance(HOUR_MS);
  await limiter.acquire(PROJECT, () => {});
  const { items } = await repository.getUsageSnapshots({ entityId: "project" });
  expect(items.map(({ requests, cascadedRequests }) => [requests, cascadedRequests])).toEqual([
    [1, 1],
    [0, -1],
    [1, 0],
  ]);
});
