import assert from "node:assert/strict";
import {
  Limit,
  type OnUnavailable,
  PermissionDenied,
  RateLimiter,
  RateLimiterUnavailable,
  type Repository,
  ValidationError,
} from "zae-limiter";
import { faultyRepository } from "zae-limiter/testing";
import { call, failsWith, KEY, readLeft, MODEL, RPM, take, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

/** Promise 10: unavailability is explicit. */
export const unavailabilityTopic: Topic = (test) => {
  test("an unreachable store blocks by default, and the error names the entity and the resource", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const limiter = new RateLimiter({ repository: buildUnreachable(world) });
    const error = await failsWith(RateLimiterUnavailable, () => limiter.acquire(call({ rpm: 1 })));
    assert.deepEqual(
      [error.code, error.entityId, error.resource],
      ["ERR_LIMITER_UNAVAILABLE", KEY, MODEL],
    );
    await failsWith(RateLimiterUnavailable, () => limiter.tryAcquire(call({ rpm: 1 })));
    await failsWith(RateLimiterUnavailable, () => limiter.check(call({ rpm: 1 })));
    assert.equal(await limiter.isReachable(), false);
  });

  test("the option of the call wins over the limiter's, and that over the stored one", async (world) => {
    const repository = buildUnreachable(world);
    await world.repository.setSystemDefaults([RPM], { onUnavailable: "allow" });
    assert.equal(await isDegraded(new RateLimiter({ repository })), true, "stored allow");
    assert.equal(
      await isDegraded(new RateLimiter({ repository, onUnavailable: "block" })),
      false,
      "limiter over stored",
    );
    assert.equal(
      await isDegraded(new RateLimiter({ repository, onUnavailable: "block" }), "allow"),
      true,
      "call over limiter",
    );
    await world.repository.setSystemDefaults([RPM], { onUnavailable: "block" });
    assert.equal(await isDegraded(new RateLimiter({ repository })), false, "stored block");
    assert.equal(
      await isDegraded(new RateLimiter({ repository, onUnavailable: "allow" })),
      true,
      "limiter over stored",
    );
    assert.equal(
      await isDegraded(new RateLimiter({ repository, onUnavailable: "allow" }), "block"),
      false,
      "call over limiter",
    );
    assert.throws(
      () => new RateLimiter({ repository, onUnavailable: "perhaps" as "allow" }),
      ValidationError,
    );
  });

  test("the stored option needs no read before a call, and is kept past the cache time [W-77]", async (world) => {
    await world.repository.setSystemDefaults([RPM], { onUnavailable: "allow" });
    const operations: string[] = [];
    let isDown = false;
    const repository = faultyRepository(world.repository, (operation) => {
      operations.push(operation);
      return isDown ? "error-before" : undefined;
    });
    const limiter = new RateLimiter({ repository });
    await take({ limiter }, { rpm: 1 });
    assert.deepEqual(operations, ["consume"]);
    isDown = true;
    await world.pass(world.repository.getCacheStats().ttlMs + 1);
    assert.equal((await limiter.acquire(call({ rpm: 1 }))).degraded, true);
    assert.deepEqual(operations, ["consume", "consume"]);
  });

  test("the option also covers the very first write of a bucket [W-46]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    for (const fault of ["error-before", "error-after"] as const) {
      const entityId = `key-${fault}`;
      const limiter = new RateLimiter({
        repository: faultyRepository(world.repository, () => fault),
        onUnavailable: "allow",
      });
      const lease = await limiter.acquire(call({ rpm: 1 }, { entityId }));
      assert.equal(lease.degraded, true);
      await lease.rollback();
      const rpm = (await readLeft(world, entityId))["rpm"]!;
      assert.ok(
        rpm === 100 || (fault === "error-after" && rpm === 99),
        `at most its own cost stays charged: ${rpm}`,
      );
    }
  });

  test("a degraded lease works, and writes nothing", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const limiter = new RateLimiter({
      repository: buildUnreachable(world),
      onUnavailable: "allow",
    });
    const result = await limiter.acquire(
      call({ rpm: 1 }, { also: { search: { rpm: 1 } } }),
      async (lease) => {
        assert.equal(lease.degraded, true);
        assert.deepEqual(lease.consumed, { rpm: 1 });
        await lease.consume({ tpm: 10 });
        lease.settle({ tpm: 5000 });
        lease.resourceLease("search").adjust({ tpm: 7 });
        return "done";
      },
    );
    assert.equal(result, "done");
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 1000 });
    assert.equal((await world.limiter.acquire(call({ rpm: 1 }))).degraded, false);
  });

  test("denied access never lets a call through", async (world) => {
    await world.repository.setSystemDefaults([RPM], { onUnavailable: "allow" });
    const limiter = new RateLimiter({
      repository: throwing(world, () => new PermissionDenied("not yours")),
      onUnavailable: "allow",
    });
    for (const waitUpToMs of [0, 1000])
      await failsWith(PermissionDenied, () =>
        limiter.acquire(call({ rpm: 1 }, { onUnavailable: "allow", waitUpToMs })),
      );
    await failsWith(PermissionDenied, () => limiter.check(call({ rpm: 1 })));
  });

  test("neither a bug nor invalid input lets a call through", async (world) => {
    await world.repository.setSystemDefaults([RPM], { onUnavailable: "allow" });
    const limiter = new RateLimiter({
      repository: throwing(world, () => new TypeError("a bug")),
      onUnavailable: "allow",
    });
    await failsWith(TypeError, () => limiter.acquire(call({ rpm: 1 })));
    const dead = new RateLimiter({ repository: buildUnreachable(world), onUnavailable: "allow" });
    await failsWith(ValidationError, () => dead.acquire(call({ rpm: -1 })));
  });

  test("a waiting call follows the option when the store becomes unavailable, at the head of its queue and behind it", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
    let isDown = false;
    const repository = faultyRepository(world.repository, () =>
      isDown ? "error-before" : undefined,
    );
    for (const onUnavailable of ["allow", "block"] as const) {
      isDown = false;
      await world.pass(1000);
      const limiter = new RateLimiter({ repository, onUnavailable });
      await take({ limiter }, { rps: 10 });
      const head = limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 }));
      await world.pass(0);
      isDown = true;
      const behind = limiter.acquire(call({ rps: 1 }, { waitUpToMs: 5000 }));
      const both = Promise.allSettled([head, behind]);
      await world.pass(1000);
      const outcomes = (await both).map((answer) =>
        answer.status === "fulfilled" ? answer.value.degraded : "rejected",
      );
      assert.deepEqual(
        outcomes,
        onUnavailable === "allow" ? [true, true] : ["rejected", "rejected"],
      );
    }
  });

  test("calls are decided again as soon as the store is back", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    let isDown = true;
    const limiter = new RateLimiter({
      repository: faultyRepository(world.repository, () => (isDown ? "error-before" : undefined)),
    });
    await failsWith(RateLimiterUnavailable, () => limiter.acquire(call({ rpm: 1 })));
    isDown = false;
    await take({ limiter }, { rpm: 1 });
    assert.deepEqual(await readLeft(world), { rpm: 99 });
  });

  test("a slow store is not reachable, but a late response still counts", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const slow = faultyRepository(world.repository, () => ({ delayMs: 700 }));
    const limiter = new RateLimiter({ repository: slow });
    const [inTime, tooLate] = [limiter.isReachable(), limiter.isReachable({ timeoutMs: 500 })];
    const lease = limiter.acquire(call({ rpm: 1 }));
    await world.pass(700);
    assert.deepEqual([await inTime, await tooLate], [true, false]);
    assert.deepEqual((await lease).consumed, { rpm: 1 });
  });
};

/** Whether a call is let through without the store, or blocked. */
async function isDegraded(limiter: RateLimiter, onUnavailable?: OnUnavailable): Promise<boolean> {
  try {
    const lease = await limiter.acquire(call({ rpm: 1 }, onUnavailable && { onUnavailable }));
    assert.equal(lease.degraded, true);
    await lease.commit();
    return true;
  } catch (error) {
    assert.ok(error instanceof RateLimiterUnavailable);
    return false;
  }
}

/** A store that no operation reaches. */
function buildUnreachable({ repository }: World): Repository {
  return faultyRepository(repository, () => "error-before");
}

/** A store whose data plane fails with an error other than unavailability. */
function throwing({ repository }: World, error: () => Error): Repository {
  return new Proxy(repository, {
    get(target, property) {
      if (property === "consume" || property === "read") return () => Promise.reject(error());
      return Reflect.get(target, property, target) as unknown;
    },
  });
}
