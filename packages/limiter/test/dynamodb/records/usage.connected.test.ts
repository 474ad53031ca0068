import { expect, it } from "vitest";
import type { UsageSnapshot } from "zae-limiter";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import type { UsageRow, UsageWindow } from "../../../src/core/usage.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { heartbeatItem, usageItem } from "../../support/usage-item.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 2, 1);
const HEARTBEAT = "#AGGREGATOR";
const NEVER_TTL = 9_999_999_999;

describeWithEngine("usage on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  const store = async (
    { namespaceId }: DynamoRepository,
    rows: readonly Partial<UsageRow>[],
  ): Promise<void> => {
    for (const row of rows) {
      const whole = {
        entityId: "e",
        resource: "r",
        window: "hourly" as UsageWindow,
        windowStartMs: START_MS,
        counters: {},
        requests: 1,
        ...row,
      };
      await table.raw("PutItem", { Item: usageItem(namespaceId, whole, NEVER_TTL) });
    }
  };

  const countUntil = (timeMs: number): Promise<object> =>
    table.raw("PutItem", { Item: heartbeatItem(timeMs) });

  /** A repository of a table whose usage is counted until now. */
  const openCounted = async (nowMs: number): Promise<DynamoRepository> => {
    const repository = await table.open("app", { clock: new ManualClock(nowMs) });
    await countUntil(nowMs);
    return repository;
  };

  it("is an error that names the aggregator, until one has counted", async () => {
    const repository = await table.open();
    expect(repository.capabilities.usageSnapshots).toBe(false);
    for (const ask of [
      () => repository.getUsageSnapshots({ entityId: "e" }),
      () => repository.getUsageSummary({ resource: "r" }),
    ])
      await expect(ask()).rejects.toMatchObject({
        code: "ERR_LIMITER_USAGE_NOT_RECORDED",
        message: expect.stringContaining("zae-limiter aggregate"),
      });
    expect(await repository.getCountedUntil()).toBeUndefined();

    await countUntil(START_MS);
    expect((await repository.getUsageSnapshots({ entityId: "e" })).items).toEqual([]);
    expect(await repository.getCountedUntil()).toEqual(new Date(START_MS));
  });

  it("names limits in the same order each time, whatever the order of attributes", async () => {
    const repository = await openCounted(START_MS);
    const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    await store(repository, [{ counters: Object.fromEntries(names.map((name) => [name, 1])) }]);
    const { total } = await repository.getUsageSummary({ entityId: "e" });
    expect(Object.keys(total)).toEqual(names);
  });

  it("capabilities say what was last seen of the aggregator, without a request of their own", async () => {
    const early = await table.open();
    const opening = await table.listOperations(() => table.open());
    await countUntil(START_MS);
    expect(early.capabilities.usageSnapshots).toBe(false);

    let late: DynamoRepository | undefined;
    expect(await table.listOperations(async () => (late = await table.open()))).toEqual(opening);
    expect(opening.filter((operation) => operation.includes("Get"))).toEqual([
      "BatchGetItem",
      "BatchGetItem",
    ]);
    expect(late?.capabilities.usageSnapshots).toBe(true);
    expect(early.capabilities.usageSnapshots).toBe(false);
    await early.getUsageSummary({ entityId: "e" });
    expect(early.capabilities.usageSnapshots).toBe(true);
  });

  it("a window is complete when it has ended and all of it is counted", async () => {
    const clock = new ManualClock(START_MS + 2 * HOUR_MS);
    const repository = await table.open("app", { clock });
    await store(repository, [
      { windowStartMs: START_MS },
      { windowStartMs: START_MS + HOUR_MS },
      { windowStartMs: START_MS + 2 * HOUR_MS },
    ]);
    const completeAt = async (countedUntilMs: number): Promise<readonly boolean[]> => {
      await countUntil(countedUntilMs);
      const page = await repository.getUsageSnapshots({ entityId: "e" });
      const summary = await repository.getUsageSummary({ resource: "r" });
      expect(page.countedUntil).toEqual(new Date(countedUntilMs));
      expect(summary.countedUntil).toEqual(new Date(countedUntilMs));
      return page.items.map(({ complete }) => complete);
    };
    expect(await completeAt(START_MS + HOUR_MS - 1)).toEqual([false, false, false]);
    expect(await completeAt(START_MS + HOUR_MS)).toEqual([true, false, false]);
    expect(await completeAt(START_MS + 2 * HOUR_MS)).toEqual([true, true, false]);
    // The aggregator's clock, or the table's, may be ahead of ours.
    expect(await completeAt(START_MS + 3 * HOUR_MS)).toEqual([true, true, false]);
  });

  it("the heartbeat is read before the windows, so that none looks complete too early", async () => {
    const repository = await openCounted(START_MS + DAY_MS);
    await store(repository, [{}]);
    for (const ask of [
      () => repository.getUsageSnapshots({ entityId: "e" }),
      () => repository.getUsageSummary({ resource: "r" }),
    ]) {
      const sent = await table.sentDuring(ask);
      const heartbeat = sent.findIndex(({ input }) => JSON.stringify(input).includes(HEARTBEAT));
      const windows = sent.findIndex(({ operation }) => operation === "Query");
      expect([heartbeat >= 0, heartbeat < windows]).toEqual([true, true]);
    }
  });

  it("counters are tokens to the thousandth, and hold what came by cascade apart", async () => {
    const repository = await openCounted(START_MS + DAY_MS);
    await store(repository, [
      { counters: { tpm: 0.1, rpm: 5 }, requests: 5, cascaded: { tpm: 0.1 }, cascadedRequests: 2 },
      { windowStartMs: START_MS + HOUR_MS, counters: { tpm: 0.2 } },
      { entityId: "f", counters: { tpm: 1000.3 }, cascaded: { tpm: 1000.1 } },
    ]);
    const { items } = await repository.getUsageSnapshots({ entityId: "e" });
    expect(items.map(show)).toEqual([
      [{ tpm: 0.1, rpm: 5 }, 5, { tpm: 0.1 }, 2],
      [{ tpm: 0.2 }, 1, {}, 0],
    ]);
    expect((await repository.getUsageSummary({ entityId: "e" })).total["tpm"]).toBe(0.3);
    const own = await repository.getUsageSnapshots({ resource: "r" });
    expect(own.items.map(show)).toEqual([
      [{ tpm: 0, rpm: 5 }, 3, { tpm: 0.1 }, 2],
      [{ tpm: 0.2 }, 1, { tpm: 1000.1 }, 0],
      [{ tpm: 0.2 }, 1, {}, 0],
    ]);
    const sum = await repository.getUsageSummary({ resource: "r" });
    expect([sum.total["tpm"], sum.cascaded["tpm"]]).toEqual([0.4, 1000.2]);
  });

  it("counters beyond what a number holds in millitokens are whole tokens", async () => {
    const repository = await openCounted(START_MS + DAY_MS);
    const item = usageItem(
      repository.namespaceId,
      {
        entityId: "e",
        resource: "r",
        window: "hourly",
        windowStartMs: START_MS,
        counters: {},
        requests: 1,
      },
      NEVER_TTL,
    );
    await table.raw("PutItem", { Item: { ...item, u_tpm: { N: "90000000000001000" } } });
    const { items } = await repository.getUsageSnapshots({ entityId: "e" });
    expect(items[0]?.counters).toEqual({ tpm: 90_000_000_000_001 });
  });
});

function show(snapshot: UsageSnapshot): readonly unknown[] {
  const { counters, requests, cascaded, cascadedRequests } = snapshot;
  return [counters, requests, cascaded, cascadedRequests];
}
