import assert from "node:assert/strict";
import { Limit } from "zae-limiter";
import { call, fits, KEY, readLeft, MODEL, getRefusal, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

const DAY_MS = 86_400_000;

/** A cost that is only known afterwards may cause debt, which then limits later calls. */
export const debtTopic: Topic = (test) => {
  test("a settlement may go into debt, which refuses calls that do not name the limit", async (world) => {
    await causeDebt(world, 1500);
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: -500 });
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.equal(refusal.retryAfterSeconds, 30);
    assert.equal(refusal.primaryViolation.limitName, "tpm");
    assert.equal(refusal.primaryViolation.requested, 0);
    assert.equal(refusal.primaryViolation.available, -500);
    assert.equal(refusal.primaryViolation.deficit, 500);
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: -500 });
  });

  test("a bucket serves again in the very millisecond in which its debt is paid", async (world) => {
    await causeDebt(world, 1500);
    await world.pass(29_999);
    assert.equal(await fits(world, { rpm: 1 }), false);
    await world.pass(1);
    assert.equal(await fits(world, { rpm: 1 }), true);
    assert.equal((await readLeft(world))["tpm"], 0);
  });

  test("a fraction of a token in debt is still debt", async (world) => {
    await causeDebt(world, 1001);
    await world.pass(59);
    assert.equal((await readLeft(world))["tpm"], -1);
    assert.equal(await fits(world, { rpm: 1 }), false);
    await world.pass(1);
    assert.equal(await fits(world, { rpm: 1 }), true);
  });

  test("debt is kept however long it takes to pay it", async (world) => {
    await causeDebt(world, 1000 + 2 * 1440 * 1000);
    await world.pass(DAY_MS);
    assert.equal((await readLeft(world))["tpm"], -1_440_000);
    const refusal = await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.equal(refusal.retryAfterSeconds, 86_400);
    await world.pass(DAY_MS);
    assert.equal(await fits(world, { rpm: 1 }), true);
  });

  test("only settlements cause debt: acquires take the balance down to zero at most", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 3)]);
    const granted = await Promise.all([2, 2, 1, 1].map((rpm) => fits(world, { rpm })));
    assert.ok(granted.some(Boolean));
    assert.ok((await readLeft(world))["rpm"]! >= 0);
  });

  test("a debt disappears when the lease that caused it is rolled back", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const large = await world.limiter.acquire(call({ rpm: 1, tpm: 900 }));
    await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.adjust({ tpm: 300 }));
    assert.equal((await readLeft(world))["tpm"], -200);
    await large.rollback();
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 700 });
  });

  test("an open lease may still settle while the limit is in debt", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const open = await world.limiter.acquire(call({ rpm: 1 }));
    await causeDebt(world, 1500);
    open.settle({ tpm: 100 });
    await open.commit();
    assert.equal((await readLeft(world))["tpm"], -600);
  });

  test("the time until amounts fit counts the debt", async (world) => {
    await causeDebt(world, 1500);
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { tpm: 100 }), 36);
    await take(world, { rpm: 1 }, { entityId: "other" });
  });
};

/** Charges the usual entity's tpm afterwards, without a check. */
async function causeDebt(world: World, tpm: number): Promise<void> {
  await world.repository.setSystemDefaults([RPM, TPM]);
  await world.limiter.acquire(call({ rpm: 1 }), (lease) => lease.settle({ tpm }));
}
