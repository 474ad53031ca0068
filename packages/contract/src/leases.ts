import assert from "node:assert/strict";
import { Limit, RateLimitExceeded, ValidationError } from "zae-limiter";
import { call, failsWith, KEY, readLeft, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** Promise 4: a lease writes what the work really cost, and gives back what was not used. */
export const leasesTopic: Topic = (test) => {
  test("commits when the work returns, and returns its result", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const result = await world.limiter.acquire(call({ rpm: 1, tpm: 500 }), async (lease) => {
      lease.settle({ tpm: 300 });
      return `${lease.entityId} on ${lease.resource}`;
    });
    assert.equal(result, `${KEY} on ${MODEL}`);
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 700 });
  });

  for (const [what, thrown] of [
    ["an error", new Error("the model failed")],
    ["a value that is not an error", "interrupted"],
    ["undefined", undefined],
  ] as const) {
    test(`gives everything back when the work throws ${what}, and rethrows it [W-45]`, async (world) => {
      await world.repository.setSystemDefaults([RPM, TPM]);
      const run = world.limiter.acquire(call({ rpm: 1, tpm: 500 }), async (lease) => {
        lease.adjust({ tpm: 5000 });
        throw thrown;
      });
      const caught: unknown = await run.then(
        () => "returned",
        (error: unknown) => ({ error }),
      );
      assert.deepEqual(caught, { error: thrown });
      assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 1000 });
    });
  }

  test("the end of a block rolls back unless the lease was committed [W-45]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    {
      await using lease = await world.limiter.acquire(call({ rpm: 10 }));
      assert.deepEqual(lease.consumed, { rpm: 10 });
      assert.deepEqual(await readLeft(world), { rpm: 90 });
    }
    assert.deepEqual(await readLeft(world), { rpm: 100 });
    {
      await using lease = await world.limiter.acquire(call({ rpm: 10 }));
      await lease.commit();
    }
    assert.deepEqual(await readLeft(world), { rpm: 90 });
  });

  test("a difference on a limit that the call did not name is charged, every time [W-31]", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    for (const tpm of [900, 800, 700]) {
      await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.adjust({ tpm: 100 }));
      assert.equal((await readLeft(world))["tpm"], tpm);
    }
    await world.limiter.acquire(call({ rpm: 1, tpm: 0 }), (lease) => lease.settle({ tpm: 100 }));
    assert.deepEqual(await readLeft(world), { rpm: 96, tpm: 600 });
  });

  test("the last settle counts, and adjustments add up", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 500 }));
    lease.settle({ tpm: 900 });
    lease.settle({ tpm: 100 });
    assert.deepEqual(lease.consumed, { rpm: 1, tpm: 100 });
    lease.adjust({ tpm: 40, rpm: 1 });
    lease.release({ tpm: 15 });
    assert.deepEqual(lease.consumed, { rpm: 2, tpm: 125 });
    assert.deepEqual(
      await readLeft(world),
      { rpm: 99, tpm: 500 },
      "nothing is written before the commit",
    );
    await lease.commit();
    assert.deepEqual(await readLeft(world), { rpm: 98, tpm: 875 });
  });

  test("does not give back more than was consumed [W-37]", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 10 }));
    await failsWith(ValidationError, () => lease.release({ tpm: 11 }));
    await failsWith(ValidationError, () => lease.adjust({ tpm: -11 }));
    await failsWith(ValidationError, () => lease.adjust({ rpm: 1, tpm: -11 }));
    lease.release({ tpm: 10 });
    await failsWith(ValidationError, () => lease.release({ tpm: 1 }));
    await lease.commit();
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 1000 });
  });

  test("tokens that go back never lift a bucket above its capacity", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const lease = await world.limiter.acquire(call({ rpm: 50 }));
    await world.pass(60_000);
    await lease.rollback();
    assert.deepEqual(await readLeft(world), { rpm: 100 });
    const [bucket] = await world.repository.getBuckets(KEY);
    assert.ok(bucket === undefined || bucket.tokensMilli <= bucket.capacityMilli);
  });

  test("taking more on a lease is decided by the store, not by the lease [W-48]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 100)]);
    const first = await world.limiter.acquire(call({ rpm: 1 }));
    const second = await world.limiter.acquire(call({ rpm: 1 }));
    await first.consume({ rpm: 90 });
    const refused = await failsWith(RateLimitExceeded, () => second.consume({ rpm: 90 }));
    assert.equal(refused.primaryViolation.available, 8);
    assert.deepEqual(second.consumed, { rpm: 1 });
    assert.deepEqual(await readLeft(world), { rpm: 8 });
    await first.commit();
    await second.commit();
    assert.deepEqual(await readLeft(world), { rpm: 8 });
  });

  test("tokens taken later are settled and given back with the rest", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const settled = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    await settled.consume({ tpm: 200 });
    assert.deepEqual(settled.consumed, { rpm: 1, tpm: 300 });
    settled.settle({ tpm: 250 });
    await settled.commit();
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 750 });
    const undone = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    await undone.consume({ tpm: 200, rpm: 4 });
    await undone.rollback();
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 750 });
  });

  test("later changes to the caller's own objects have no effect", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 50 });
    const consume = { rpm: 1 };
    const lease = await world.limiter.acquire(call(consume));
    consume.rpm = 40;
    await lease.rollback();
    assert.deepEqual(await readLeft(world), { rpm: 50, tpm: 1000 });
    const totals = { tpm: 10 };
    await world.limiter.acquire(call({ rpm: 1 }), (held) => {
      held.settle(totals);
      totals.tpm = 999;
    });
    assert.deepEqual(await readLeft(world), { rpm: 49, tpm: 990 });
  });
};
