/*
 * Engines do not understand every statement: dynoxide reads no sum of an attribute whose name has a
 * dash. Such a statement goes alone from then on, and all others go on sharing.
 */
import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";

const SHARED = "BatchExecuteStatement";

describeWithEngine("a statement that an engine does not understand", (engine) => {
  const table = useProxiedTable(engine);

  it("is not sent a second time, for whichever bucket", async () => {
    const clock = new SleeplessClock(Date.UTC(2030, 0, 1));
    const repository = await table.open("app", { clock });
    const limiter = new RateLimiter({ repository });
    const dashed = Array.from({ length: 12 }, (_, index) => `dashed-${index}`);
    const plain = ["plain-1", "plain-2"];
    await repository.setSystemDefaults([Limit.perMinute("rpm", 6000)]);
    for (const entity of dashed)
      await repository.setLimits(entity, [Limit.perMinute("in-put", 6000)]);
    const takeAll = async (...entities: readonly string[]): Promise<void> =>
      void (await Promise.all(
        entities.map((entity) =>
          take(limiter, entity.startsWith("dashed") ? { "in-put": 60 } : { rpm: 60 }, entity),
        ),
      ));
    await takeAll(...dashed, ...plain);

    let withInvalid = 0;
    table.proxy.observe = ({ operation }, { body }) => {
      if (operation === SHARED && body.includes("ValidationError")) withInvalid += 1;
    };
    for (let round = 0; round < 6; round += 1) {
      // Each round is of other buckets, or of those that are back in shared requests.
      await takeAll(...dashed.slice(0, 6), ...plain);
      await takeAll(...dashed.slice(6), ...plain);
      await clock.advance(2500);
    }
    expect(withInvalid).toBe(engine().name === "dynoxide" ? 1 : 0);
    // Where nothing else is ready, it is clear what was shared.
    const operations = await table.listOperations(() => takeAll(...plain));
    expect(operations).toEqual([SHARED]);
    for (const entity of [...dashed, ...plain]) {
      const rounds = plain.includes(entity) ? 14 : 7;
      expect(await table.consumed(repository, entity)).toBe(60 * rounds);
    }
  });
});
