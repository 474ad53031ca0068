import { afterEach, beforeEach, expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import type { DynamoRepository, DynamoTransport } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { heldAnswer, type HeldAnswer } from "../../support/held-answer.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { openTransport } from "../../support/transports.ts";

/** Writes of this bucket are not answered until the test wants it. */
const SLOW = /BUCKET#slow#/;
const QUICK = ["a", "b", "c", "d"];

describeWithEngine("a bucket that is slow", (engine) => {
  const table = useProxiedTable(engine);
  let clock: ManualClock;
  let transport: DynamoTransport;
  let repository: DynamoRepository;
  let limiter: RateLimiter;
  let held: HeldAnswer<void>[] = [];
  let isHeld = false;

  beforeEach(async () => {
    clock = new ManualClock();
    transport = await openTransport("lean", table.proxy);
    const slowTransport: DynamoTransport = {
      call: async (operation, input, options) => {
        const answer = await transport.call(operation, input, options);
        if (isHeld && SLOW.test(JSON.stringify(input))) {
          held.push(heldAnswer());
          await held.at(-1)!.promise;
        }
        return answer;
      },
      close: () => {},
    };
    repository = await table.open("app", { transport: slowTransport, clock });
    await repository.setSystemDefaults([Limit.perDay("rpm", 100_000)]);
    limiter = new RateLimiter({ repository });
    held = [];
    for (const entity of ["slow", ...QUICK]) await call(entity);
    isHeld = true;
  });
  afterEach(() => {
    isHeld = false;
    for (const { resolve } of held) resolve();
    transport.close();
  });

  const call = (entity: string): Promise<void> => take(limiter, { rpm: 1 }, entity);

  /** Calls on buckets at the same time; returns what was sent until all have been granted. */
  const callAll = (...entities: readonly string[]): Promise<readonly string[]> =>
    table.operationsOf(() => Promise.all(entities.map(call)));

  const SHARED = ["BatchExecuteStatement"];
  const ALONE = ["UpdateItem"];

  it("holds up those of its request once; then it is alone, and they share again", async () => {
    const first = Promise.all(["slow", "a", "b"].map(call));
    await untilHeld(1);
    // While it is under way, others are as quick as ever.
    for (let round = 0; round < 3; round += 1) expect(await callAll("c", "d")).toEqual(SHARED);
    await clock.advance(60);
    held[0]!.resolve();
    await first;
    // Nobody knows which of them was slow: the next write of each is alone.
    const slow = call("slow");
    await untilHeld(2);
    expect((await callAll("a", "b")).toSorted()).toEqual([...ALONE, ...ALONE]);
    for (let round = 0; round < 3; round += 1) expect(await callAll(...QUICK)).toEqual(SHARED);
    await clock.advance(60);
    held[1]!.resolve();
    await slow;
    // The one that was slow again stays alone.
    const again = call("slow");
    await untilHeld(3);
    expect(await callAll(...QUICK)).toEqual(SHARED);
    expect(await callAll(...QUICK)).toEqual(SHARED);
    held[2]!.resolve();
    await again;
    isHeld = false;
    for (const [entity, calls] of [
      ["slow", 4],
      ["a", 8],
      ["c", 9],
    ] as const)
      expect(await table.consumed(repository, entity), entity).toBe(calls);
  });

  /** Waits until so many answers are held. */
  async function untilHeld(count: number): Promise<void> {
    while (held.length < count) await new Promise((resolve) => setImmediate(resolve));
  }
});
