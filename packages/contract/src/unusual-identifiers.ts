import assert from "node:assert/strict";
import { Limit } from "zae-limiter";
import { call, fits, KEY, readLeft, MODEL, getRefusal, RPM, take } from "./calls.ts";
import type { Topic } from "./world.ts";

/**
 * Names that every object inherits, that stores use as attributes, or with characters that have a
 * meaning in stores.
 */
const UNUSUAL_LIMIT_NAMES = [
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "ttl",
  "a-b.c",
  "window",
  "resource",
  "PK",
  "x_1",
  "size",
];

/** Limit, entity and resource names that are valid, but look unusual. */
export const unusualIdentifiersTopic: Topic = (test) => {
  for (const name of UNUSUAL_LIMIT_NAMES) {
    test(`a limit named ${name} works like any other`, async (world) => {
      const limit = Limit.perMinute(name, 10);
      await world.repository.setSystemDefaults([limit, RPM]);
      assert.deepEqual(await world.repository.getSystemDefaults().then(({ limits }) => limits), [
        limit,
        RPM,
      ]);
      await take(world, { rpm: 1 });
      assert.deepEqual(await readLeft(world), { [name]: 10, rpm: 99 });
      await world.limiter.acquire(call({ [name]: 2 }), async (lease) => {
        assert.deepEqual(lease.consumed, { [name]: 2, rpm: 0 });
        await lease.consume({ [name]: 1 });
        lease.adjust({ [name]: 9 });
      });
      assert.deepEqual(await readLeft(world), { [name]: -2, rpm: 99 });
      const refusal = await getRefusal(world.limiter, call({ rpm: 1 }));
      assert.equal(refusal.primaryViolation.limitName, name);
      assert.equal(refusal.retryAfterSeconds, 12);
      await world.pass(60_000);
      const undone = await world.limiter.acquire(call({ [name]: 5 }));
      await undone.rollback();
      assert.equal(await fits(world, { [name]: 8 }), true);
      const bucket = (await world.repository.getBuckets(KEY)).find(
        ({ limitName }) => limitName === name,
      );
      assert.equal(bucket?.totalConsumedMilli, 20_000);
      assert.equal((await world.repository.getResourceCapacity(MODEL, name)).totalCapacity, 10);
      if (!world.repository.capabilities.usageSnapshots) return;
      const { total, requests } = await world.repository.getUsageSummary({ entityId: KEY });
      assert.deepEqual(
        [Object.entries(total).find(([key]) => key === name)?.[1], requests],
        [20, 3],
      );
    });
  }

  test("entities and resources with unusual identifiers are kept apart", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const pairs = [
      ["constructor", "toString"],
      ["a:b", "c"],
      ["a", "b:c"],
      ["A", "b:c"],
      ["user@example.com", "models/gpt-4:latest"],
      ["0", "a/b"],
      ["0", "a"],
    ] as const;
    for (const [index, [entityId, resource]] of pairs.entries())
      await take(world, { rpm: 1 + index }, { entityId, resource });
    for (const [index, [entityId, resource]] of pairs.entries()) {
      assert.deepEqual(
        await readLeft(world, entityId, resource),
        { rpm: 99 - index },
        `${entityId} on ${resource}`,
      );
      assert.equal((await world.repository.getBuckets(entityId, { resource })).length, 1);
    }
    assert.equal((await world.repository.getBuckets("0")).length, 2);
  });

  test("names of the maximum length work", async (world) => {
    const entityId = "e".repeat(256);
    const resource = "r".repeat(64);
    const name = "l".repeat(64);
    await world.repository.setLimits(entityId, [Limit.perMinute(name, 10)], { resource });
    await take(world, { [name]: 1 }, { entityId, resource });
    assert.deepEqual(await readLeft(world, entityId, resource), { [name]: 9 });
  });

  test("a bucket holds many limits", async (world) => {
    const limits = Array.from({ length: 12 }, (_, index) =>
      Limit.perMinute(`limit_${index}`, 10 + index),
    );
    await world.repository.setSystemDefaults(limits);
    await take(world, Object.fromEntries(limits.map(({ name }) => [name, 1])));
    assert.deepEqual(
      await readLeft(world),
      Object.fromEntries(limits.map(({ name, capacity }) => [name, capacity - 1])),
    );
  });
};
