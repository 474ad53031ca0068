import assert from "node:assert/strict";
import {
  type Lease,
  PermissionDenied,
  RateLimiter,
  RateLimiterUnavailable,
  type Repository,
} from "zae-limiter";
import { type Fault, faultyRepository } from "zae-limiter/testing";
import { call, failsWith, KEY, readLeft, RPM, TPM } from "./calls.ts";
import type { Topic, World } from "./world.ts";

/**
 * Promises 2 and 4 when the store fails at the end of a lease: calls are charged once and given
 * back once, and completed work is never refunded.
 */
export const settlementFaultsTopic: Topic = (test) => {
  for (const fault of ["error-before", "error-after"] as const) {
    const lost = fault === "error-before" ? "request" : "response";

    test(`a settlement whose ${lost} is lost once is written once [W-47]`, async (world) => {
      const faults = failingTimes(1, "settle", fault);
      const { limiter, failures } = await limiterOn(world, faults.next);
      await limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => lease.settle({ tpm: 400 }));
      assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 600 });
      await limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => lease.settle({ tpm: 0 }));
      assert.deepEqual(await readLeft(world), { rpm: 98, tpm: 600 });
      assert.deepEqual(failures, []);
      assert.equal(faults.count(), 1);
    });

    test(`a rollback whose ${lost} is lost once gives back once`, async (world) => {
      const { limiter, failures } = await limiterOn(world, failingTimes(1, "giveBack", fault).next);
      const other = await world.limiter.acquire(call({ rpm: 50, tpm: 500 }));
      await failsWith(SyntaxError, () =>
        limiter.acquire(call({ rpm: 1, tpm: 100 }), () => {
          throw new SyntaxError("the work failed");
        }),
      );
      assert.deepEqual(await readLeft(world), { rpm: 50, tpm: 500 });
      await other.rollback();
      assert.deepEqual(failures, []);
    });

    test(`a settlement whose ${lost} is lost every time is reported, and nothing is refunded [W-47]`, async (world) => {
      const faults = failingTimes(Infinity, "settle", fault);
      const { limiter, failures } = await limiterOn(world, faults.next);
      const result = await limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => {
        lease.settle({ tpm: 400 });
        return "done";
      });
      assert.equal(result, "done", "the work succeeded, so its result is returned");
      assert.equal(failures.length, 1);
      assert.ok(failures[0]!.error instanceof RateLimiterUnavailable);
      assert.equal(failures[0]!.lease.entityId, KEY);
      assert.ok(faults.count() > 1, "it was tried again");
      assert.deepEqual(await readLeft(world), {
        rpm: 99,
        tpm: fault === "error-before" ? 900 : 600,
      });
    });

    test(`commit rejects when its ${lost} is lost every time, and the lease has ended [W-47]`, async (world) => {
      const { limiter, failures } = await limiterOn(
        world,
        failingTimes(Infinity, "settle", fault).next,
      );
      {
        await using lease = await limiter.acquire(call({ rpm: 1, tpm: 100 }));
        lease.settle({ tpm: 400 });
        await failsWith(RateLimiterUnavailable, () => lease.commit());
      }
      assert.deepEqual(await readLeft(world), {
        rpm: 99,
        tpm: fault === "error-before" ? 900 : 600,
      });
      assert.deepEqual(failures, [], "the caller already knows");
    });

    test(`a rollback whose ${lost} is lost every time does not hide the error of the work`, async (world) => {
      const { limiter, failures } = await limiterOn(
        world,
        failingTimes(Infinity, "giveBack", fault).next,
      );
      await failsWith(SyntaxError, () =>
        limiter.acquire(call({ rpm: 1 }), () => {
          throw new SyntaxError("the work failed");
        }),
      );
      assert.equal(failures.length, 1);
      const rpm = (await readLeft(world))["rpm"];
      assert.equal(rpm, fault === "error-before" ? 99 : 100, "given back at most once");
    });

    test(`an acquire whose ${lost} is lost stays charged for its own cost at most`, async (world) => {
      const { limiter } = await limiterOn(world, failingTimes(1, "consume", fault).next);
      await failsWith(RateLimiterUnavailable, () => limiter.acquire(call({ rpm: 10 })));
      const rpm = (await readLeft(world))["rpm"]!;
      assert.ok(rpm === 100 || (fault === "error-after" && rpm === 90), `${rpm} of 100`);
    });

    test(`a later take of a lease whose ${lost} is lost goes back with a rollback, once`, async (world) => {
      const faults = failingTimes(1, "consume", fault);
      const { limiter } = await limiterOn(world, (operation) =>
        open ? faults.next(operation) : undefined,
      );
      let open = false;
      const lease = await limiter.acquire(call({ rpm: 1, tpm: 100 }));
      open = true;
      await failsWith(RateLimiterUnavailable, () => lease.consume({ tpm: 300 }));
      assert.deepEqual(lease.consumed, { rpm: 1, tpm: 100 });
      await lease.consume({ tpm: 200 });
      await lease.rollback();
      const { rpm, tpm } = await readLeft(world);
      assert.equal(rpm, 100);
      assert.ok(tpm === 1000 || (fault === "error-after" && tpm === 700), `${tpm} of 1000`);
    });
  }

  test("a settlement without a difference writes nothing, so it cannot fail", async (world) => {
    const { limiter, failures } = await limiterOn(
      world,
      failingTimes(Infinity, "settle", "error-before").next,
    );
    await limiter.acquire(call({ rpm: 1, tpm: 100 }), (lease) => lease.settle({ tpm: 100 }));
    assert.deepEqual(failures, []);
  });

  test("denied access at the end of a lease hides neither the result nor the error of the work", async (world) => {
    const failures: unknown[] = [];
    await world.repository.setSystemDefaults([RPM, TPM]);
    const repository = denyingEnds(world.repository);
    const limiter = new RateLimiter({
      repository,
      onSettlementFailed: (error) => failures.push(error.cause),
    });
    assert.equal(
      await limiter.acquire(call({ rpm: 1 }), (lease) => (lease.settle({ tpm: 5 }), "done")),
      "done",
    );
    await failsWith(SyntaxError, () =>
      limiter.acquire(call({ rpm: 1 }), () => {
        throw new SyntaxError("the work failed");
      }),
    );
    assert.deepEqual(
      failures.map((cause) => cause instanceof PermissionDenied),
      [true, true],
    );
    const lease = await limiter.acquire(call({ rpm: 1 }));
    lease.settle({ tpm: 5 });
    await failsWith(PermissionDenied, () => lease.commit());
  });
};

