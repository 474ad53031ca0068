import assert from "node:assert/strict";
import { type AcquireRequest, Limit, RateLimitExceeded, ValidationError } from "zae-limiter";
import { call, failsWith, fits, getRefusal, grants, KEY, readLeft, RPM, take } from "./calls.ts";
import { watch } from "./watch.ts";
import type { Topic, World } from "./world.ts";

/** 1000 tokens a minute, of which calls of the class `batch` leave 400. */
const TPM = Limit.perMinute("tpm", 1000, { reserve: { batch: 400 } });
const BATCH = { priority: "batch" };

/** Counts how many calls in a row are granted, at most 20. */
async function countGrants(
  world: World,
  tpm: number,
  more: Partial<AcquireRequest>,
): Promise<number> {
  for (let count = 0; count < 20; count += 1) if (!(await fits(world, { tpm }, more))) return count;
  return 20;
}

/** What calls leave for others. */
export const leaveTopic: Topic = (test) => {
  test("a call is granted only if the balance afterwards is at least what it leaves", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    assert.equal(await fits(world, { tpm: 1 }, { leave: { tpm: 1000 } }), false);
    assert.equal(await countGrants(world, 100, { leave: { tpm: 700 } }), 3);
    assert.equal(await countGrants(world, 100, BATCH), 3);
    assert.deepEqual(await readLeft(world), { tpm: 400 });
    assert.equal(await grants(world, { tpm: 100 }, 20), 4, "the others take what was left");
  });

  test("the larger counts; unknown classes leave nothing", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    for (const [leave, most] of [
      [500, 500],
      [300, 600],
    ] as const) {
      const more = { ...BATCH, leave: { tpm: leave } };
      assert.equal(await fits(world, { tpm: most + 1 }, more), false);
      assert.equal((await world.limiter.check(call({ tpm: most }, more))).allowed, true);
    }
    assert.equal(await fits(world, { tpm: 1000 }, { priority: "nightly" }), true);
  });

  test("refusals, waits and statuses include what is left", async (world) => {
    await world.repository.setSystemDefaults([TPM, RPM]);
    await take(world, { tpm: 500 });
    const request = call({ tpm: 200, rpm: 1 }, BATCH);
    const refusal = await getRefusal(world.limiter, request);
    const { available, requested, leaves, deficit } = refusal.primaryViolation;
    assert.deepEqual([available, requested, leaves, deficit], [500, 200, 400, 100]);
    assert.equal(refusal.retryAfterSeconds, 6);
    assert.match(refusal.message, /500 of 1000 left, 200 requested, 400 to be left for others/);
    assert.deepEqual(
      refusal.toJSON().limits.map((limit) => limit.leaves),
      [400, 0],
    );
    const { allowed, statuses, retryAfterSeconds } = await world.limiter.check(request);
    assert.deepEqual([allowed, retryAfterSeconds, statuses[0]!.leaves], [false, 6, 400]);
    await world.pass(5999);
    assert.equal(await fits(world, { tpm: 200, rpm: 1 }, BATCH), false);
    await world.pass(1);
    assert.equal(await fits(world, { tpm: 200, rpm: 1 }, BATCH), true);
    const never = await getRefusal(world.limiter, call({ tpm: 601 }, BATCH));
    assert.equal(never.retryAfterSeconds, Infinity);
    assert.match(never.message, /never fit: request or leave less/);
  });

  test("a limit that is not charged must hold what is left too", async (world) => {
    const daily = Limit.quota("tpd", 1000, { every: "day", zone: "UTC" });
    const session = Limit.session("tps", 1000, { windowSeconds: 60 });
    for (const limit of [Limit.perDay("tpd", 1000), daily, session]) {
      const [entityId, { name }] = [`key-of-${limit.kind}`, limit];
      await world.repository.setLimits(entityId, [limit, RPM]);
      const leave = { [name]: 600 };
      assert.equal(await fits(world, { rpm: 1 }, { entityId, leave: { [name]: 1001 } }), false);
      assert.equal(await fits(world, { rpm: 1 }, { entityId, leave: { [name]: 1000 } }), true);
      await take(world, { [name]: 500 }, { entityId });
      assert.equal(await fits(world, { rpm: 1 }, { entityId, leave }), false, name);
      assert.equal(await fits(world, { rpm: 1 }, { entityId }), true);
      const lease = await world.limiter.acquire(
        call({ [name]: 100 }, { entityId, leave: { [name]: 400 } }),
      );
      await lease.rollback();
      assert.equal((await readLeft(world, entityId))[name], 500);
    }
  });

  test("each bucket of the cascade leaves by its own configuration", async (world) => {
    const { repository } = world;
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project", cascade: true });
    await repository.setSystemDefaults([TPM]);
    await repository.setLimits("project", [
      Limit.perMinute("tpm", 2000, { reserve: { batch: 1500 } }),
    ]);
    assert.equal(await countGrants(world, 100, BATCH), 5, "the project keeps 1500");
    assert.equal(await countGrants(world, 100, { leave: { tpm: 300 } }), 2, "the key keeps 300");
    const low = Limit.perMinute("tpm", 500, { reserve: { batch: 1 } });
    await repository.setLimits("project", [low]);
    const refusal = await getRefusal(world.limiter, call({ tpm: 100 }, { leave: { tpm: 401 } }));
    assert.equal(refusal.primaryViolation.entityId, "project");
    assert.equal(refusal.retryAfterSeconds, Infinity);
  });

  test("amounts are left of the call's own resource, and reserves of every resource", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    const also = { search: { tpm: 700 } };
    assert.equal(await fits(world, { tpm: 1 }, { also, ...BATCH }), false);
    assert.equal(await fits(world, { tpm: 1 }, { also, leave: { tpm: 400 } }), true);
  });

  test("lease.consume leaves what its acquire had to leave; other changes ignore it", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    const lease = await world.limiter.acquire(call({ tpm: 300 }, BATCH));
    await failsWith(RateLimitExceeded, () => lease.consume({ tpm: 301 }));
    await lease.consume({ tpm: 300 });
    lease.settle({ tpm: 900 });
    await lease.commit();
    await world.limiter.charge({ entityId: KEY, resource: "gpt-4", amounts: { tpm: 50 } });
    assert.deepEqual(await readLeft(world), { tpm: 50 });
    const other = await world.limiter.acquire(call({ tpm: 10 }));
    await other.rollback();
    assert.deepEqual(await readLeft(world), { tpm: 50 });
  });

  test("a changed reserve counts for the next call, and moves no balance", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([TPM]);
    await take(world, { tpm: 500 });
    await repository.setSystemDefaults([Limit.perMinute("tpm", 1000, { reserve: { batch: 600 } })]);
    assert.equal(await fits(world, { tpm: 1 }, BATCH), false);
    await repository.setSystemDefaults([Limit.perMinute("tpm", 1000)]);
    assert.equal(await fits(world, { tpm: 100 }, BATCH), true);
    assert.deepEqual(await readLeft(world), { tpm: 400 });
  });

  test("levels keep reserves as they were set", async ({ repository }) => {
    const limits = [TPM, Limit.custom({ ...RPM, capacity: 150, reserve: { batch: 5, test: 7 } })];
    await repository.setSystemDefaults(limits);
    assert.deepEqual((await repository.getSystemDefaults()).limits, limits);
  });

  test("calls wait only behind calls that leave the same", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    await take(world, { tpm: 800 });
    const order: string[] = [];
    const wait = (name: string, tpm: number, more: Partial<AcquireRequest>): Promise<unknown> => {
      const request = call({ tpm }, { waitUpToMs: 120_000, ...more });
      return world.limiter.acquire(request, () => order.push(name));
    };
    const all = [wait("batch", 100, BATCH), wait("batch 2", 1, BATCH), wait("high", 300, {})];
    for (const waiting of all) watch(waiting);
    await world.pass(6000);
    assert.deepEqual(order, ["high"], "batch calls need 500, and 400 of them left");
    for (let minutes = 0; minutes < 3; minutes += 1) await world.pass(60_000);
    await Promise.all(all);
    assert.deepEqual(order, ["high", "batch", "batch 2"]);
  });

  test("returned tokens wake the heads of all queues", async (world) => {
    await world.repository.setSystemDefaults([TPM]);
    const held = await world.limiter.acquire(call({ tpm: 1000 }));
    const all = [BATCH, { leave: { tpm: 500 } }, {}].map((more) =>
      watch(world.limiter.acquire(call({ tpm: 100 }, { waitUpToMs: 120_000, ...more }))),
    );
    await held.rollback();
    await world.pass(0);
    assert.deepEqual(
      all.map(({ state }) => state),
      ["fulfilled", "fulfilled", "fulfilled"],
    );
  });

  test("bad values and names that no level knows are refused; unlimited names are ignored", async (world) => {
    const { limiter, repository } = world;
    await repository.setSystemDefaults([TPM, RPM]);
    await repository.setLimits(KEY, [RPM], { inherit: false });
    for (const [field, more] of [
      ["leave.images", { leave: { images: 1 } }],
      ["leave.rpm", { leave: { rpm: -1 } }],
      ["leave", { leave: 5 as never }],
      ["priority", { priority: "a b" }],
      ["priority", { priority: 5 as never }],
      ["leave.tpm", { leave: { tpm: 1 }, limits: [RPM] }],
    ] as const) {
      const error = await failsWith(ValidationError, () => limiter.acquire(call({ rpm: 1 }, more)));
      assert.equal(error.field, field);
    }
    assert.equal(await fits(world, { rpm: 1 }, { leave: { tpm: 5000 } }), true);
    assert.deepEqual(await readLeft(world), { rpm: 99 });
  });
};
