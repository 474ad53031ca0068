import assert from "node:assert/strict";
import { type Amounts, Limit, RateLimitExceeded, ValidationError } from "zae-limiter";
import {
  call,
  failsWith,
  fits,
  getRefusal,
  KEY,
  MODEL,
  readLeft,
  RPM,
  take,
  TPM,
} from "./calls.ts";
import { watch } from "./watch.ts";
import type { Topic, World } from "./world.ts";

/** A daily quota of what calls state as `tpm`. */
const TPD = Limit.quota("tpd", 1500, { every: "day", zone: "UTC" }, { counts: "tpm" });

async function readUsed({ repository }: World): Promise<Amounts | undefined> {
  if (!repository.capabilities.usageSnapshots) return undefined;
  return (await repository.getUsageSummary({ entityId: KEY, resource: MODEL })).total;
}

/** Limits that count what calls state by another name. */
export const countsTopic: Topic = (test) => {
  test("an operator adds a daily quota without a change of code", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const request = { rpm: 1, tpm: 400 };
    await take(world, request);
    await world.repository.setSystemDefaults([RPM, TPM, TPD]);
    await take(world, request);
    assert.deepEqual(await readLeft(world), { rpm: 98, tpm: 200, tpd: 1100 });
    await world.pass(60_000);
    await take(world, { rpm: 1, tpm: 1000 });
    await world.pass(60_000);
    const refusal = await getRefusal(world.limiter, call(request));
    const { limitName, requested, available, limit } = refusal.primaryViolation;
    assert.deepEqual([limitName, requested, available], ["tpd", 400, 100]);
    assert.deepEqual(limit, TPD);
    const { statuses } = await world.limiter.check(call({ tpm: 7 }));
    assert.deepEqual(
      statuses.map((status) => status.requested),
      [0, 7, 7],
    );
  });

  test("its own name comes first, and nothing is counted over two names", async (world) => {
    const chain = Limit.perMinute("chain", 1000, { counts: "tpd" });
    await world.repository.setSystemDefaults([TPM, TPD, chain]);
    await take(world, { tpm: 100 });
    assert.deepEqual(await readLeft(world), { tpm: 900, tpd: 1400, chain: 1000 });
    await take(world, { tpm: 100, tpd: 1 });
    assert.deepEqual(await readLeft(world), { tpm: 800, tpd: 1399, chain: 999 });
  });

  test("a lease changes what it counts by the name that the acquire used", async (world) => {
    await world.repository.setSystemDefaults([TPM, TPD]);
    const left = async (lease: { commit(): Promise<void> }): Promise<Amounts> => {
      await lease.commit();
      return readLeft(world);
    };
    const settled = await world.limiter.acquire(call({ tpm: 100 }));
    await settled.consume({ tpm: 50 });
    assert.deepEqual(settled.consumed, { tpm: 150, tpd: 150 });
    assert.deepEqual(settled.unlimited, []);
    settled.settle({ tpm: 90 });
    settled.adjust({ tpm: 20 });
    settled.release({ tpm: 10 });
    assert.deepEqual(settled.consumed, { tpm: 100, tpd: 100 });
    for (const change of ["settle", "adjust", "release"] as const)
      await failsWith(ValidationError, () => settled[change]({ tpd: 1 }));
    await failsWith(ValidationError, () => settled.consume({ tpd: 1 }));
    assert.deepEqual(await left(settled), { tpm: 900, tpd: 1400 });

    const own = await world.limiter.acquire(call({ tpm: 100, tpd: 10 }));
    await own.consume({ tpm: 50 });
    own.settle({ tpm: 50 });
    assert.deepEqual(await left(own), { tpm: 850, tpd: 1390 });

    const more = await world.limiter.acquire(call({ tpm: 100 }));
    more.settle({ tpm: 300 });
    assert.deepEqual(await left(more), { tpm: 550, tpd: 1090 });
    await (await world.limiter.acquire(call({ tpm: 100 }))).rollback();
    await failsWith(RateLimitExceeded, () => world.limiter.acquire(call({ tpm: 551 })));
    assert.deepEqual(await readLeft(world), { tpm: 550, tpd: 1090 });
    const used = { tpm: 450, tpd: 410 };
    assert.deepEqual((await readUsed(world)) ?? used, used);
  });

  test("a name that limits only count is known, and neither charged nor unlimited", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPD]);
    const lease = await world.limiter.acquire(call({ rpm: 1, tpm: 100 }));
    assert.deepEqual([lease.consumed, lease.unlimited], [{ rpm: 1, tpd: 100 }, []]);
    lease.settle({ tpm: 70 });
    await lease.commit();
    await world.limiter.charge({ entityId: KEY, resource: MODEL, amounts: { tpm: 30 } });
    assert.deepEqual(await readLeft(world), { rpm: 99, tpd: 1400 });
    const used = { rpm: 1, tpd: 100 };
    assert.deepEqual((await readUsed(world)) ?? used, used);
    await world.repository.setLimits(KEY, [RPM], { inherit: false });
    assert.equal(await fits(world, { rpm: 1, tpm: 1 }), true, "another level counts it");
    await failsWith(ValidationError, () => world.limiter.acquire(call({ rpm: 1, ipm: 1 })));
  });

  test("charges, also into debt, and further resources", async (world) => {
    await world.repository.setSystemDefaults([TPM, TPD]);
    const amounts = { tpm: 1600 };
    await world.limiter.charge({
      entityId: KEY,
      resource: MODEL,
      amounts,
      also: { b: { tpm: 5 } },
    });
    assert.deepEqual(await readLeft(world), { tpm: -600, tpd: -100 });
    await take(world, { tpm: 5 }, { resource: "c", also: { b: { tpm: 10 } } });
    assert.deepEqual(await readLeft(world, KEY, "b"), { tpm: 985, tpd: 1485 });
  });

  test("a parent counts by its own configuration, and its waiting calls are woken", async (world) => {
    const { repository, limiter } = world;
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project", cascade: true });
    await repository.setSystemDefaults([TPM]);
    await repository.setLimits("project", [Limit.perDay("tpd", 1000, { counts: "tpm" })], {
      inherit: false,
    });
    const lease = await limiter.acquire(call({ tpm: 900 }));
    assert.deepEqual(lease.consumed, { tpm: 900 });
    assert.deepEqual(await readLeft(world, "project"), { tpd: 100 });
    const waiting = watch(
      limiter.acquire(call({ tpm: 700 }, { entityId: "project", waitUpToMs: 80_000_000 })),
    );
    await world.pass(0);
    lease.settle({ tpm: 200 });
    await lease.commit();
    await world.pass(1000);
    assert.equal(waiting.state, "fulfilled");
    assert.deepEqual(await readLeft(world, "project"), { tpd: 100 });
  });

  test("what must be left is counted too", async (world) => {
    await world.repository.setSystemDefaults([TPM, TPD]);
    await take(world, { tpm: 800 });
    await world.pass(60_000);
    assert.equal(await fits(world, { tpm: 100 }, { leave: { tpm: 601 } }), false);
    assert.equal(await fits(world, { tpm: 100 }, { leave: { tpm: 601, tpd: 600 } }), true);
  });

  test("a changed name counts from the next call on, and open leases keep theirs", async (world) => {
    const { repository, limiter } = world;
    await repository.setSystemDefaults([RPM, TPM, TPD]);
    const lease = await limiter.acquire(call({ rpm: 1, tpm: 100 }));
    await repository.setSystemDefaults([RPM, TPM, { ...TPD, counts: "rpm" }]);
    await take(world, { rpm: 1, tpm: 10 });
    lease.settle({ tpm: 40 });
    await lease.commit();
    assert.deepEqual(await readLeft(world), { rpm: 98, tpm: 950, tpd: 1459 });
    assert.deepEqual((await repository.getSystemDefaults()).limits[2], { ...TPD, counts: "rpm" });
  });

  test("limits of one call may count, too", async (world) => {
    const limits = [TPD];
    assert.equal(await fits(world, { tpm: 1501 }, { limits }), false);
    const lease = await world.limiter.acquire(call({ tpm: 600 }, { limits }));
    await lease.consume({ tpm: 400 });
    lease.settle({ tpm: 700 });
    await lease.commit();
    assert.deepEqual(await world.limiter.available(KEY, MODEL, { limits }), { tpd: 800 });
  });
};
