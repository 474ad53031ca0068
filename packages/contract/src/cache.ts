import assert from "node:assert/strict";
import { Limit } from "zae-limiter";
import { fits, KEY, readLeft, MODEL, RPM, take } from "./calls.ts";
import type { Topic } from "./world.ts";

/**
 * The cache of stored limits: counted, bounded by time, and evicted by every writer of the process.
 */
export const cacheTopic: Topic = (test) => {
  test("counts hits and misses, and is emptied on request", async ({ repository }) => {
    await repository.setSystemDefaults([RPM]);
    const start = repository.getCacheStats();
    assert.ok(start.ttlMs >= 0);
    await repository.resolveLimits(KEY, MODEL);
    const first = repository.getCacheStats();
    assert.equal(first.misses - start.misses, 1);
    await repository.resolveLimits(KEY, MODEL);
    const second = repository.getCacheStats();
    const cached = start.ttlMs > 0;
    assert.deepEqual(
      [second.hits - first.hits, second.misses - first.misses],
      cached ? [1, 0] : [0, 1],
    );
    assert.equal(second.size > 0, cached);
    await repository.invalidateConfigCache();
    assert.equal(repository.getCacheStats().size, 0);
    await repository.resolveLimits(KEY, MODEL);
    assert.equal(repository.getCacheStats().misses - second.misses, 1);
  });

  test("caches that a level has no limits", async ({ repository }) => {
    await repository.resolveLimits(KEY, MODEL);
    const before = repository.getCacheStats();
    assert.equal(await repository.resolveLimits(KEY, MODEL), undefined);
    if (before.ttlMs > 0) assert.equal(repository.getCacheStats().misses, before.misses);
  });

  test("a cached value is read again after its time to live", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([RPM]);
    await repository.resolveLimits(KEY, MODEL);
    const before = repository.getCacheStats();
    await world.pass(before.ttlMs + 1);
    await repository.resolveLimits(KEY, MODEL);
    assert.equal(repository.getCacheStats().misses - before.misses, 1);
  });

  test("every writer evicts what it changes, even a cached absence [W-57]", async (world) => {
    const { repository } = world;
    const capacity = async (): Promise<number | undefined> =>
      (await repository.resolveLimits(KEY, MODEL))?.limits[0]?.capacity;
    assert.equal(await capacity(), undefined);
    const writers: [() => Promise<unknown>, number | undefined][] = [
      [() => repository.setSystemDefaults(limit(1)), 1],
      [() => repository.setResourceDefaults(MODEL, limit(2)), 2],
      [() => repository.setLimits(KEY, limit(3)), 3],
      [() => repository.setLimits(KEY, limit(4), { resource: MODEL }), 4],
      [() => repository.deleteEntity(KEY), 2],
      [() => repository.setResourceDefaults(MODEL, limit(5)), 5],
      [() => repository.deleteResourceDefaults(MODEL), 1],
      [() => repository.setSystemDefaults(limit(6)), 6],
      [() => repository.deleteSystemDefaults(), undefined],
    ];
    for (const [write, expected] of writers) {
      await write();
      assert.equal(await capacity(), expected, write.toString());
      if (expected !== undefined)
        assert.deepEqual(
          await readLeft(world),
          { rpm: expected },
          `the limiter after ${write.toString()}`,
        );
    }
  });

  test("a read that was overtaken by a write does not hide it [W-57]", async ({ repository }) => {
    await repository.setSystemDefaults([Limit.perMinute("rpm", 1)]);
    await repository.invalidateConfigCache();
    await Promise.all([
      repository.resolveLimits(KEY, MODEL),
      repository.setSystemDefaults([Limit.perMinute("rpm", 2)]),
    ]);
    assert.equal((await repository.resolveLimits(KEY, MODEL))?.limits[0]?.capacity, 2);
  });

  test("concurrent first calls of many entities all succeed, with one read of the limits they share [W-57]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const ids = Array.from({ length: 50 }, (_, index) => `key-${index}`);
    const answers = await Promise.all(ids.map((entityId) => fits(world, { rpm: 1 }, { entityId })));
    assert.ok(answers.every(Boolean));
    await Promise.all(
      Array.from({ length: 20 }, () => take(world, { rpm: 1 }, { entityId: "one" })),
    );
    assert.deepEqual(await readLeft(world, "one"), { rpm: 80 });
  });
};

function limit(rate: number): readonly Limit[] {
  return [Limit.perMinute("rpm", rate)];
}
