/*
 * DynamoDB replies to statements in their order. What stands between may not: then the image of one
 * bucket would be taken for that of another, and the outcome of one call for that of another.
 */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { SleeplessClock } from "../../support/sleepless-clock.ts";

const START_MS = Date.UTC(2030, 0, 1);
const SHARED = "BatchExecuteStatement";
const ENTITIES = ["a", "b", "c", "d"];

describeWithEngine("replies to statements in another order", (engine) => {
  const table = useProxiedTable(engine);
  const warned = vi.fn<(message: string | Error, options: unknown) => void>();
  let clock: SleeplessClock;

  beforeEach(() => {
    clock = new SleeplessClock(START_MS);
    warned.mockReset();
    vi.spyOn(process, "emitWarning").mockImplementation(warned);
  });
  afterEach(() => void vi.restoreAllMocks());

  it("are recognized, each call is decided once, and requests are not shared any more", async () => {
    const repository = await table.open("app", { clock, refusalMemoryMs: 0 });
    const limiter = new RateLimiter({ repository });
    await repository.setSystemDefaults([Limit.perMinute("rpm", 60)]);
    const takeAll = async (): Promise<readonly string[]> =>
      table.listOperations(() =>
        Promise.all(ENTITIES.map((entity, index) => take(limiter, { rpm: index + 1 }, entity))),
      );
    await takeAll();
    table.proxy.decide = ({ operation }) =>
      operation === SHARED ? { reordered: (replies) => replies.toReversed() } : undefined;
    expect(await takeAll()).toEqual([SHARED, ...ENTITIES.map(() => "UpdateItem")]);
    expect(warned.mock.calls).toEqual([
      [
        expect.stringMatching(/ \(its replies are not in the order of the statements\)\. /),
        { code: "WARN_LIMITER_REQUESTS_NOT_SHARED" },
      ],
    ]);
    await clock.advance(1000);
    expect(await takeAll()).toEqual(ENTITIES.map(() => "UpdateItem"));
    for (const [index, entity] of ENTITIES.entries()) {
      expect(await table.consumed(repository, entity)).toBe(3 * (index + 1));
      // One came back meanwhile.
      expect(await limiter.available(entity, "r")).toEqual({ rpm: 60 - 3 * (index + 1) + 1 });
    }
  });
});