interface Failure {
  readonly error: RateLimiterUnavailable;
  readonly lease: Lease;
}

async function limiterOn(
  world: World,
  next: (operation: string) => Fault | undefined,
): Promise<{ limiter: RateLimiter; failures: Failure[] }> {
  await world.repository.setSystemDefaults([RPM, TPM]);
  const failures: Failure[] = [];
  const repository = faultyRepository(world.repository, next);
  return {
    failures,
    limiter: new RateLimiter({
      repository,
      onSettlementFailed: (error, lease) => failures.push({ error, lease }),
    }),
  };
}

/** Makes one operation fail a number of times. */
function failingTimes(
  times: number,
  operation: string,
  fault: Fault,
): { readonly next: (name: string) => Fault | undefined; readonly count: () => number } {
  let count = 0;
  return {
    next: (name) => (name === operation && (count += 1) <= times ? fault : undefined),
    count: () => Math.min(count, times),
  };
}

/** A store that allows takes, but neither settlements nor give-backs. */
function denyingEnds(repository: Repository): Repository {
  return new Proxy(repository, {
    get(target, property) {
      if (property === "settle" || property === "giveBack")
        return () => Promise.reject(new PermissionDenied("read and take only"));
      return Reflect.get(target, property, target) as unknown;
    },
  });
}
