import assert from "node:assert/strict";
import {
  Limit,
  RateLimiter,
  RateLimitExceeded,
  type Repository,
  ValidationError,
} from "zae-limiter";
import { call, failsWith, fits, KEY, readLeft, RPM, take } from "./calls.ts";
import { delayedOutcomes } from "./delayed-outcomes.ts";
import { watch } from "./watch.ts";
import type { Topic, World } from "./world.ts";

/** Calls that wait for their turn. */
export const waitingTopic: Topic = (test) => {
  test("a waiting call is granted in the very millisecond in which it fits", async (world) => {
    // Divided and multiplied by 1000 again, 1001 is a little too low and 2007 too high.
    for (const waitMs of [1, 999, 1001, 2007, 4003]) {
      const entityId = `key-${waitMs}`;
      await world.repository.setLimits(entityId, [
        Limit.custom({
          name: "rpm",
          capacity: 1000,
          refillAmount: 1000,
          refillPeriodSeconds: waitMs,
        }),
      ]);
      await take(world, { rpm: 1000 }, { entityId });
      const waiting = watch(
        world.limiter.acquire(call({ rpm: 1 }, { entityId, waitUpToMs: waitMs })),
      );
      await world.pass(waitMs - 1);
      assert.equal(waiting.state, "pending", `${waitMs - 1} of ${waitMs} ms`);
      await world.pass(1);
      assert.equal(waiting.state, "fulfilled", `${waitMs} ms`);
    }
  });

  test("a call that would have to wait longer than it may is refused at once", async (world) => {
    await exhaust(world);
    const error = await failsWith(RateLimitExceeded, () =>
      world.limiter.acquire(call({ rps: 1 }, { waitUpToMs: 99 })),
    );
    assert.equal(error.retryAfterSeconds, 0.1);
  });

  test("a call that can never fit is refused at once, however long it may wait", async (world) => {
    await exhaust(world);
    for (const waitUpToMs of [1e9, Infinity]) {
      const waiting = watch(world.limiter.acquire(call({ rps: 11 }, { waitUpToMs })));
      await world.pass(0);
      assert.equal(waiting.state, "rejected", `waitUpToMs ${waitUpToMs}`);
      assert.ok(waiting.reason instanceof RateLimitExceeded);
    }
  });

  test("waiting calls are served in order of arrival, small ones behind large ones", async (world) => {
    await exhaust(world);
    const order: string[] = [];
    const calls = [
      ["large", 10],
      ["small", 1],
      ["last", 2],
    ] as const;
    const all = calls.map(([name, rps]) =>
      world.limiter.acquire(call({ rps }, { waitUpToMs: 5000 }), () => {
        order.push(name);
      }),
    );
    await world.pass(900);
    assert.deepEqual(order, []);
    await world.pass(100);
    assert.deepEqual(order, ["large"]);
    await world.pass(100);
    assert.deepEqual(order, ["large", "small"]);
    await world.pass(200);
    await Promise.all(all);
    assert.deepEqual(order, ["large", "small", "last"]);
  });

  test("a call that does not wait is decided at once, ahead of those that do", async (world) => {
    await exhaust(world);
    const waiting = watch(world.limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 })));
    await world.pass(500);
    assert.equal(await fits(world, { rps: 5 }), true);
    await world.pass(500);
    assert.equal(waiting.state, "pending");
    await world.pass(500);
    assert.equal(waiting.state, "fulfilled");
  });

  test("calls of different entities or on different resources do not wait for each other", async (world) => {
    await exhaust(world);
    const waiting = watch(world.limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 })));
    await world.pass(0);
    await take(world, { rps: 1 }, { entityId: "other", waitUpToMs: 5000 });
    await take(world, { rps: 1 }, { resource: "search", waitUpToMs: 5000 });
    assert.equal(waiting.state, "pending");
    await world.pass(1000);
    assert.equal(waiting.state, "fulfilled");
  });

  test("calls that name the same resources in different orders do not block each other", async (world) => {
    await exhaust(world);
    await take(world, { rps: 10 }, { resource: "search" });
    const request = { waitUpToMs: 5000 };
    const first = watch(
      world.limiter.acquire(call({ rps: 10 }, { ...request, also: { search: { rps: 10 } } })),
    );
    const second = watch(
      world.limiter.acquire(
        call({ rps: 5 }, { ...request, resource: "search", also: { "gpt-4": { rps: 5 } } }),
      ),
    );
    await world.pass(1000);
    assert.deepEqual([first.state, second.state], ["fulfilled", "pending"]);
    await world.pass(500);
    assert.equal(second.state, "fulfilled");
  });

  test("tokens that go back wake the calls that wait for them", async (world) => {
    await world.repository.setSystemDefaults([Limit.perHour("rph", 10)]);
    const lease = await world.limiter.acquire(call({ rph: 10 }));
    const waiting = watch(world.limiter.acquire(call({ rph: 3 }, { waitUpToMs: 3_600_000 })));
    await world.pass(0);
    assert.equal(waiting.state, "pending");
    lease.settle({ rph: 5 });
    await lease.commit();
    await world.pass(0);
    assert.equal(waiting.state, "fulfilled");
    assert.deepEqual(await readLeft(world), { rph: 2 });
  });

  test("tokens that go back to a parent wake the calls that it refused, and no others", async (world) => {
    await world.repository.setSystemDefaults([Limit.perHour("rph", 10)]);
    await world.repository.createEntity("parent");
    for (const id of ["child-1", "child-2"])
      await world.repository.createEntity(id, { parentId: "parent", cascade: true });
    const decided: string[] = [];
    const limiter = new RateLimiter({ repository: listDecisions(world.repository, decided) });
    const lease = await limiter.acquire(call({ rph: 10 }, { entityId: "child-1" }));
    await take(world, { rph: 10 }, { entityId: "stranger" });
    const [child, stranger] = ["child-2", "stranger"].map((entityId) =>
      watch(limiter.acquire(call({ rph: 10 }, { entityId, waitUpToMs: 10_000_000 }))),
    );
    await world.pass(0);
    decided.length = 0;
    lease.release({ rph: 10 });
    await lease.commit();
    await world.pass(0);
    assert.equal(child?.state, "fulfilled");
    assert.equal(stranger?.state, "pending");
    assert.deepEqual(decided, ["child-2"]);
  });

  test("tokens that go back during an attempt of a waiting call wake it too", async (world) => {
    await world.repository.setSystemDefaults([Limit.perHour("rph", 10)]);
    const late = delayedOutcomes(world.repository);
    const limiter = new RateLimiter({ repository: late.repository });
    const lease = await limiter.acquire(call({ rph: 10 }));
    late.hold();
    const waiting = watch(limiter.acquire(call({ rph: 3 }, { waitUpToMs: 3_600_000 })));
    await world.pass(0);
    await lease.rollback();
    late.release();
    await world.pass(0);
    assert.equal(waiting.state, "fulfilled");
  });

  test("a waiting call that runs out of time behind another is refused with a reason", async (world) => {
    await exhaust(world);
    const first = watch(world.limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 })));
    const second = watch(world.limiter.tryAcquire(call({ rps: 1 }, { waitUpToMs: 500 })));
    await world.pass(500);
    assert.equal(second.state, "fulfilled");
    assert.ok(second.value !== undefined && !second.value.granted);
    assert.ok(second.value.refusal.violations.length > 0);
    await world.pass(500);
    assert.equal(first.state, "fulfilled");
  });

  test("refuses an invalid waiting time [W-37]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    for (const waitUpToMs of [-1, Number.NaN, "5" as unknown as number])
      await failsWith(ValidationError, () =>
        world.limiter.acquire(call({ rpm: 1 }, { waitUpToMs })),
      );
    assert.deepEqual(await world.repository.getBuckets(KEY), []);
  });
};

/** Wraps the repository and lists the entity of every decision. */
function listDecisions(repository: Repository, decided: string[]): Repository {
  return new Proxy(repository, {
    get(target, property) {
      if (property !== "consume") return Reflect.get(target, property, target) as unknown;
      return (...values: Parameters<Repository["consume"]>) => {
        decided.push(values[0].entityId);
        return target.consume(...values);
      };
    },
  });
}

/** Ten a second, all taken. */
async function exhaust(world: World): Promise<void> {
  await world.repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  await take(world, { rps: 10 });
}
