import assert from "node:assert/strict";
import { Limit, type Repository, ValidationError } from "zae-limiter";
import { call, failsWith, fits, grants, KEY, readLeft, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** The ways to set limits that apply to the usual entity. */
const LEVELS: Readonly<
  Record<string, (repository: Repository, limits: readonly Limit[]) => Promise<void>>
> = {
  entity: (repository, limits) => repository.setLimits(KEY, limits, { resource: MODEL }),
  "entity default": (repository, limits) => repository.setLimits(KEY, limits),
  resource: (repository, limits) => repository.setResourceDefaults(MODEL, limits),
  system: (repository, limits) => repository.setSystemDefaults(limits),
};

/** Promise 7: configuration reaches existing buckets, and no change of it mints tokens. */
export const policyChangesTopic: Topic = (test) => {
  for (const [level, set] of Object.entries(LEVELS)) {
    test(`a change at the ${level} level reaches a bucket that exists [W-39]`, async (world) => {
      await set(world.repository, [Limit.perMinute("rpm", 10)]);
      assert.equal(await grants(world, { rpm: 1 }, 20), 10);
      await set(world.repository, [Limit.perMinute("rpm", 600)]);
      assert.equal(
        await fits(world, { rpm: 1 }),
        false,
        "a raised capacity mints nothing by itself",
      );
      await world.pass(1000);
      assert.equal(await grants(world, { rpm: 1 }, 20), 10, "and is earned at the new rate");
      await world.pass(60_000);
      assert.deepEqual(await readLeft(world), { rpm: 600 });
    });

    test(`a capacity lowered at the ${level} level cuts off the balance above it [W-40]`, async (world) => {
      await set(world.repository, [Limit.perMinute("rpm", 1000)]);
      await take(world, { rpm: 1 });
      await set(world.repository, [Limit.perMinute("rpm", 10)]);
      assert.deepEqual(await readLeft(world), { rpm: 10 });
      assert.equal(await grants(world, { rpm: 1 }, 200), 10);
    });
  }

  test("a stronger level that appears or goes away takes effect on the bucket [W-39]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perHour("rpm", 10)]);
    await take(world, { rpm: 1 });
    await world.repository.setLimits(KEY, [Limit.perHour("rpm", 3)]);
    assert.equal(await grants(world, { rpm: 1 }, 20), 3);
    await world.repository.deleteLimits(KEY);
    assert.equal(await grants(world, { rpm: 1 }, 20), 0);
    await world.pass(3_600_000);
    assert.deepEqual(await readLeft(world), { rpm: 10 });
  });

  test("a limit that is added starts full, and the others stay as they were", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 40 });
    await world.repository.setSystemDefaults([RPM, TPM]);
    assert.deepEqual(await readLeft(world), { rpm: 60, tpm: 1000 });
    await take(world, { rpm: 1, tpm: 100 });
    assert.deepEqual(await readLeft(world), { rpm: 59, tpm: 900 });
  });

  test("a limit that is removed is neither charged nor known, and does not refuse", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 1, tpm: 1000 });
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    assert.deepEqual(await readLeft(world), { rpm: 98 });
    await failsWith(ValidationError, () => world.limiter.acquire(call({ tpm: 1 })));
    assert.deepEqual(
      [...new Set((await world.repository.getBuckets(KEY)).map(({ limitName }) => limitName))],
      ["rpm"],
    );
  });

  test("a limit that goes and comes back resumes, so that toggling mints nothing", async (world) => {
    await world.repository.setSystemDefaults([RPM, Limit.perHour("rph", 60)]);
    await take(world, { rpm: 1, rph: 60 });
    for (let count = 0; count < 3; count += 1) {
      await world.repository.setSystemDefaults([RPM]);
      await take(world, { rpm: 1 });
      await world.repository.setSystemDefaults([RPM, Limit.perHour("rph", 60)]);
      assert.equal(await fits(world, { rph: 1 }), false);
    }
    await world.repository.setSystemDefaults([RPM]);
    await world.pass(30 * 60_000);
    await take(world, { rpm: 1 });
    await world.repository.setSystemDefaults([RPM, Limit.perHour("rph", 60)]);
    assert.equal((await readLeft(world))["rph"], 30);
  });

  test("changing a limit back and forth, with calls in between, mints nothing", async (world) => {
    const hourly = [Limit.perHour("rpm", 60)];
    await world.repository.setSystemDefaults(hourly);
    await take(world, { rpm: 60 });
    for (const limits of [
      [Limit.perHour("rpm", 600)],
      hourly,
      [Limit.perSecond("rpm", 7)],
      hourly,
      [Limit.perDay("rpm", 86_400)],
      hourly,
    ]) {
      await world.repository.setSystemDefaults(limits);
      assert.equal(await fits(world, { rpm: 1 }), false);
    }
  });

  test("a change of rate does not turn the remainder of a token into tokens", async (world) => {
    await world.repository.setSystemDefaults([
      Limit.custom({
        name: "rpd",
        capacity: 1001,
        refillAmount: 1001,
        refillPeriodSeconds: 86_400,
      }),
    ]);
    await take(world, { rpd: 1001 });
    await world.pass(86_313);
    assert.equal(await fits(world, { rpd: 1 }), false);
    await world.repository.setSystemDefaults([Limit.perDay("rpd", 86_400)]);
    assert.equal(await fits(world, { rpd: 1 }), false);
    await world.pass(1000);
    assert.equal(await grants(world, { rpd: 1 }, 5), 1);
  });

  test("debt survives a change of configuration", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.settle({ tpm: 3000 }));
    await world.repository.setSystemDefaults([RPM, Limit.perMinute("tpm", 500)]);
    assert.equal((await readLeft(world))["tpm"], -2000);
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    await world.repository.setSystemDefaults([RPM, TPM]);
    assert.equal((await readLeft(world))["tpm"], -2000);
  });

  test("a lease that is open while limits change settles and gives back without minting", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const settled = await world.limiter.acquire(call({ rpm: 50 }));
    const undone = await world.limiter.acquire(call({ rpm: 50 }));
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 20)]);
    assert.equal(await fits(world, { rpm: 1 }), false);
    await undone.rollback();
    assert.deepEqual(await readLeft(world), { rpm: 20 });
    settled.settle({ rpm: 60 });
    await settled.commit();
    assert.deepEqual(await readLeft(world), { rpm: 10 });
  });

  test("the parent's limits follow their configuration too [W-39]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    await take(world, { rpm: 1 });
    await world.repository.setLimits("project", [Limit.perHour("rpm", 2)]);
    assert.equal(await grants(world, { rpm: 1 }, 10), 2);
  });
};
