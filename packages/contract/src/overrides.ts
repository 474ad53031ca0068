import assert from "node:assert/strict";
import { Limit, ValidationError } from "zae-limiter";
import {
  call,
  failsWith,
  fits,
  footprint,
  KEY,
  readLeft,
  MODEL,
  getRefusal,
  RPM,
  take,
  TPM,
} from "./calls.ts";
import type { Topic } from "./world.ts";

/**
 * Limits that a call brings along: they apply to the same bucket, and no balance starts full twice.
 */
export const overridesTopic: Topic = (test) => {
  test("an override holds on a bucket that exists [W-38]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    const limits = [Limit.perMinute("rpm", 5)];
    let granted = 0;
    while (await fits(world, { rpm: 1 }, { limits })) granted += 1;
    assert.equal(granted, 5);
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }, { limits }));
    assert.equal(refusal.primaryViolation.source, "override");
    assert.deepEqual(refusal.primaryViolation.limit, limits[0]);
  });

  test("the next call without an override restores the stored parameters, but no tokens [W-38]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    await take(world, { rpm: 1 }, { limits: [Limit.perMinute("rpm", 5)] });
    assert.deepEqual(await readLeft(world), { rpm: 4 });
    await take(world, { rpm: 1 });
    assert.deepEqual(await readLeft(world), { rpm: 3 });
    await world.pass(60_000);
    assert.deepEqual(await readLeft(world), { rpm: 100 });
  });

  test("a larger override mints nothing, however often it alternates with the stored limits", async (world) => {
    await world.repository.setSystemDefaults([Limit.perHour("rph", 10)]);
    const limits = [Limit.perHour("rph", 1000)];
    await take(world, { rph: 10 });
    for (let count = 0; count < 3; count += 1) {
      assert.equal(await fits(world, { rph: 1 }, { limits }), false);
      assert.equal(await fits(world, { rph: 1 }), false);
    }
  });

  test("a call that is refused by its own limits takes nothing from the bucket", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 50 });
    await getRefusal(world.limiter, call({ rpm: 10 }, { limits: [Limit.perMinute("rpm", 5)] }));
    await world.limiter.check(call({ rpm: 1 }, { limits: [Limit.perMinute("rpm", 5)] }));
    assert.deepEqual(await readLeft(world), { rpm: 50 });
  });

  test("a limit that only the override has starts full once, even if it comes and goes", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const limits = [RPM, Limit.perHour("special", 3)];
    for (let count = 0; count < 3; count += 1) {
      assert.equal(await fits(world, { special: 1 }, { limits }), true);
      await take(world, { rpm: 1 });
    }
    assert.equal(await fits(world, { special: 1 }, { limits }), false);
  });

  test("disjoint overrides on one resource keep each other's refill [W-49]", async (world) => {
    const onlyRpm = { limits: [RPM] };
    const onlyTpm = { limits: [Limit.perMinute("tpm", 6000)] };
    await take(world, { rpm: 100 }, onlyRpm);
    await take(world, { tpm: 6000 }, onlyTpm);
    for (let second = 0; second < 30; second += 1) {
      await world.pass(1000);
      await fits(world, { rpm: 1 }, onlyRpm);
    }
    assert.deepEqual(await world.limiter.available(KEY, MODEL, onlyTpm), { tpm: 3000 });
    assert.equal(await fits(world, { tpm: 3000 }, onlyTpm), true);
    assert.equal(await fits(world, { tpm: 1 }, onlyTpm), false);
  });

  test("an override needs no stored limits, and its lease works in full [W-38]", async (world) => {
    const limits = [RPM, TPM];
    await world.limiter.acquire(call({ rpm: 1 }, { limits }), async (lease) => {
      await lease.consume({ tpm: 100 });
      lease.adjust({ tpm: 100 });
      assert.deepEqual(lease.consumed, { rpm: 1, tpm: 200 });
    });
    assert.deepEqual(await world.limiter.available(KEY, MODEL, { limits }), { rpm: 99, tpm: 800 });
    const undone = await world.limiter.acquire(call({ rpm: 1, tpm: 300 }, { limits }));
    await undone.rollback();
    assert.deepEqual(await world.limiter.available(KEY, MODEL, { limits }), { rpm: 99, tpm: 800 });
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { tpm: 900 }, { limits }), 6);
  });

  test("what a lease takes later is decided by the override that the lease began with [W-38]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const lease = await world.limiter.acquire(
      call({ rpm: 1 }, { limits: [Limit.perMinute("rpm", 5)] }),
    );
    await lease.consume({ rpm: 4 });
    await failsWith(Error, () => lease.consume({ rpm: 1 }));
    await lease.rollback();
    assert.deepEqual(
      await readLeft(world),
      { rpm: 5 },
      "tokens that the override cut off are not restored",
    );
  });

  test("an override applies to the entity; its parent keeps the stored limits [W-38]", async (world) => {
    await world.repository.createEntity("project");
    await world.repository.createEntity(KEY, { parentId: "project", cascade: true });
    await world.repository.setLimits("project", [Limit.perMinute("rpm", 2)]);
    const more = { limits: [RPM] };
    for (const expected of [true, true, false])
      assert.equal(await fits(world, { rpm: 1 }, more), expected);
    await world.pass(30_000);
    assert.equal(await fits(world, { rpm: 1 }, more), true);
  });

  test("an empty or malformed override is refused, not unlimited [W-37]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    await take(world, { rpm: 1 });
    const before = await footprint(world.repository);
    const bad: unknown[] = [
      [],
      [RPM, RPM],
      [{ ...RPM, name: "wcu" }],
      [{ ...RPM, capacity: 0 }],
      [{ ...RPM, refillAmount: 1.5 }],
      "rpm:100",
      [null],
    ];
    for (const limits of bad)
      await failsWith(
        ValidationError,
        () => world.limiter.acquire(call({ rpm: 1 }, { limits: limits as Limit[] })),
        JSON.stringify(limits),
      );
    await failsWith(ValidationError, () =>
      world.limiter.acquire(call({ tpm: 1 }, { limits: [RPM] })),
    );
    assert.deepEqual(await footprint(world.repository), before);
  });
};
