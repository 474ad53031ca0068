import assert from "node:assert/strict";
import { Limit } from "zae-limiter";
import { call, fits, getRefusal, grants, KEY, MODEL, readLeft, RPM, take } from "./calls.ts";
import type { Topic } from "./world.ts";

const HOURS_5 = 5 * 3600;
const MESSAGES = Limit.session("messages", 45, { windowSeconds: HOURS_5 });

/** Sessions: windows that begin with their first use. */
export const sessionsTopic: Topic = (test) => {
  test("the first admitted use opens a window, and its end closes it", async (world) => {
    await world.repository.setSystemDefaults([MESSAGES]);
    await world.pass(123_456);
    assert.equal(await grants(world, { messages: 15 }, 5), 3);
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { messages: 1 }), HOURS_5);
    await world.pass(HOURS_5 * 1000 - 1);
    assert.equal(await fits(world, { messages: 1 }), false);
    await world.pass(1);
    assert.deepEqual(await readLeft(world), { messages: 45 });
    await world.pass(1_000_000);
    await take(world, { messages: 45 });
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { messages: 1 }), HOURS_5);
  });

  test("neither a refusal nor a call that does not name it opens one", async (world) => {
    await world.repository.setSystemDefaults([MESSAGES, RPM]);
    const refusal = await getRefusal(world.limiter, call({ messages: 46 }));
    assert.equal(refusal.retryAfterSeconds, Infinity);
    await take(world, { rpm: 1, messages: 0 });
    await world.pass(1_000_000);
    const { statuses } = await world.limiter.check(call({ messages: 1 }));
    assert.equal(statuses.find(({ kind }) => kind === "session")!.resetsAt, undefined);
    await take(world, { messages: 45 });
    assert.equal(await world.limiter.timeUntilAvailable(KEY, MODEL, { messages: 1 }), HOURS_5);
  });

  test("a window stays open when its first use is rolled back", async (world) => {
    await world.repository.setSystemDefaults([MESSAGES]);
    const lease = await world.limiter.acquire(call({ messages: 5 }));
    await world.pass(60_000);
    await lease.rollback();
    await take(world, { messages: 45 });
    const wait = await world.limiter.timeUntilAvailable(KEY, MODEL, { messages: 1 });
    assert.equal(wait, HOURS_5 - 60);
  });

  test("a charge opens one, and what is given back after its end is lost", async (world) => {
    await world.repository.setSystemDefaults([MESSAGES]);
    const lease = await world.limiter.acquire(call({ messages: 40 }));
    await world.pass(HOURS_5 * 1000);
    await world.limiter.charge({ entityId: KEY, resource: MODEL, amounts: { messages: 30 } });
    await lease.rollback();
    assert.deepEqual(await readLeft(world), { messages: 15 });
  });

  test("a shorter length ends the open window earlier; a longer one waits for the next", async (world) => {
    const { repository } = world;
    const waitNow = (): Promise<number> =>
      world.limiter.timeUntilAvailable(KEY, MODEL, { messages: 45 });
    await repository.setSystemDefaults([MESSAGES]);
    await take(world, { messages: 1 });
    await repository.setSystemDefaults([{ ...MESSAGES, windowSeconds: 2 * HOURS_5 }]);
    await fits(world, { messages: 0 });
    assert.equal(await waitNow(), HOURS_5);
    await repository.setSystemDefaults([{ ...MESSAGES, windowSeconds: 60 }]);
    await fits(world, { messages: 0 });
    assert.equal(await waitNow(), 60);
  });
};
