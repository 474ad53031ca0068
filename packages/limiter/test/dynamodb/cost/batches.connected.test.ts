/*
 * What calls cost that share writes, through the public surface: requests are counted behind the
 * client, by a proxy, and compared with what `getStatistics` returns.
 */
import { beforeEach, expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { take } from "../../support/calls.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const CALLERS = 64;
const START_MS = Date.UTC(2030, 0, 1);

describeWithEngine("what a bucket costs that many callers share", (engine) => {
  const table = useProxiedTable(engine);
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock(START_MS);
  });

  const open = async (
    limit: Limit,
  ): Promise<{ limiter: RateLimiter; repository: DynamoRepository }> => {
    const repository = await table.open("app", { clock });
    await repository.setSystemDefaults([limit]);
    return { limiter: new RateLimiter({ repository }), repository };
  };

  it("an acquire of one of many callers costs at most 0.05 write units, and every one is charged", async () => {
    const { limiter, repository } = await open(Limit.perSecond("rpm", 1_000_000));
    await take(limiter, { rpm: 1 });
    const rounds = 40;
    const caller = async (): Promise<void> => {
      for (let round = 0; round < rounds; round += 1) {
        await take(limiter, { rpm: 1 });
        clock.set(clock.now() + 1);
      }
    };
    const before = repository.getStatistics();
    const sent = await table.listOperations(() =>
      Promise.all(Array.from({ length: CALLERS }, caller)),
    );
    const acquires = CALLERS * rounds;
    expect(new Set(sent)).toEqual(new Set(["UpdateItem"]));
    expect(sent.length / acquires).toBeLessThanOrEqual(0.05);
    const after = repository.getStatistics();
    expect(after.writes + after.failedConditions - before.writes - before.failedConditions).toBe(
      sent.length,
    );
    expect(after.requests - before.requests).toBe(sent.length);
    expect(after.batchedOperations - before.batchedOperations).toBe(acquires);
    expect(
      (after.batchedOperations - before.batchedOperations) / (after.batches - before.batches),
    ).toBeGreaterThanOrEqual(20);
    expect(await table.consumed(repository)).toBe(acquires + 1);
  });
});
