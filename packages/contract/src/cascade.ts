import assert from "node:assert/strict";
import { Limit, RateLimitExceeded } from "zae-limiter";
import {
  call,
  failsWith,
  fits,
  KEY,
  readLeft,
  MODEL,
  getRefusal,
  RPM,
  take,
  TPM,
} from "./calls.ts";
import type { Topic, World } from "./world.ts";

/** Promise 2 over entity and parent: charged on both, or on neither. */
export const cascadeTopic: Topic = (test) => {
  test("takes from the entity and from its parent", async (world) => {
    await createFamily(world);
    await take(world, { rpm: 1, tpm: 100 });
    assert.deepEqual(await readLeft(world, "project"), { rpm: 4, tpm: 900 });
    assert.deepEqual(
      await world.limiter.available(KEY, MODEL),
      { rpm: 4, tpm: 900 },
      "the lower of both",
    );
    assert.equal(await readStored(world, KEY, "rpm"), 99_000);
  });

  test("an exhausted parent refuses like any limit, and nothing is charged [W-30]", async (world) => {
    await createFamily(world);
    for (let count = 0; count < 5; count += 1) assert.equal(await fits(world, { rpm: 1 }), true);
    const before = await readStored(world, KEY, "rpm");
    const refusal = await failsWith(RateLimitExceeded, () =>
      world.limiter.acquire(call({ rpm: 1 })),
    );
    assert.equal(refusal.primaryViolation.entityId, "project");
    assert.equal(refusal.retryAfterSeconds, 720);
    assert.deepEqual(
      refusal.statuses.map(({ entityId, limitName }) => `${entityId}.${limitName}`),
      [`${KEY}.rpm`, `${KEY}.tpm`, "project.rpm", "project.tpm"],
    );
    assert.equal(await readStored(world, KEY, "rpm"), before);
  });

  test("an exhausted child charges its parent nothing", async (world) => {
    await createFamily(world);
    await world.repository.setLimits(KEY, [Limit.perMinute("rpm", 1), TPM]);
    await take(world, { rpm: 1 });
    await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.deepEqual(await readLeft(world, "project"), { rpm: 4, tpm: 1000 });
  });

  test("settlement and rollback reach the parent too", async (world) => {
    await createFamily(world);
    await world.limiter.acquire(call({ rpm: 1, tpm: 500 }), (lease) => lease.settle({ tpm: 200 }));
    assert.deepEqual(await readLeft(world, "project"), { rpm: 4, tpm: 800 });
    const lease = await world.limiter.acquire(call({ rpm: 2, tpm: 100 }));
    await lease.consume({ tpm: 100 });
    assert.deepEqual(await readLeft(world, "project"), { rpm: 2, tpm: 600 });
    await lease.rollback();
    assert.deepEqual(await readLeft(world, "project"), { rpm: 4, tpm: 800 });
    assert.equal(await readStored(world, KEY, "tpm"), 800_000);
  });

  test("a lease counts what its entity consumed, not the parent's share on top [W-79]", async (world) => {
    await createFamily(world);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    assert.deepEqual(lease.consumed, { rpm: 1, tpm: 100 });
    await lease.consume({ tpm: 50 });
    assert.deepEqual(lease.consumed, { rpm: 1, tpm: 150 });
    await lease.commit();
  });

  test("children share what their parent has", async (world) => {
    await createFamily(world);
    await world.repository.createEntity("key-2", { parentId: "project", cascade: true });
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        fits(world, { rpm: 1 }, { entityId: `key-${1 + (index % 2)}` }),
      ),
    );
    const granted = answers.filter(Boolean).length;
    assert.ok(granted <= 5, `${granted} were granted of 5`);
    let more = 0;
    while (await fits(world, { rpm: 1 })) more += 1;
    assert.equal(granted + more, 5);
    assert.equal((await readLeft(world, "project"))["rpm"], 0);
  });

  test("a parent in debt refuses its children", async (world) => {
    await createFamily(world);
    await take(world, { rpm: 1 }, { entityId: "project" });
    await world.limiter.acquire(call({ rpm: 1 }, { entityId: "project" }), (lease) =>
      lease.settle({ tpm: 1500 }),
    );
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.deepEqual(
      [refusal.primaryViolation.entityId, refusal.primaryViolation.limitName],
      ["project", "tpm"],
    );
    assert.equal(refusal.retryAfterSeconds, 30);
  });

  test("a limit that the parent lacks is not charged there, and one that only the parent has is not required", async (world) => {
    await createFamily(world);
    await world.repository.setLimits("project", [TPM, Limit.perDay("rpd", 10)], { inherit: false });
    await world.limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => lease.adjust({ rpm: 1 }));
    assert.deepEqual(await readLeft(world, "project"), { tpm: 900, rpd: 10 });
    assert.equal(await readStored(world, KEY, "rpm"), 98_000);
  });

  test("a parent without limits of its own has the defaults, the allowance of one key", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([Limit.perMinute("rpm", 10)]);
    await repository.createEntity("project");
    for (const id of [KEY, "key-2"])
      await repository.createEntity(id, { parentId: "project", cascade: true });
    const granted = async (entityId: string): Promise<number> => {
      let count = 0;
      while (count < 20 && (await fits(world, { rpm: 1 }, { entityId }))) count += 1;
      return count;
    };
    assert.deepEqual([await granted(KEY), await granted("key-2")], [10, 0]);
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }, { entityId: "key-2" }));
    assert.equal(refusal.primaryViolation.entityId, "project");
    await repository.setLimits("project", [Limit.perMinute("rpm", 20)]);
    assert.equal(await granted("key-2"), 0, "nothing is minted");
    await world.pass(60_000);
    assert.deepEqual([await granted(KEY), await granted("key-2")], [10, 10]);
  });

  test("a parent without limits is not charged", async (world) => {
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    await world.repository.setLimits(KEY, [RPM]);
    await take(world, { rpm: 1 });
    assert.deepEqual(await world.repository.getBuckets("project"), []);
    assert.deepEqual(await readLeft(world), { rpm: 99 });
  });

  test("a child that does not cascade leaves its parent alone, and cascading goes up one level only", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.createEntity("company");
    await world.repository.createEntity("project", { parentId: "company", cascade: true });
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    await world.repository.createEntity("key-2", { parentId: "project" });
    await take(world, { rpm: 1 });
    await take(world, { rpm: 1 }, { entityId: "key-2" });
    assert.equal(await readStored(world, "project", "rpm"), 99_000);
    assert.deepEqual(await world.repository.getBuckets("company"), []);
  });

  test("an entity that is created after its first call cascades from then on [W-41]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    for (let count = 0; count < 3; count += 1) await take(world, { rpm: 1 });
    assert.deepEqual(await readLeft(world, "project"), { rpm: 97 });
    assert.equal(await readStored(world, KEY, "rpm"), 96_000);
  });

  test("a child has no more available than its parent leaves it [W-53]", async (world) => {
    await createFamily(world);
    await take(world, { rpm: 5 }, { entityId: "project" });
    assert.deepEqual(await readLeft(world), { rpm: 0, tpm: 1000 });
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { rpm: 1 }), 720);
    assert.equal((await world.limiter.check(call({ rpm: 1 }))).allowed, false);
  });
};

/** A child with 100 rpm under a project with 5 an hour. */
async function createFamily(world: World): Promise<void> {
  await world.repository.setSystemDefaults([RPM, TPM]);
  await world.repository.createEntity("project");
  await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
  await world.repository.setLimits("project", [Limit.perHour("rpm", 5), TPM]);
}

/** The stored balance of one limit over all shards. */
async function readStored(
  { repository }: World,
  entityId: string,
  limitName: string,
): Promise<number> {
  const buckets = await repository.getBuckets(entityId, { resource: MODEL });
  return buckets
    .filter((bucket) => bucket.limitName === limitName)
    .reduce((sum, { tokensMilli }) => sum + tokensMilli, 0);
}
