import assert from "node:assert/strict";
import { LeaseExpiredError } from "../../core/errors.ts";
import { call, failsWith, left, MODEL, RPM, TPM } from "./calls.ts";
import type { Topic } from "./world.ts";

/** A lease ends once, whoever ends it. */
export const leaseEndsTopic: Topic = (test) => {
  test("the end of a lease waits for what the lease is taking", async (world) => {
    await world.repository.setSystemDefaults([RPM, TPM]);
    const undone = await world.limiter.acquire(call({ rpm: 1 }));
    await Promise.all([undone.consume({ tpm: 300 }), undone.rollback()]);
    assert.deepEqual(await left(world), { rpm: 100, tpm: 1000 });
    const kept = await world.limiter.acquire(call({ rpm: 1 }));
    kept.adjust({ rpm: 1 });
    await Promise.all([kept.consume({ tpm: 300 }), kept.commit()]);
    assert.deepEqual(await left(world), { rpm: 98, tpm: 700 });
  });

  test("work may end its lease itself", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    assert.equal(await world.limiter.acquire(call({ rpm: 1 }), async (lease) => (await lease.rollback(), "undone")), "undone");
    await failsWith(SyntaxError, () =>
      world.limiter.acquire(call({ rpm: 1 }), async (lease) => {
        await lease.commit();
        throw new SyntaxError("after the commit");
      }),
    );
    assert.deepEqual(await left(world), { rpm: 99 });
  });

  test("leases of one bucket end independently, in any order", async (world) => {
    await world.repository.setSystemDefaults([RPM]);
    const leases = await Promise.all([10, 20, 30].map((rpm) => world.limiter.acquire(call({ rpm }))));
    await leases[1]!.rollback();
    leases[2]!.settle({ rpm: 5 });
    await Promise.all([leases[2]!.commit(), leases[0]!.commit()]);
    assert.deepEqual(await left(world), { rpm: 85 });
  });

  test("an ended lease says so, whatever is asked of it, and its disposal does nothing", async (world) => {
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
        () => lease.commit(),
        () => lease.rollback(),
        () => part.adjust({ rpm: 1 }),
        () => part.consumed,
      ];
      for (const use of uses) await failsWith(LeaseExpiredError, use, `${use.toString()} after ${end}`);
      await lease[Symbol.asyncDispose]();
    }
    assert.deepEqual(await left(world), { rpm: 99 });
  });
};
