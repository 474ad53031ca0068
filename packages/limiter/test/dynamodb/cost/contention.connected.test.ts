import { beforeAll, expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { LARGEST_TICK_MS } from "../../../src/repository/dynamodb/write/tick.ts";
import { connectToNewTable, type ConnectedTable } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { LARGEST_SKEW_MS, SimulatedCrowd, type CrowdLoad } from "../../support/simulated-crowd.ts";

const RUN_MS = 1000;

describeWithEngine("processes on one bucket", (engine) => {
  let table: ConnectedTable;

  beforeAll(async () => {
    table = await connectToNewTable(engine().endpointUrl);
  });

  /** The same crowd, with the tick and without. */
  async function withAndWithoutTick(
    load: CrowdLoad,
  ): Promise<readonly [SimulatedCrowd, SimulatedCrowd]> {
    const transports = Array.from({ length: load.processes }, () => table.transport);
    const [ticking, exact] = [LARGEST_TICK_MS, 1].map(
      (largestTickMs) =>
        new SimulatedCrowd({ ...load, tableName: table.tableName, transports, largestTickMs }),
    ) as [SimulatedCrowd, SimulatedCrowd];
    for (const crowd of [ticking, exact]) {
      const givenMs = await crowd.run(RUN_MS);
      const { capacity, refillAmount } = load.limit;
      expect(crowd.grants).toBeLessThanOrEqual(
        capacity + (refillAmount * (givenMs + LARGEST_SKEW_MS)) / 1000,
      );
      expect(await crowd.consumed()).toBe(crowd.grants);
    }
    expect(ticking.contended).toBe(0);
    return [ticking, exact];
  }

  it.each([
    [200, 0.75],
    [1000, 1],
  ])(
    "processes get what a bucket gives or are refused, however much more they ask for: %i a second",
    async (rate, share) => {
      const limit = Limit.perSecond("rps", rate, { burst: rate / 4 });
      const [ticking, exact] = await withAndWithoutTick({ processes: 8, calls: 4, limit });
      expect(ticking.grants).toBeGreaterThan(rate);
      expect(ticking.failedWritesPerGrant).toBeLessThan(share * exact.failedWritesPerGrant);
    },
  );

  it.each([2, 8])(
    "processes fail each other's writes much less with a tick than without: %i of them",
    async (processes) => {
      // Earns more than is taken, so it is full again with every new millisecond, and every write
      // by a newer time must refill it.
      const limit = Limit.perSecond("rps", 2000, { burst: 1000 });
      const [ticking, exact] = await withAndWithoutTick({ processes, calls: 1, limit });
      expect(exact.failedShare).toBeGreaterThan(0.3);
      expect(ticking.failedShare).toBeLessThan(exact.failedShare / 2);
    },
  );

  it("an exhausted bucket with shards refuses, and costs about as much for each grant as a whole one", async () => {
    const limit = Limit.perSecond("rps", 200, { burst: 50 });
    const load = { calls: 16, limit, refusalMemoryMs: 1000 };
    const { tableName, transport } = table;
    const transports = Array.from({ length: 3 }, () => transport);
    const [whole, sharded] = [1, 4].map(
      (shards) => new SimulatedCrowd({ ...load, tableName, transports, shards }),
    ) as [SimulatedCrowd, SimulatedCrowd];
    for (const crowd of [whole, sharded]) {
      await crowd.run(RUN_MS);
      expect(crowd.contended).toBe(0);
      expect(crowd.grants).toBeGreaterThan(200);
      expect(crowd.refusals).toBeGreaterThan(crowd.grants);
      expect(await crowd.consumed()).toBe(crowd.grants);
    }
    // Tokens that come to four shards make smaller batches; all else costs hardly more.
    expect(sharded.perGrant("requests")).toBeLessThan(2.5 * whole.perGrant("requests"));
    expect(sharded.perGrant("writeUnits")).toBeLessThan(2.5 * whole.perGrant("writeUnits"));
    // A look at all four shards for each grant: who took their last tokens must look again to
    // refuse.
    expect(sharded.perGrant("readUnits")).toBeLessThan(4);
  });
});
