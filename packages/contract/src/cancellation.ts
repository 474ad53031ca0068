import assert from "node:assert/strict";
import { Limit, RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { call, failsWith, KEY, readLeft, MODEL, RPM, take, TPM } from "./calls.ts";
import { delayedOutcomes } from "./delayed-outcomes.ts";
import { watch } from "./watch.ts";
import type { Topic, World } from "./world.ts";

/** How a call is ended from outside: by its signal, or by closing the limiter or the repository. */
export const cancellationTopic: Topic = (test) => {
  test("an abort ends the wait with its reason, charges nothing, and lets the next call proceed", async (world) => {
    await exhaust(world);
    const abort = new AbortController();
    const reason = new Error("the user left");
    const aborted = watch(
      world.limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000, signal: abort.signal })),
    );
    const next = watch(world.limiter.acquire(call({ rps: 1 }, { waitUpToMs: 5000 })));
    await world.pass(100);
    abort.abort(reason);
    await world.pass(0);
    assert.equal(aborted.reason, reason);
    assert.equal(next.state, "fulfilled");
    assert.deepEqual(await readLeft(world), { rps: 0 });
  });

  test("a signal that is already aborted takes nothing; one that aborts after the grant has no effect", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const reason = new Error("too late");
    for (const waitUpToMs of [0, 1000]) {
      const request = call({ rpm: 1 }, { waitUpToMs, signal: AbortSignal.abort(reason) });
      assert.equal(await failsWith(Error, () => world.limiter.acquire(request)), reason);
    }
    assert.deepEqual(await readLeft(world), { rpm: 100, tpm: 1000 });
    const abort = new AbortController();
    const lease = await world.limiter.acquire(
      call({ rpm: 1 }, { waitUpToMs: 1000, signal: abort.signal }),
    );
    abort.abort(reason);
    lease.settle({ tpm: 10 });
    await lease.commit();
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 990 });
  });

  test("tokens granted to a waiting call while it is aborted, or its limiter closed, go back", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const late = delayedOutcomes(world.repository);
    const limiter = new RateLimiter({ repository: late.repository });
    const abort = new AbortController();
    const reason = new Error("the user left");
    late.hold();
    const aborted = watch(
      limiter.acquire(call({ rpm: 10 }, { waitUpToMs: 5000, signal: abort.signal })),
    );
    const closed = watch(
      limiter.acquire(call({ rpm: 10 }, { waitUpToMs: 5000, resource: "search" })),
    );
    await world.pass(0);
    assert.deepEqual(await readLeft(world), { rpm: 90 }, "the store has already granted");
    abort.abort(reason);
    await limiter.close();
    late.release();
    await world.pass(0);
    assert.equal(aborted.reason, reason);
    assert.ok(closed.reason instanceof RateLimiterUnavailable);
    for (const resource of [MODEL, "search"])
      assert.deepEqual(await readLeft(world, KEY, resource), { rpm: 100 });
  });

  test("closing the limiter ends waiting calls and refuses new ones; the repository stays open", async (world) => {
    await exhaust(world);
    const open = await world.limiter.acquire(call({ rps: 1 }, { entityId: "other" }));
    const waiting = watch(world.limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 })));
    const behind = watch(
      world.limiter.acquire(call({ rps: 1 }, { waitUpToMs: 5000, onUnavailable: "allow" })),
    );
    await world.pass(0);
    await world.limiter.close();
    await world.pass(0);
    for (const { reason } of [waiting, behind]) assert.ok(reason instanceof RateLimiterUnavailable);
    await failsWith(RateLimiterUnavailable, () => world.limiter.acquire(call({ rps: 1 })));
    await open.rollback();
    const [bucket] = await world.repository.getBuckets(KEY);
    assert.equal(bucket?.tokensMilli, 0);
    await world.limiter.close();
  });

  test("closing the repository ends waiting calls as closing the limiter does, and all later calls fail", async (world) => {
    await exhaust(world);
    const open = await world.limiter.acquire(call({ rps: 1 }, { entityId: "other" }));
    const waiting = watch(world.limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 })));
    const behind = watch(
      world.limiter.acquire(call({ rps: 1 }, { waitUpToMs: 5000, onUnavailable: "allow" })),
    );
    await world.pass(0);
    await world.repository.close();
    await world.pass(0);
    const { reason } = world.repository.closed;
    assert.ok(reason instanceof RateLimiterUnavailable);
    assert.equal(waiting.reason, reason);
    assert.equal(behind.reason, reason);
    const { limiter, repository } = world;
    for (const operation of [
      () => limiter.acquire(call({ rps: 1 }, { entityId: "fresh" })),
      () => limiter.acquire(call({ rps: 10 }, { waitUpToMs: 5000 })),
      () => limiter.check(call({ rps: 1 })),
      () => open.rollback(),
      () => repository.getEntity(KEY),
      () => repository.getNamespace("default"),
      () => repository.setSystemDefaults([RPM]),
    ]) {
      const error = await failsWith(RateLimiterUnavailable, operation);
      assert.ok(error.message.startsWith(reason.message), error.message);
    }
    assert.equal(await repository.ping(), false);
    await repository.close();
  });
};

/** Ten a second, all taken. */
async function exhaust(world: World): Promise<void> {
  await world.repository.setSystemDefaults([Limit.perSecond("rps", 10)]);
  await take(world, { rps: 10 });
}
