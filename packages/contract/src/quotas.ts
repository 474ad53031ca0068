import assert from "node:assert/strict";
import { Limit, type Repository, ValidationError } from "zae-limiter";
import { seededRandom } from "zae-limiter/testing";
import {
  call,
  failsWith,
  fits,
  getRefusal,
  grants,
  KEY,
  MODEL,
  readLeft,
  RPM,
  take,
} from "./calls.ts";
import type { Topic, World } from "./world.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const TPD = Limit.quota("tpd", 100, { every: "day", zone: "UTC" });

/** The time until the next midnight in UTC. */
function untilMidnightMs({ clock }: World): number {
  return DAY_MS - (clock.now() % DAY_MS);
}

async function readUsed(repository: Repository): Promise<number | undefined> {
  const { items } = await repository.getUsageSnapshots({
    entityId: KEY,
    resource: MODEL,
    window: "daily",
  });
  return items.reduce((sum, { counters }) => sum + (counters["tpd"] ?? 0), 0);
}

/** Calendar quotas: full again at boundaries, and nothing crosses them. */
export const quotasTopic: Topic = (test) => {
  test("a quota is full again at the boundary, and not a millisecond earlier", async (world) => {
    await world.repository.setSystemDefaults([TPD]);
    assert.equal(await grants(world, { tpd: 10 }, 20), 10);
    await world.pass(untilMidnightMs(world) - 1);
    assert.equal(await fits(world, { tpd: 1 }), false);
    await world.pass(1);
    assert.equal(await grants(world, { tpd: 10 }, 20), 10);
  });

  test("a refusal says when the window ends, and status and wait agree", async (world) => {
    await world.repository.setSystemDefaults([TPD, RPM]);
    await take(world, { tpd: 100 });
    const endMs = world.clock.now() + untilMidnightMs(world);
    const refusal = await getRefusal(world.limiter, call({ tpd: 1 }));
    const { kind, resetsAt, available, limitName } = refusal.primaryViolation;
    assert.deepEqual([kind, limitName, available], ["quota", "tpd", 0]);
    assert.equal(resetsAt?.getTime(), endMs);
    assert.equal(refusal.retryAfterSeconds, (endMs - world.clock.now()) / 1000);
    assert.equal(refusal.toJSON().limits[0]!.resets_at_ms, endMs);
    const never = await getRefusal(world.limiter, call({ tpd: 101 }));
    assert.equal(never.retryAfterSeconds, Infinity);
  });

  test("a rate and a quota are taken together, or not at all", async (world) => {
    await world.repository.setSystemDefaults([TPD, Limit.perMinute("rpm", 2)]);
    await take(world, { tpd: 1, rpm: 2 });
    assert.equal(await fits(world, { tpd: 1, rpm: 1 }), false);
    assert.deepEqual(await readLeft(world), { tpd: 99, rpm: 0 });
    await take(world, { tpd: 99 });
    await world.pass(60_000);
    assert.equal(await fits(world, { tpd: 1, rpm: 1 }), false);
    assert.deepEqual(await readLeft(world), { tpd: 0, rpm: 2 });
  });

  test("a debt is forgiven at the end, and refuses calls that do not name it before", async (world) => {
    await world.repository.setSystemDefaults([TPD, RPM]);
    await world.limiter.acquire(call({ tpd: 100 }), (lease) => lease.settle({ tpd: 150 }));
    assert.equal((await readLeft(world))["tpd"], -50);
    assert.equal(await fits(world, { rpm: 1 }), false);
    await world.pass(untilMidnightMs(world));
    assert.equal((await readLeft(world))["tpd"], 100);
    assert.equal(await fits(world, { rpm: 1 }), true);
  });

  test("a debt that is carried is paid by the windows that follow", async (world) => {
    const carrying = Limit.quota(
      "tpd",
      100,
      { every: "day", zone: "UTC" },
      { carry: { debt: true } },
    );
    await world.repository.setSystemDefaults([carrying]);
    await world.limiter.acquire(call({ tpd: 100 }), (lease) => lease.settle({ tpd: 350 }));
    const first = untilMidnightMs(world);
    const wait = await world.limiter.timeUntilAvailable(KEY, MODEL, { tpd: 50 });
    assert.equal(wait * 1000, first + 2 * DAY_MS);
    await world.pass(first);
    assert.deepEqual(await readLeft(world), { tpd: -150 });
    await world.pass(2 * DAY_MS);
    assert.equal(await grants(world, { tpd: 10 }, 20), 5);
  });

  test("what the ends that have passed carried was earned under the old capacity", async (world) => {
    const resets = { every: "day", zone: "UTC" } as const;
    const carrying = Limit.quota("tpd", 100, resets, { carry: { debt: true } });
    await world.repository.setSystemDefaults([carrying]);
    await world.limiter.acquire(call({ tpd: 100 }), (lease) => lease.settle({ tpd: 350 }));
    await world.pass(untilMidnightMs(world));
    await world.repository.setSystemDefaults([{ ...carrying, capacity: 200 }]);
    await fits(world, { tpd: 0 });
    assert.deepEqual(await readLeft(world), { tpd: -50 });
  });

  test("a call that a rate refused fits at the promised time after it became a quota", async (world) => {
    await world.repository.setSystemDefaults([Limit.perDay("tpd", 5)]);
    await take(world, { tpd: 5 });
    await world.repository.setSystemDefaults([TPD]);
    const { retryAfterSeconds } = await getRefusal(world.limiter, call({ tpd: 20 }));
    await world.pass(retryAfterSeconds * 1000);
    assert.equal(await fits(world, { tpd: 20 }), true);
  });

  test("at most so much of what was not used is carried", async (world) => {
    const carrying = Limit.quota(
      "tpd",
      100,
      { every: "day", zone: "UTC" },
      { carry: { unused: 30 } },
    );
    await world.repository.setSystemDefaults([carrying]);
    await take(world, { tpd: 80 });
    await world.pass(untilMidnightMs(world));
    assert.equal(await grants(world, { tpd: 10 }, 20), 12);
    await world.pass(DAY_MS);
    await take(world, { tpd: 10 });
    await world.pass(3 * DAY_MS);
    assert.equal(await grants(world, { tpd: 10 }, 20), 13);
  });

  test("tokens taken before the end do not go back after it, and usage is corrected", async (world) => {
    await world.repository.setSystemDefaults([TPD]);
    const [rolledBack, settled] = [
      await world.limiter.acquire(call({ tpd: 40 })),
      await world.limiter.acquire(call({ tpd: 40 })),
    ];
    await world.pass(untilMidnightMs(world));
    await take(world, { tpd: 90 });
    await rolledBack.rollback();
    settled.settle({ tpd: 10 });
    await settled.commit();
    assert.deepEqual(await readLeft(world), { tpd: 10 });
    if (world.repository.capabilities.usageSnapshots)
      assert.equal(await readUsed(world.repository), 100);
  });

  test("what costs more after the end is charged to the window that is open", async (world) => {
    await world.repository.setSystemDefaults([TPD]);
    const lease = await world.limiter.acquire(call({ tpd: 10 }));
    await world.pass(untilMidnightMs(world));
    lease.settle({ tpd: 70 });
    await lease.commit();
    assert.deepEqual(await readLeft(world), { tpd: 40 });
  });

  test("a lease that takes more after the end returns only what belongs to the open window", async (world) => {
    await world.repository.setSystemDefaults([TPD]);
    const lease = await world.limiter.acquire(call({ tpd: 60 }));
    await world.pass(untilMidnightMs(world));
    await lease.consume({ tpd: 50 });
    await lease.rollback();
    assert.deepEqual(await readLeft(world), { tpd: 100 });
    await take(world, { tpd: 100 });
    assert.equal(await fits(world, { tpd: 1 }), false);
  });

  test("a window that nothing is charged in is not opened", async (world) => {
    await world.repository.setSystemDefaults([TPD, RPM]);
    await take(world, { rpm: 1 });
    await getRefusal(world.limiter, call({ tpd: 101 }));
    const { statuses } = await world.limiter.check(call({ tpd: 1 }));
    const quota = statuses.find(({ limitName }) => limitName === "tpd")!;
    assert.deepEqual([quota.resetsAt, quota.available], [undefined, 100]);
  });

  test("time that goes back over an end opens nothing", async (world) => {
    await world.repository.setSystemDefaults([TPD]);
    await take(world, { tpd: 60 });
    const midnightMs = world.clock.now() + untilMidnightMs(world);
    world.clock.set(midnightMs);
    await take(world, { tpd: 60 });
    world.clock.set(midnightMs - 1);
    assert.equal(await fits(world, { tpd: 60 }), false);
    world.clock.set(midnightMs);
    assert.equal(await fits(world, { tpd: 60 }), false);
    assert.deepEqual(await readLeft(world), { tpd: 40 });
  });

  test("a changed capacity moves what is left by the difference, and opens nothing", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([TPD]);
    await take(world, { tpd: 80 });
    for (const [capacity, left] of [
      [50, -30],
      [200, 120],
      [100, 20],
    ] as const) {
      await repository.setSystemDefaults([{ ...TPD, capacity }]);
      await fits(world, { tpd: 0 });
      assert.deepEqual(await readLeft(world), { tpd: left }, `capacity ${capacity}`);
    }
    assert.equal(await grants(world, { tpd: 10 }, 20), 2);
  });

  test("no change of the calendar, of the kind or of the list grants more in a window", async (world) => {
    const { repository } = world;
    await repository.setSystemDefaults([TPD]);
    await take(world, { tpd: 100 });
    const others = [
      [Limit.quota("tpd", 100, { every: "hour", zone: "UTC" })],
      [Limit.quota("tpd", 100, { every: "day", zone: "Europe/Berlin" })],
      [Limit.session("tpd", 100, { windowSeconds: 18_000 })],
      [Limit.perDay("tpd", 100)],
      [RPM],
    ];
    for (const other of others) {
      await repository.setSystemDefaults(other);
      await fits(world, other === others.at(-1) ? { rpm: 0 } : { tpd: 0 });
      await repository.setSystemDefaults([TPD]);
      assert.equal(await fits(world, { tpd: 1 }), false, Limit.format(other[0]!));
    }
  });

  test("a call's own limits change the capacity of a window, and nothing else", async (world) => {
    await world.repository.setSystemDefaults([TPD]);
    await take(world, { tpd: 80 });
    const more = [Limit.quota("tpd", 150, { every: "hour", zone: "UTC" })];
    await take(world, { tpd: 60 }, { limits: more });
    assert.equal(await fits(world, { tpd: 20 }, { limits: more }), false);
    assert.equal(await fits(world, { tpd: 1 }), false, "140 of 100 are used");
    await world.pass(untilMidnightMs(world) - 1);
    assert.equal(await fits(world, { tpd: 20 }, { limits: more }), false, "the day goes on");
    for (const kind of ["tpd:100/min", "tpd:100/session(5hour)"])
      await failsWith(ValidationError, () =>
        world.limiter.tryAcquire(call({ tpd: 1 }, { limits: [Limit.parse(kind)] })),
      );
    await world.pass(1);
    assert.equal(await grants(world, { tpd: 10 }, 20), 10);
  });

  test("days have the length that the zone gives them", async (world) => {
    const berlin = Limit.quota("tpd", 100, { every: "day", zone: "Europe/Berlin" });
    await world.repository.setSystemDefaults([berlin]);
    // The clock goes back at 03:00 on 2027-10-31, so that day has 25 hours.
    world.clock.set(Date.UTC(2027, 9, 30, 22));
    await take(world, { tpd: 100 });
    await world.pass(25 * HOUR_MS - 1);
    assert.equal(await fits(world, { tpd: 1 }), false);
    await world.pass(1);
    assert.equal(await grants(world, { tpd: 50 }, 4), 2);
  });

  test("a parent has windows of its own", async (world) => {
    const { repository } = world;
    await repository.createEntity("project");
    await repository.createEntity(KEY, { parentId: "project", cascade: true });
    await repository.setSystemDefaults([TPD]);
    await repository.setLimits("project", [
      Limit.quota("tpd", 150, { every: "hour", zone: "UTC" }),
    ]);
    await world.pass(HOUR_MS - (world.clock.now() % HOUR_MS));
    await take(world, { tpd: 100 });
    await world.limiter.acquire(call({ tpd: 50 }, { entityId: "project" }), () => {});
    assert.deepEqual(await readLeft(world, "project"), { tpd: 0 });
    await world.pass(HOUR_MS);
    assert.deepEqual(await readLeft(world, "project"), { tpd: 150 });
    assert.equal(await fits(world, { tpd: 1 }), false, "the entity's own day goes on");
  });

  test("in every window at most the capacity is granted, less what was given back in it", async (world) => {
    const quota = Limit.quota("tpd", 40, { every: "hour", zone: "UTC" });
    await world.repository.setSystemDefaults([quota]);
    const random = seededRandom(32);
    let windowEndMs = 0;
    let used = 0;
    const open: {
      readonly lease: Awaited<ReturnType<World["limiter"]["acquire"]>>;
      readonly took: number;
      readonly endMs: number;
    }[] = [];
    const opens = (): void => {
      if (world.clock.now() < windowEndMs) return;
      windowEndMs = (Math.floor(world.clock.now() / HOUR_MS) + 1) * HOUR_MS;
      used = 0;
    };
    for (let step = 0; step < 300; step += 1) {
      await world.pass(Math.floor(random() * HOUR_MS * 0.3));
      const amount = 1 + Math.floor(random() * 15);
      const [ending] = random() < 0.5 ? open.splice(Math.floor(random() * open.length), 1) : [];
      if (ending !== undefined) {
        const real = Math.floor(random() * 25);
        ending.lease.settle({ tpd: real });
        await ending.lease.commit();
        const isOpen = ending.endMs === windowEndMs && world.clock.now() < windowEndMs;
        if (real > ending.took) opens();
        if (real > ending.took || isOpen) used += real - ending.took;
        continue;
      }
      const isOver = world.clock.now() >= windowEndMs;
      const expected = amount <= 40 - (isOver ? 0 : used);
      const verdict = await world.limiter.tryAcquire(call({ tpd: amount }));
      assert.equal(verdict.granted, expected, `step ${step}: ${amount} with ${used} used`);
      if (!verdict.granted) continue;
      opens();
      used += amount;
      open.push({ lease: verdict.lease, took: amount, endMs: windowEndMs });
    }
  });
};
