import assert from "node:assert/strict";
import { LeaseExpiredError, Limit, RateLimiter } from "zae-limiter";
import { faultyRepository } from "zae-limiter/testing";
import { call, failsWith, KEY, readLeft, MODEL, RPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** A lease ends once, however it is ended. */
export const leaseEndsTopic: Topic = (test) => {
  test("the end of a lease waits for takes that are in progress", async (world) => {
    await world.repository.setSystemDefaults([Limit.perDay("rpm", 100), Limit.perDay("tpm", 1000)]);
    let delayMs = 0;
    const slow = faultyRepository(world.repository, (operation) =>
      operation === "consume" && delayMs > 0 ? { delayMs } : undefined,
    );
    const limiter = new RateLimiter({ repository: slow });
    for (const [end, remaining] of [
      ["rollback", { rpm: 100, tpm: 1000 }],
      ["commit", { rpm: 98, tpm: 700 }],
    ] as const) {
      delayMs = 0;
      const lease = await limiter.acquire(call({ rpm: 1 }));
      lease.adjust({ rpm: 1 });
      delayMs = 100;
      const both = Promise.all([lease.consume({ tpm: 300 }), lease[end]()]);
      await world.pass(0);
      assert.deepEqual(await readLeft(world), { rpm: 99, tpm: 1000 }, "nothing has ended yet");
      await world.pass(100);
      await both;
      assert.deepEqual(await readLeft(world), remaining, end);
    }
  });

  test("the work may end its lease itself", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    assert.equal(
      await world.limiter.acquire(
        call({ rpm: 1 }),
        async (lease) => (await lease.rollback(), "undone"),
      ),
      "undone",
    );
    await failsWith(SyntaxError, () =>
      world.limiter.acquire(call({ rpm: 1 }), async (lease) => {
        await lease.commit();
        throw new SyntaxError("after the commit");
      }),
    );
    assert.deepEqual(await readLeft(world), { rpm: 99 });
  });

  test("leases of one bucket end independently, in any order", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const leases = await Promise.all(
      [10, 20, 30].map((rpm) => world.limiter.acquire(call({ rpm }))),
    );
    await leases[1]!.rollback();
    leases[2]!.settle({ rpm: 5 });
    await Promise.all([leases[2]!.commit(), leases[0]!.commit()]);
    assert.deepEqual(await readLeft(world), { rpm: 85 });
  });

  test("tokens taken from a deleted bucket do not go back to a new one", async (world) => {
    await world.repository.setSystemDefaults([Limit.perDay("rpm", 100)]);
    for (const end of ["rollback", "settle"] as const) {
      await world.repository.createEntity(KEY);
      const lease = await world.limiter.acquire(call({ rpm: 30 }));
      await world.repository.deleteEntity(KEY);
      await lease.consume({ rpm: 10 });
      await (await world.limiter.acquire(call({ rpm: 50 }))).commit();
      if (end === "settle") lease.settle({ rpm: 0 });
      await (end === "settle" ? lease.commit() : lease.rollback());
      assert.deepEqual(await readLeft(world), { rpm: 50 }, end);
      await world.repository.deleteEntity(KEY);
    }
  });

  test("every method of an ended lease throws, and disposing of it does nothing", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    for (const end of ["commit", "rollback"] as const) {
      const lease = await world.limiter.acquire(call({ rpm: 1 }));
      const part = lease.resourceLease(MODEL);
      await lease[end]();
      const uses: (() => unknown)[] = [
        () => lease.consume({ rpm: 1 }),
        () => lease.adjust({ rpm: 1 }),
        () => lease.release({ rpm: 1 }),
        () => lease.settle({ rpm: 1 }),
        () => lease.consumed,
        () => lease.resources,
        () => lease.resourceLease(MODEL),
        () => lease.statuses(),
        () => lease.commit(),
        () => lease.rollback(),
        () => part.adjust({ rpm: 1 }),
        () => part.consumed,
      ];
      for (const use of uses)
        assert.match(
          (await failsWith(LeaseExpiredError, use, `${use.toString()} after ${end}`)).message,
          end === "commit" ? /Did the function return before its work was done\?/ : /rolled back/,
        );
      await lease[Symbol.asyncDispose]();
    }
    assert.deepEqual(await readLeft(world), { rpm: 99 });
  });
};
