import assert from "node:assert/strict";
import {
  InvalidIdentifierError,
  InvalidNameError,
  Limit,
  NamespaceNotFoundError,
  RateLimiter,
  ValidationError,
} from "zae-limiter";
import { allPages, call, failsWith, KEY, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

const IDS = Array.from({ length: 25 }, (_, index) => `key-${String(index).padStart(2, "0")}`);

/** Buckets and levels that are read by name, one or many at once, and those of a resource. */
export const readsOfManyTopic: Topic = (test) => {
  test("one bucket is read by its name", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 10, tpm: 1 });
    await take(world, { rpm: 1 }, { resource: "search" });
    const states = await repository.getBucket(KEY, MODEL);
    assert.deepEqual(states, await repository.getBuckets(KEY, { resource: MODEL }));
    assert.deepEqual(
      states?.map(({ limitName, available }) => [limitName, available]),
      [
        ["rpm", 90],
        ["tpm", 999],
      ],
    );
    assert.equal(await repository.getBucket(KEY, MODEL, { shard: 1 }), undefined);
    assert.equal(await repository.getBucket(KEY, "never"), undefined);
    assert.equal(await repository.getBucket("stranger", MODEL), undefined);
    for (const shard of [-1, 0.5, Number.NaN, "0" as unknown as number])
      await failsWith(ValidationError, () => repository.getBucket(KEY, MODEL, { shard }));
    await failsWith(InvalidIdentifierError, () => repository.getBucket("a#b", MODEL));
    await failsWith(InvalidNameError, () => repository.getBucket(KEY, "a#b"));
  });

  test("a bucket of a deleted namespace is not read", async ({ repository }) => {
    await repository.registerNamespace("tenant");
    const tenant = await repository.namespace("tenant");
    await tenant.setSystemDefaults([RPM]);
    await take({ limiter: new RateLimiter({ repository: tenant }) }, { rpm: 1 });
    assert.equal((await tenant.getBucket(KEY, MODEL))?.length, 1);
    await repository.deleteNamespace("tenant");
    await failsWith(NamespaceNotFoundError, () => tenant.getBucket(KEY, MODEL));
  });

  test("buckets of many entities are read at once, in the order of the ids, each once", async (world) => {
    const { repository } = world;
    await useByMany(world);
    await take(world, { rpm: 1 }, { entityId: IDS[3]!, resource: "search" });
    const asked = [...IDS, "stranger", IDS[0]!].toReversed();
    for (const resource of [undefined, MODEL, "search"]) {
      const options = resource === undefined ? {} : { resource };
      const buckets = await repository.batchGetBuckets(asked, options);
      assert.deepEqual([...buckets.keys()], [...new Set(asked)]);
      for (const [entityId, states] of buckets) {
        const all = await repository.getBuckets(entityId);
        const wanted = all.filter((state) => [undefined, state.resource].includes(resource));
        assert.deepEqual(byShard(states), byShard(wanted), `${entityId} on ${resource}`);
      }
    }
    const split = (await repository.batchGetBuckets([IDS[0]!], { resource: MODEL })).get(IDS[0]!);
    const capacities = split?.map((state) => (state.limitName === "rpm" ? state.capacityMilli : 0));
    assert.equal(
      capacities?.reduce((sum, each) => sum + each),
      100_000,
      "of all shards",
    );
    assert.equal((await repository.batchGetBuckets([])).size, 0);
  });

  test("buckets of a resource are listed with totals and shards, in pages", async (world) => {
    const { repository } = world;
    await useByMany(world);
    await repository.setLimits("other", [TPM], { inherit: false });
    await take(world, { tpm: 1 }, { entityId: "other" });
    await take(world, { rpm: 1 }, { entityId: "elsewhere", resource: "search" });
    await world.pass(30_000);
    for (const limit of [1, 7, 26, 100]) {
      const found = await allPages((paging) => repository.getResourceBuckets(MODEL, paging), limit);
      assert.deepEqual(
        found.map(({ entityId }) => entityId),
        [...IDS, "other"],
        `pages of ${limit}`,
      );
      for (const { entityId, shards } of found)
        assert.deepEqual(byShard(shards), byShard(await repository.getBuckets(entityId)));
    }
    const { items } = await repository.getResourceBuckets(MODEL, { limitName: "rpm" });
    assert.deepEqual(items.flatMap(({ limits }) => limits).length, IDS.length, "one of each");
    const { entities } = await repository.getResourceCapacity(MODEL, "rpm");
    assert.deepEqual(
      items.map(({ entityId, limits: [rpm] }) => [
        entityId,
        rpm?.limitName,
        rpm?.available,
        rpm?.capacityMilli,
        rpm?.totalConsumedMilli,
      ]),
      entities.map(({ entityId, available, capacity }, index) => [
        entityId,
        "rpm",
        available,
        capacity * 1000,
        (index + 60) * 1000,
      ]),
    );
    assert.deepEqual(await repository.getResourceBuckets(MODEL, { limitName: "never" }), {
      items: [],
      cursor: undefined,
    });
    assert.deepEqual((await repository.getResourceBuckets("never")).items, []);
  });

  test("a total counts debt", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.settle({ rpm: 150 }));
    const [bucket] = (await world.repository.getResourceBuckets(MODEL)).items;
    assert.deepEqual(bucket?.limits, [
      { limitName: "rpm", available: -50, capacityMilli: 100_000, totalConsumedMilli: 150_000 },
    ]);
  });

  test("many levels are read at once, in the order of their names", async ({ repository }) => {
    await repository.setSystemDefaults([RPM, TPM]);
    await repository.setResourceDefaults(MODEL, [TPM], { inherit: true });
    await repository.setLimits(KEY, [RPM]);
    await repository.setLimits(KEY, [TPM, RPM], { resource: MODEL });
    const names = [{ entityId: KEY, resource: MODEL }, { entityId: "other" }, {}];
    const levels = [...names, { resource: MODEL }, { entityId: KEY }, { resource: MODEL }];
    assert.deepEqual(
      await repository.batchGetLevels(levels),
      await Promise.all(levels.map((level) => repository.getLevel(level))),
    );
    assert.deepEqual(await repository.batchGetLevels([]), []);
  });

  test("refuses lists that are none, too long, or name something invalid", async ({
    repository,
  }) => {
    const lists: readonly unknown[] = [
      undefined,
      KEY,
      5,
      Array.from({ length: 10_001 }, () => KEY),
    ];
    for (const list of lists) {
      const entityIds = list as readonly string[];
      const levels = list as readonly object[];
      const ofIds = await failsWith(ValidationError, () => repository.batchGetBuckets(entityIds));
      const ofLevels = await failsWith(ValidationError, () => repository.batchGetLevels(levels));
      assert.deepEqual([ofIds.field, ofLevels.field], ["entityIds", "levels"]);
    }
    const error = await failsWith(InvalidIdentifierError, () =>
      repository.batchGetBuckets([KEY, "a#b"]),
    );
    assert.equal(error.field, "entityIds[1]");
    await failsWith(InvalidNameError, () => repository.batchGetBuckets([], { resource: "" }));
    await failsWith(ValidationError, () =>
      repository.batchGetLevels([{}, KEY as unknown as object]),
    );
    await failsWith(InvalidNameError, () => repository.batchGetLevels([{ resource: "a#b" }]));
    await failsWith(InvalidNameError, () => repository.getResourceBuckets("a#b"));
    await failsWith(InvalidNameError, () =>
      repository.getResourceBuckets(MODEL, { limitName: "" }),
    );
    await failsWith(ValidationError, () => repository.getResourceBuckets(MODEL, { limit: 0 }));
    await failsWith(ValidationError, () =>
      repository.getResourceBuckets(MODEL, { cursor: "of another query" }),
    );
  });
};

/** Each entity takes a different amount; where buckets can be split, two of them are. */
async function useByMany(world: World): Promise<void> {
  const { repository } = world;
  await repository.setSystemDefaults([Limit.perHour("rpm", 100), TPM]);
  for (const [index, entityId] of IDS.entries())
    await take(world, { rpm: index + 60, tpm: 1 }, { entityId });
  await repository.splitBucket?.(IDS[0]!, MODEL, { shards: 4 });
  await repository.splitBucket?.(IDS[9]!, MODEL, { shards: 2 });
}

function byShard<State extends { readonly resource: string; readonly shard: number }>(
  states: readonly State[],
): readonly State[] {
  return states.toSorted(
    (left, right) => left.resource.localeCompare(right.resource) || left.shard - right.shard,
  );
}
