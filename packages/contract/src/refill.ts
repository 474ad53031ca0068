import assert from "node:assert/strict";
import { Limit } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import { call, fits, grants, KEY, readLeft, MODEL, take } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Promise 5: refill is exact, and time that goes backwards mints nothing. */
export const refillTopic: Topic = (test) => {
  test("a slow limit beside a busy fast one earns its full rate [W-24]", async (world) => {
    await world.repository.setSystemDefaults([
      Limit.perMinute("rpm", 120),
      Limit.perDay("rpd", 100),
    ]);
    await take(world, { rpm: 120, rpd: 100 });
    for (let count = 0; count < 120; count += 1) {
      await world.pass(30_000);
      await fits(world, { rpm: 60 });
    }
    assert.equal((await readLeft(world))["rpd"], 4, "100 a day are 4.17 an hour");
    await world.pass(719_999);
    assert.equal((await readLeft(world))["rpd"], 4);
    await world.pass(1);
    assert.equal((await readLeft(world))["rpd"], 5, "5 are earned after exactly 72 minutes");
  });

  test("many small refills earn what one large refill earns [W-24]", async (world) => {
    const limit = Limit.custom({
      name: "rpm",
      capacity: 700,
      refillAmount: 7,
      refillPeriodSeconds: 60,
    });
    await world.repository.setSystemDefaults([limit]);
    for (const entityId of ["often", "once"]) await take(world, { rpm: 700 }, { entityId });
    for (let count = 0; count < 300; count += 1) {
      await world.pass(37);
      await fits(world, { rpm: 0 }, { entityId: "often" });
    }
    await world.pass(60_000 - 300 * 37);
    for (const entityId of ["often", "once"])
      assert.deepEqual(await readLeft(world, entityId), { rpm: 7 }, entityId);
  });

  test("every decision and every waiting time agrees with exact fractions over a long random history", async (world) => {
    const limit = Limit.custom({
      name: "n",
      capacity: 17,
      refillAmount: 13,
      refillPeriodSeconds: 7,
    });
    await world.repository.setSystemDefaults([limit]);
    const random = seededRandom(24);
    // In units of 1/7000 token, in which one millisecond earns exactly 13.
    let balance = 17n * 7000n;
    for (let step = 0; step < 400; step += 1) {
      const ms = Math.floor(random() * random() * 3000);
      await world.pass(ms);
      balance += BigInt(ms) * 13n;
      if (balance > 17n * 7000n) balance = 17n * 7000n;
      const wanted = Math.floor(random() * 6);
      const expected = BigInt(wanted) * 7000n <= balance;
      const waitMs = expected ? 0n : (BigInt(wanted) * 7000n - balance + 12n) / 13n;
      const what = `step ${step}: ${wanted} of ${balance}/7000`;
      assert.equal(
        await world.limiter.timeUntilAvailable(KEY, MODEL, { n: wanted }),
        Number(waitMs) / 1000,
        what,
      );
      assert.equal(await fits(world, { n: wanted }), expected, what);
      if (expected) balance -= BigInt(wanted) * 7000n;
    }
  });

  test("over any interval no more is granted than the capacity and what was earned", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 3, { burst: 5 })]);
    const random = seededRandom(81);
    const history: { readonly atMs: number; readonly amount: number }[] = [];
    for (let step = 0; step < 200; step += 1) {
      await world.pass(Math.floor(random() * 400));
      const amount = 1 + Math.floor(random() * 4);
      const verdict = await world.limiter.tryAcquire(call({ rps: amount }));
      if (!verdict.granted) continue;
      if (random() < 0.2) await verdict.lease.rollback();
      else {
        await verdict.lease.commit();
        history.push({ atMs: world.clock.now(), amount });
      }
    }
    for (const [index, { atMs: fromMs }] of history.entries()) {
      let granted = 0;
      for (const { atMs, amount } of history.slice(index)) {
        granted += amount;
        assert.ok(
          granted * 1000 <= 5000 + (atMs - fromMs) * 3,
          `${granted} between ${fromMs} and ${atMs}`,
        );
      }
    }
  });

  test("time that goes backwards mints nothing, and does not freeze the bucket for longer [W-50]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
    const startMs = world.clock.now();
    await take(world, { rps: 10 });
    for (let count = 0; count < 20; count += 1) {
      world.clock.set(startMs - 5000);
      assert.equal(await fits(world, { rps: 1 }), false);
      world.clock.set(startMs);
      assert.equal(await fits(world, { rps: 1 }), false);
    }
    world.clock.set(startMs + 1000);
    assert.equal(await grants(world, { rps: 1 }, 20), 10);
  });

  test("a take by a clock that is behind does not let the same time be earned again [W-50]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 10, { burst: 100 })]);
    const startMs = world.clock.now();
    await take(world, { rps: 50 });
    for (let count = 0; count < 20; count += 1) {
      world.clock.set(startMs - 5000);
      await take(world, { rps: 1 });
      world.clock.set(startMs);
      await take(world, { rps: 1 });
    }
    world.clock.set(startMs - 5000);
    await world.limiter.acquire(call({ rps: 5 }), (lease) => lease.release({ rps: 5 }));
    world.clock.set(startMs);
    assert.deepEqual(await readLeft(world), { rps: 10 });
    assert.equal(await grants(world, { rps: 1 }, 100), 10);
  });

  test("two clocks that differ by seconds earn no more than one [W-50]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 60)]);
    const startMs = world.clock.now();
    let granted = 0;
    for (let second = 0; second <= 120; second += 1) {
      for (const behindMs of [0, 5000]) {
        world.clock.set(startMs + second * 1000 - behindMs);
        granted += await grants(world, { rpm: 1 }, 200);
      }
    }
    assert.equal(granted, 60 + 120);
  });

  test("a bucket that was last written by a clock that is ahead reports the actual wait [W-50]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
    const startMs = world.clock.now();
    world.clock.set(startMs + 3000);
    await take(world, { rps: 10 });
    world.clock.set(startMs);
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { rps: 1 }), 3.1);
    assert.deepEqual(await readLeft(world), { rps: 0 });
  });

  test("a full bucket stays full, even a day later", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 10, { burst: 15 })]);
    await take(world, { rps: 1 });
    for (const ms of [1000, 86_400_000, 400 * 86_400_000]) {
      await world.pass(ms);
      assert.deepEqual(await readLeft(world), { rps: 15 });
    }
    assert.equal(await grants(world, { rps: 1 }, 40), 15);
  });

  test("a full bucket carries no fraction into later refills", async (world) => {
    await world.repository.setSystemDefaults([
      Limit.custom({ name: "n", capacity: 1, refillAmount: 1, refillPeriodSeconds: 7 }),
    ]);
    await take(world, { n: 1 });
    await world.pass(7003);
    await take(world, { n: 1 });
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { n: 1 }), 7);
  });

  test("the largest limits are as exact as small ones", async (world) => {
    const capacity = Math.floor(Number.MAX_SAFE_INTEGER / 1000);
    await world.repository.setSystemDefaults([
      Limit.custom({ name: "big", capacity, refillAmount: 1, refillPeriodSeconds: 1 }),
    ]);
    await take(world, { big: capacity });
    assert.equal(await fits(world, { big: 1 }), false);
    await world.pass(1000);
    assert.equal(await fits(world, { big: 1 }), true);
    assert.equal(await fits(world, { big: 1 }), false);
  });
};
