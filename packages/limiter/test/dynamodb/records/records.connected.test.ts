import { expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { ManualClock } from "zae-limiter/testing";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import type { UsageRow, UsageWindow } from "../../../src/core/usage.ts";
import { Expiring } from "../../../src/repository/dynamodb/cache/expiring.ts";
import {
  retentionOf,
  type RetentionDays,
} from "../../../src/repository/dynamodb/cache/retention.ts";
import { DynamoUsage } from "../../../src/repository/dynamodb/usage.ts";
import type { Keyed, KeyPage, UsageRange } from "../../../src/repository/store.ts";
import { connect } from "../../support/connect.ts";
import { usageItem } from "../../support/usage-item.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { script } from "../../support/fault-proxy.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 2, 1);
const EVERYTHING: UsageRange = {
  entityId: undefined,
  resource: undefined,
  window: "hourly",
  startMs: undefined,
  endMs: undefined,
};

const defaultRetention = async (): Promise<RetentionDays> => retentionOf(undefined);

describeWithEngine("usage, audit and records on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  const store = async (namespaceId: string, rows: readonly Partial<UsageRow>[]): Promise<void> => {
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
      await table.raw("PutItem", { Item: usageItem(namespaceId, whole, 9_999_999_999) });
    }
  };

  /** Nothing records usage yet, so repositories do not show it; a store reads what is there. */
  const usageOf = async (
    repository: DynamoRepository,
    nowMs: number,
  ): Promise<(range: Partial<UsageRange>, page?: KeyPage) => Promise<Keyed<UsageRow>>> => {
    const clock = new ManualClock(nowMs);
    const { connection } = await connect(engine().endpointUrl, {
      tableName: repository.tableName,
      clock,
    });
    const retention = new Expiring({ read: defaultRetention, clock, ttlMs: 1000 });
    const usage = new DynamoUsage(connection, repository.namespaceId, retention);
    return async (range, page = { limit: 100, after: undefined }) =>
      usage.rows({ ...EVERYTHING, ...range }, page);
  };

  it("usage of windows that begin together is read apart, for limits of any name", async () => {
    const repository = await table.open();
    const rows = await usageOf(repository, START_MS + HOUR_MS);
    await store(repository.namespaceId, [
      { counters: { ttl: 5, window: 6, requests: 7, "a-b.c": 8 }, requests: 2 },
      { window: "daily", counters: { rpm: 17 } },
      { window: "monthly", counters: { rpm: 170 } },
    ]);
    expect((await rows({ entityId: "e" })).items).toEqual([
      {
        entityId: "e",
        resource: "r",
        window: "hourly",
        windowStartMs: START_MS,
        counters: { ttl: 5, window: 6, requests: 7, "a-b.c": 8 },
        requests: 2,
        cascaded: {},
        cascadedRequests: 0,
      },
    ]);
    expect((await rows({ resource: "r", window: "daily" })).items).toMatchObject([
      { counters: { rpm: 17 } },
    ]);
    expect((await rows({ entityId: "e", resource: "r", window: "monthly" })).items).toMatchObject([
      { counters: { rpm: 170 } },
    ]);
  });

  it.each([{ entityId: "e" }, { resource: "r" }, { entityId: "e", resource: "r" }])(
    "usage by %o is read page by page, half open",
    async (query) => {
      const repository = await table.open();
      const rows = await usageOf(repository, START_MS + DAY_MS);
      const hours = [0, 1, 2, 3, 4, 5];
      await store(repository.namespaceId, [
        ...hours.map((hour) => ({ windowStartMs: START_MS + hour * HOUR_MS })),
        ...hours.map((hour) => ({
          windowStartMs: START_MS + hour * HOUR_MS,
          entityId: "other",
          resource: "elsewhere",
        })),
      ]);
      const hoursOf = ({ items }: Keyed<UsageRow>): readonly number[] =>
        items.map(({ windowStartMs }) => (windowStartMs - START_MS) / HOUR_MS);
      const range = { ...query, startMs: START_MS + HOUR_MS, endMs: START_MS + 5 * HOUR_MS };
      const first = await rows(range, { limit: 3, after: undefined });
      expect(hoursOf(first)).toEqual([1, 2, 3]);
      const second = await rows(range, { limit: 3, after: first.next });
      expect([hoursOf(second), second.next]).toEqual([[4], undefined]);
      const between = { startMs: START_MS + 1, endMs: START_MS + 2 * HOUR_MS + 1 };
      expect(hoursOf(await rows({ ...query, ...between }))).toEqual([1, 2]);
    },
  );

  it("events are listed newest first, page by page", async () => {
    const repository = await table.open();
    for (let capacity = 1; capacity <= 5; capacity += 1)
      await repository.setLimits("e", [Limit.perMinute("rpm", capacity)]);
    const seen: unknown[] = [];
    let cursor: string | undefined;
    do {
      const page = await repository.getAuditEvents("e", {
        limit: 2,
        ...(cursor !== undefined && { cursor }),
      });
      seen.push(
        ...page.items.map(
          ({ details }) => (details["limits"] as { capacity: number }[])[0]!.capacity,
        ),
      );
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(seen).toEqual([5, 4, 3, 2, 1]);
  });

  it("the provisioner stores its state once although the answer was lost, and refuses a stale one", async () => {
    const repository = await table.open();
    const state = {
      ...(await repository.getProvisionerState()),
      managedEntities: { e: ["r"] },
      appliedHash: "sha256:1",
    };
    table.proxy.decide = script("TransactWriteItems", ["lost-reply"]);
    await repository.putProvisionerState(state);
    expect(await repository.getProvisionerState()).toEqual({ ...state, revision: 1 });
    await expect(repository.putProvisionerState(state)).rejects.toThrow("read it again");
    await repository.putProvisionerState({ ...state, revision: 1 });
    expect((await repository.getProvisionerState()).revision).toBe(2);
  });

  it("the whole table has one version record", async () => {
    const repository = await table.open("one");
    expect(await repository.getVersionRecord()).toMatchObject({
      schemaVersion: "1.0.0",
      lambdaVersion: undefined,
    });
    await repository.setVersionRecord({
      schemaVersion: "1.2.3",
      lambdaVersion: "0.1.0",
      updatedBy: "cli:0.1.0",
    });
    const other = await table.open("two");
    expect(await other.getVersionRecord()).toMatchObject({
      schemaVersion: "1.2.3",
      lambdaVersion: "0.1.0",
      updatedBy: "cli:0.1.0",
    });
  });
});
