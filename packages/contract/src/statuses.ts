import assert from "node:assert/strict";
import { Limit, type LimitStatus, RateLimiter } from "zae-limiter";
import { faultyRepository } from "zae-limiter/testing";
import { call, KEY, readLeft, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** A lease says what is left, without asking the store again. */
export const statusesTopic: Topic = (test) => {
  test("are those of the entity, then its parent, then further resources, in the policy's order", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([TPM, RPM]);
    await repository.setResourceDefaults("search", [RPM], { inherit: false });
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project", cascade: true });
    await repository.setLimits("project", [Limit.perMinute("rpm", 500)], { inherit: false });
    await take(world, { rpm: 5 });
    const lease = await world.limiter.acquire(
      call({ rpm: 1, tpm: 300 }, { also: { search: { rpm: 2 } } }),
    );
    const statuses = await lease.statuses();
    assert.deepEqual(statuses.map(describe), [
      `${KEY} ${MODEL} tpm 700 of 1000 (system)`,
      `${KEY} ${MODEL} rpm 94 of 100 (system)`,
      `project ${MODEL} rpm 494 of 500 (entity_default)`,
      `${KEY} search rpm 98 of 100 (resource)`,
      "project search rpm 498 of 500 (entity_default)",
    ]);
    for (const { limitName, limit, requested, exceeded, deficit, retryAfterSeconds } of statuses)
      assert.deepEqual(
        [limit.name, requested, exceeded, deficit, retryAfterSeconds],
        [limitName, 0, false, 0, 0],
      );
    await lease.rollback();
  });

  test("are as of now: with the refill, and with what this process took and gave back since", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const lease = await world.limiter.acquire(call({ rpm: 10, tpm: 500 }));
    assert.deepEqual(await available(lease), { rpm: 90, tpm: 500 });
    await take(world, { rpm: 20 });
    assert.deepEqual(await available(lease), { rpm: 70, tpm: 500 });
    await world.pass(6000);
    assert.deepEqual(await available(lease), { rpm: 80, tpm: 600 });
    await lease.consume({ tpm: 50 });
    assert.deepEqual(await available(lease), { rpm: 80, tpm: 550 });
    const other = await world.limiter.acquire(call({ rpm: 30 }));
    await other.rollback();
    assert.deepEqual(await available(lease), { rpm: 80, tpm: 550 });
    assert.deepEqual(await available(lease), await readLeft(world));
    lease.settle({ tpm: 0 });
    assert.deepEqual(await available(lease), { rpm: 80, tpm: 550 }, "a difference is not written");
    await lease.commit();
  });

  test("show debt that others have caused since", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const lease = await world.limiter.acquire(call({ rpm: 1 }));
    await world.limiter.acquire(call({ rpm: 1 }), (other) => other.settle({ tpm: 1500 }));
    const [, tpm] = await lease.statuses();
    assert.deepEqual(
      [tpm?.limitName, tpm?.available, tpm?.exceeded, tpm?.retryAfterSeconds],
      ["tpm", -500, true, 30],
    );
    await lease.commit();
  });

  test("are under the limits that the call was granted with", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const limits = [Limit.perMinute("own", 10), RPM];
    const overridden = await world.limiter.acquire(call({ own: 4 }, { limits }));
    assert.deepEqual((await overridden.statuses()).map(describe), [
      `${KEY} ${MODEL} own 6 of 10 (override)`,
      `${KEY} ${MODEL} rpm 100 of 100 (override)`,
    ]);
    await overridden.commit();
    const lease = await world.limiter.acquire(call({ rpm: 10 }, { entityId: "other" }));
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 50)]);
    assert.deepEqual((await lease.statuses()).map(describe), [
      `other ${MODEL} rpm 90 of 100 (system)`,
    ]);
    await lease.commit();
  });

  test("cost no request and no write, and need no store", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    let isDown = false;
    const repository = faultyRepository(world.repository, () =>
      isDown ? "error-before" : undefined,
    );
    const limiter = new RateLimiter({ repository });
    const lease = await limiter.acquire(call({ rpm: 1, tpm: 100 }));
    const { requests, writes } = world.repository.getStatistics();
    isDown = true;
    assert.deepEqual(await available(lease), { rpm: 99, tpm: 900 });
    assert.deepEqual(await available(lease), { rpm: 99, tpm: 900 });
    const after = world.repository.getStatistics();
    assert.deepEqual([after.requests, after.writes], [requests, writes]);
    isDown = false;
    await lease.commit();
  });

  test("are empty for a lease that was granted without the store", async (world) => {
    const repository = faultyRepository(world.repository, () => "error-before");
    const limiter = new RateLimiter({ repository, onUnavailable: "allow" });
    const lease = await limiter.acquire(call({ rpm: 1 }));
    assert.equal(lease.degraded, true);
    assert.deepEqual(await lease.statuses(), []);
    await lease.commit();
  });
};

function describe({
  entityId,
  resource,
  limitName,
  available: whole,
  limit,
  source,
}: LimitStatus): string {
  return `${entityId} ${resource} ${limitName} ${whole} of ${limit.capacity} (${source})`;
}

/** What is left of each limit of a lease that took from one bucket. */
async function available(lease: {
  statuses(): Promise<readonly LimitStatus[]>;
}): Promise<Readonly<Record<string, number>>> {
  return Object.fromEntries(
    (await lease.statuses()).map((status) => [status.limitName, status.available]),
  );
}
