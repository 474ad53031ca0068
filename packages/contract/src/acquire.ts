import assert from "node:assert/strict";
import { Limit, RateLimiter, RateLimitExceeded, ValidationError } from "zae-limiter";
import {
  call,
  failsWith,
  fits,
  footprint,
  grants,
  KEY,
  readLeft,
  MODEL,
  getRefusal,
  RPM,
  take,
  TPM,
} from "./calls.ts";
import type { Topic } from "./world.ts";

/** Promises 1 and 3: what is granted, what is refused, and what a refusal says. */
export const acquireTopic: Topic = (test) => {
  test("an acquire takes from every limit it names, and from no other", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM, Limit.perDay("rpd", 10)]);
    await take(world, { rpm: 1, tpm: 400 });
    assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 600, rpd: 10 });
  });

  test("refuses without writing when one limit is short", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 1, tpm: 900 });
    const before = await footprint(world.repository);
    await getRefusal(world.limiter, call({ rpm: 1, tpm: 101 }));
    assert.deepEqual(await footprint(world.repository), before);
  });

  test("a refusal says which limit refused, what is missing, and when the call would fit", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 1, tpm: 900 });
    const refusal = await getRefusal(world.limiter, call({ rpm: 1, tpm: 400 }));
    assert.deepEqual(refusal.violations, [
      {
        entityId: KEY,
        resource: MODEL,
        limitName: "tpm",
        limit: TPM,
        source: "system",
        kind: "rate",
        resetsAt: undefined,
        resetsInSeconds: undefined,
        available: 100,
        requested: 400,
        leaves: 0,
        exceeded: true,
        deficit: 300,
        retryAfterSeconds: 18,
      },
    ]);
    assert.deepEqual(
      refusal.passed.map(({ limitName, available, requested }) => ({
        limitName,
        available,
        requested,
      })),
      [{ limitName: "rpm", available: 99, requested: 1 }],
    );
    assert.equal(refusal.primaryViolation, refusal.violations[0]);
    assert.equal(refusal.retryAfterSeconds, 18);
    assert.equal(refusal.retryAfterHeader, "18");
    assert.equal(refusal.code, "ERR_LIMITER_RATE_LIMIT_EXCEEDED");
    const json = refusal.toJSON();
    assert.equal(json.error, "rate_limit_exceeded");
    assert.equal(json.retry_after_ms, 18_000);
    assert.deepEqual(
      json.limits.map(({ limit_name, exceeded }) => [limit_name, exceeded]),
      [
        ["rpm", false],
        ["tpm", true],
      ],
    );
  });

  test("a refusal lists every limit of the bucket, charged or not [W-52]", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM, Limit.perDay("rpd", 10)]);
    await take(world, { rpm: 100 });
    const { statuses } = await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.deepEqual(
      statuses.map(({ limitName, requested }) => [limitName, requested]),
      [
        ["rpm", 1],
        ["tpm", 0],
        ["rpd", 0],
      ],
    );
  });

  test("a refusal shows the state at the time of the call, however late it is read", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    await take(world, { rpm: 1, tpm: 900 });
    const lease = await world.limiter.acquire(call({ rpm: 1 }));
    const request = call({ rpm: 1, tpm: 400 });
    // The second refusal may be decided from memory that the first one left.
    const refusals = [
      await getRefusal(world.limiter, request),
      await getRefusal(world.limiter, request),
    ];
    const { statuses } = await world.limiter.check(request);
    await take(world, { rpm: 7, tpm: 50 });
    lease.adjust({ tpm: 500 });
    await lease.commit();
    await world.pass(10_000);
    await world.repository.setSystemDefaults([TPM]);
    await getRefusal(world.limiter, call({ tpm: 400 }));
    await world.pass(60_000);
    for (const refusal of refusals) {
      assert.equal(
        refusal.message,
        `tpm of ${KEY} on ${MODEL}: 100 of 1000 left, 400 requested. Retry in 18 s.`,
      );
      assert.equal(refusal.retryAfterSeconds, 18);
      assert.deepEqual(refusal.statuses, statuses);
      assert.equal(refusal.statuses, refusal.statuses);
    }
  });

  test("the primary violation is the one with the longest wait", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 1), Limit.perHour("rph", 1)]);
    await take(world, { rps: 1, rph: 1 });
    const refusal = await getRefusal(world.limiter, call({ rps: 1, rph: 1 }));
    assert.equal(refusal.violations.length, 2);
    assert.equal(refusal.primaryViolation.limitName, "rph");
    assert.equal(refusal.retryAfterSeconds, 3600);
  });

  test("the waiting time is exact to the millisecond [W-52]", async (world) => {
    await world.repository.setSystemDefaults([
      Limit.custom({ name: "rpm", capacity: 7, refillAmount: 7, refillPeriodSeconds: 60 }),
    ]);
    await take(world, { rpm: 7 });
    const { retryAfterSeconds } = await getRefusal(world.limiter, call({ rpm: 1 }));
    assert.equal(retryAfterSeconds, 8.572);
    await world.pass(8571);
    assert.equal(await fits(world, { rpm: 1 }), false);
    await world.pass(1);
    assert.equal(await fits(world, { rpm: 1 }), true);
  });

  test("a call above the capacity can never fit, and says so [W-52]", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const refusal = await getRefusal(world.limiter, call({ rpm: 101 }));
    assert.equal(refusal.retryAfterSeconds, Infinity);
    assert.equal(refusal.retryAfterHeader, undefined);
    assert.equal(refusal.toJSON().retry_after_seconds, null);
    assert.equal(refusal.toJSON().retry_after_ms, null);
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { rpm: 101 }), Infinity);
  });

  test("calls that race for one bucket get its capacity and no more", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 20)]);
    const second = { limiter: new RateLimiter({ repository: world.repository }) };
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, index) => fits(index % 2 === 0 ? world : second, { rpm: 1 })),
    );
    assert.equal(answers.filter(Boolean).length, 20);
    assert.deepEqual(await readLeft(world), { rpm: 0 });
  });

  test("a bucket that overflowed while idle grants its capacity once, not twice [W-81]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 5, { burst: 10 })]);
    assert.equal(await grants(world, { rps: 1 }, 30), 10);
    await world.pass(4000);
    let granted = await grants(world, { rps: 1 }, 30);
    await world.pass(100);
    granted += await grants(world, { rps: 1 }, 30);
    await world.pass(100);
    granted += await grants(world, { rps: 1 }, 30);
    assert.equal(granted, 11);
  });

  test("a part taken from an overflowed bucket leaves no credit for the idle time [W-81]", async (world) => {
    await world.repository.setSystemDefaults([Limit.perSecond("rps", 5, { burst: 10 })]);
    await take(world, { rps: 1 });
    await world.pass(4000);
    await take(world, { rps: 3 });
    assert.deepEqual(await readLeft(world), { rps: 7 });
    assert.equal(await grants(world, { rps: 1 }, 30), 7);
  });

  test("acquire throws what tryAcquire returns", async (world) => {
    await world.repository.setSystemDefaults([Limit.perMinute("rpm", 1)]);
    await take(world, { rpm: 1 });
    let worked = false;
    const error = await failsWith(RateLimitExceeded, () =>
      world.limiter.acquire(call({ rpm: 1 }), () => (worked = true)),
    );
    assert.equal(error.retryAfterSeconds, 60);
    assert.equal(worked, false);
  });

  test("a call without limits at any level is rejected as invalid", async (world) => {
    await failsWith(ValidationError, () => world.limiter.tryAcquire(call({ rpm: 1 })));
    await failsWith(ValidationError, () => world.limiter.check(call({ rpm: 1 })));
    assert.deepEqual(await world.repository.getBuckets(KEY), []);
  });

  test("check returns what an acquire would decide, and writes nothing", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const before = await footprint(world.repository);
    const fresh = await world.limiter.check(call({ rpm: 1, tpm: 1000 }));
    assert.equal(fresh.allowed, true);
    assert.equal(fresh.retryAfterSeconds, 0);
    assert.deepEqual(fresh.available, { rpm: 100, tpm: 1000 });
    assert.deepEqual(await footprint(world.repository), before);
    await take(world, { rpm: 1, tpm: 1000 });
    const charged = await footprint(world.repository);
    const empty = await world.limiter.check(call({ rpm: 1, tpm: 1 }));
    assert.equal(empty.allowed, false);
    assert.equal(empty.retryAfterSeconds, 0.06);
    assert.deepEqual(
      empty.statuses.map(({ limitName, exceeded }) => [limitName, exceeded]),
      [
        ["rpm", false],
        ["tpm", true],
      ],
    );
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { tpm: 500 }), 30);
    assert.deepEqual(await footprint(world.repository), charged);
  });

  test("a store that responds is reachable, and counts its writes", async (world) => {
    assert.equal(await world.repository.ping(), true);
    for (const [name, count] of Object.entries(world.repository.getStatistics()))
      assert.ok(Number.isInteger(count) && count >= 0, name);
    assert.equal(await world.limiter.isReachable(), true);
  });
};
