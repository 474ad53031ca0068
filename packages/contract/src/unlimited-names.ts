import assert from "node:assert/strict";
import { type Amounts, Limit, ValidationError } from "zae-limiter";
import { call, failsWith, fits, grants, KEY, readLeft, MODEL, take } from "./calls.ts";
import type { Topic, World } from "./world.ts";

const SYSTEM = [Limit.perMinute("rpm", 60), Limit.perMinute("tpm", 10_000)];
const RAISED = [Limit.perMinute("rpm", 600)];

/** The system limits requests and tokens; the usual entity's own list has requests only. */
async function hideTokens({ repository }: World): Promise<void> {
  await repository.setSystemDefaults(SYSTEM);
  await repository.setLimits(KEY, RAISED, { inherit: false });
}

/**
 * Reads what an entity has used of the usual resource; undefined if the backend does not record it.
 */
async function readUsed({ repository }: World, entityId = KEY): Promise<Amounts | undefined> {
  if (!repository.capabilities.usageSnapshots) return undefined;
  const { total } = await repository.getUsageSummary({ entityId, resource: MODEL });
  return total;
}

/** Limits that a call names, that its own level lacks, and that another level has. */
export const unlimitedNamesTopic: Topic = (test) => {
  test("raising one limit does not block a tenant: limits that its list lacks do not apply", async (world) => {
    const { repository, limiter } = world;
    await repository.setSystemDefaults(SYSTEM);
    assert.equal(await fits(world, { rpm: 1, tpm: 10_001 }), false);
    await repository.setLimits(KEY, RAISED, { inherit: false });
    assert.equal(await grants(world, { rpm: 1, tpm: 100_000 }, 5), 5);
    await using lease = await limiter.acquire(call({ rpm: 1, tpm: 100_000 }));
    assert.deepEqual(lease.unlimited, ["tpm"]);
    await repository.setLimits(KEY, RAISED);
    assert.equal(await fits(world, { rpm: 1, tpm: 10_001 }), false, "inherited, it holds again");
    assert.equal(await fits(world, { rpm: 1, tpm: 10_000 }), true);
  });

  test("it is not charged, nor is a balance of that name that the bucket still has", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults(SYSTEM);
    await take(world, { rpm: 1, tpm: 4000 });
    await repository.setLimits(KEY, RAISED, { inherit: false });
    await take(world, { rpm: 1, tpm: 5000 });
    await world.limiter.acquire(call({ rpm: 1, tpm: 10 }), (lease) => lease.settle({ tpm: 7000 }));
    const undone = await world.limiter.acquire(call({ rpm: 1, tpm: 3000 }));
    await undone.rollback();
    assert.deepEqual(Object.keys(await readLeft(world)), ["rpm"]);
    await repository.setLimits(KEY, RAISED);
    assert.equal((await readLeft(world))["tpm"], 6000, "neither charged nor given back");
  });

  test("the lease lists it, and accepts it in every call", async (world) => {
    await hideTokens(world);
    const lease = await world.limiter.acquire(call({ rpm: 1 }));
    assert.deepEqual(lease.unlimited, []);
    await lease.consume({ tpm: 20_000 });
    assert.deepEqual(lease.unlimited, ["tpm"]);
    assert.deepEqual(lease.consumed, { rpm: 1, tpm: 20_000 });
    lease.adjust({ tpm: 5 });
    lease.release({ tpm: 1000 });
    assert.deepEqual(lease.consumed, { rpm: 1, tpm: 19_005 });
    lease.settle({ tpm: 30_000 });
    await lease.commit();
    assert.deepEqual(await readLeft(world), { rpm: 599 });
    assert.deepEqual((await readUsed(world)) ?? { rpm: 1, tpm: 30_000 }, { rpm: 1, tpm: 30_000 });
  });

  test("a call that only settles it keeps its answer", async (world) => {
    await hideTokens(world);
    const answer = await world.limiter.acquire(call({ rpm: 1 }), (lease) => {
      lease.settle({ tpm: 700 });
      assert.deepEqual(lease.unlimited, ["tpm"]);
      assert.deepEqual(lease.resourceLease(MODEL).unlimited, ["tpm"]);
      return "paid";
    });
    assert.equal(answer, "paid");
    assert.deepEqual((await readUsed(world)) ?? { rpm: 1, tpm: 700 }, { rpm: 1, tpm: 700 });
  });

  test("every resource of a call has its own list", async (world) => {
    await world.repository.setSystemDefaults(SYSTEM);
    await world.repository.setResourceDefaults("search", [Limit.perMinute("rpm", 5)], {
      inherit: false,
    });
    const also = { search: { rpm: 1, tpm: 99_999 } };
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 1 }, { also }));
    assert.deepEqual(lease.unlimited, []);
    assert.deepEqual(lease.resourceLease("search").unlimited, ["tpm"]);
    assert.deepEqual(lease.resourceLease(MODEL).unlimited, []);
    lease.resourceLease("search").settle({ tpm: 5 });
    await lease.commit();
    assert.deepEqual(await readLeft(world), { rpm: 59, tpm: 9999 });
  });

  test("amounts that go back are no longer counted", async (world) => {
    await hideTokens(world);
    await take(world, { rpm: 1, tpm: 100 });
    const undone = await world.limiter.acquire(call({ rpm: 1, tpm: 300 }));
    await undone.rollback();
    await world.limiter.acquire(call({ rpm: 1, tpm: 500 }), (lease) => lease.settle({ tpm: 20 }));
    assert.deepEqual((await readUsed(world)) ?? { rpm: 2, tpm: 120 }, { rpm: 2, tpm: 120 });
  });

  test("a name that no level knows is refused, everywhere", async (world) => {
    await hideTokens(world);
    await failsWith(ValidationError, () => world.limiter.acquire(call({ rpm: 1, images: 1 })));
    await failsWith(ValidationError, () => world.limiter.check(call({ images: 1 })));
    await using lease = await world.limiter.acquire(call({ rpm: 1 }));
    await failsWith(ValidationError, () => lease.consume({ images: 1 }));
    await failsWith(ValidationError, () => lease.settle({ images: 1 }));
    await failsWith(ValidationError, () => lease.adjust({ images: 1 }));
    await failsWith(ValidationError, () => lease.release({ images: 0 }));
    assert.deepEqual(lease.unlimited, []);
  });

  test("a call with limits of its own names no others", async (world) => {
    await world.repository.setSystemDefaults(SYSTEM);
    const limits = RAISED;
    await failsWith(ValidationError, () => world.limiter.acquire(call({ tpm: 1 }, { limits })));
    await using lease = await world.limiter.acquire(call({ rpm: 1 }, { limits }));
    await failsWith(ValidationError, () => lease.settle({ tpm: 1 }));
    await failsWith(ValidationError, () => lease.consume({ tpm: 1 }));
  });

  test("balances and waits can be queried with such a name", async (world) => {
    await hideTokens(world);
    const { allowed, available, statuses } = await world.limiter.check(
      call({ rpm: 1, tpm: 999_999 }),
    );
    assert.equal(allowed, true);
    assert.deepEqual(available, { rpm: 600 });
    assert.deepEqual(
      statuses.map(({ limitName }) => limitName),
      ["rpm"],
    );
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { tpm: 999_999 }), 0);
  });

  test("a limit that goes while a lease is open is settled where it was taken", async (world) => {
    await world.repository.setSystemDefaults(SYSTEM);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 1000 }));
    await world.repository.setLimits(KEY, RAISED, { inherit: false });
    await lease.consume({ rpm: 1, tpm: 50_000 });
    assert.deepEqual(lease.unlimited, ["tpm"]);
    lease.settle({ tpm: 50_400 });
    await lease.commit();
    await world.repository.deleteLimits(KEY);
    assert.equal(
      (await readLeft(world))["tpm"],
      9000,
      "600 of the amounts that were only counted are not refunded",
    );
    assert.deepEqual((await readUsed(world)) ?? { rpm: 2, tpm: 50_400 }, { rpm: 2, tpm: 50_400 });
  });

  test("a limit that comes while a lease is open charges what is taken from then on", async (world) => {
    await hideTokens(world);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 1000 }));
    await world.repository.deleteLimits(KEY);
    await lease.consume({ tpm: 300 });
    lease.settle({ tpm: 1100 });
    await lease.commit();
    assert.equal((await readLeft(world))["tpm"], 9900);
    assert.deepEqual((await readUsed(world)) ?? { rpm: 1, tpm: 1100 }, { rpm: 1, tpm: 1100 });
  });

  test("a name that was accepted is settled even if every level has lost it since", async (world) => {
    await hideTokens(world);
    const counted = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    await world.repository.deleteLimits(KEY);
    const charged = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 60)]);
    await take(world, { rpm: 1 });
    for (const lease of [counted, charged]) {
      lease.settle({ tpm: 250 });
      await lease.commit();
    }
    await failsWith(ValidationError, () => world.limiter.acquire(call({ tpm: 1 })));
    assert.deepEqual((await readUsed(world)) ?? { rpm: 3, tpm: 500 }, { rpm: 3, tpm: 500 });
  });

  test("a parent whose list lacks it counts it, if another of its levels knows it", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults(SYSTEM);
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project", cascade: true });
    await repository.setLimits("project", RAISED, { inherit: false });
    await repository.setLimits(KEY, [...SYSTEM, Limit.perDay("images", 5)], { inherit: false });
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 100, images: 1 }));
    assert.deepEqual(lease.unlimited, []);
    lease.settle({ tpm: 70 });
    await lease.commit();
    await world.limiter.acquire(call({ rpm: 1 }), (open) => open.settle({ tpm: 30, images: 1 }));
    const undone = await world.limiter.acquire(call({ rpm: 1, tpm: 1 }));
    await undone.rollback();
    assert.deepEqual(await readLeft(world), { rpm: 58, tpm: 9900, images: 3 });
    const parents = (await readUsed(world, "project")) ?? { rpm: 2, tpm: 100 };
    assert.deepEqual(parents, { rpm: 2, tpm: 100 }, "the parent does not count images");
  });
};
