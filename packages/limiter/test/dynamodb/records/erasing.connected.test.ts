import { expect, it } from "vitest";
import { Limit, RateLimiter, RateLimiterUnavailable } from "zae-limiter";
import { openAggregator } from "zae-limiter/aggregator";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { seededRandom } from "zae-limiter/testing";
import { connect } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import type { Fault } from "../../support/fault-proxy.ts";
import { listKeys, useProxiedTable, type ProxiedTable } from "../../support/proxied-table.ts";
import { pick } from "../../support/seeded/random-choice.ts";
import { getEach, seedsFromEnvironment } from "../../support/seeded/seeds.ts";
import { StreamReader } from "../../support/stream-reader.ts";
import { usageItem } from "../../support/usage-item.ts";

const RPM = Limit.perMinute("rpm", 10);
const HISTORY = { history: true } as const;

/** What cuts a request: before it is carried out, after it, or in the middle of a batch. */
const CUTS: readonly Fault[] = ["lost-request", "lost-reply", "late-internal", "throttle"];

describeWithEngine("erasing an entity on DynamoDB", (engine) => {
  const table = useProxiedTable(engine);

  it.each(getEach(seedsFromEnvironment({ usual: 3 })))(
    "is completed by repetitions, wherever requests were cut, seed %i",
    async (seed) => {
      const random = seededRandom(seed);
      const repository = await table.open("app", { maxAttempts: 1 });
      await repository.setSystemDefaults([RPM]);
      for (const entityId of ["person", "other"]) await fill(repository, entityId, table);
      const before = listKeys(await table.items()).filter(isOfOther);
      table.proxy.decide = ({ operation }) => {
        if (random() < 0.6) return undefined;
        return operation === "BatchWriteItem" && random() < 0.5
          ? "half-unprocessed"
          : pick(random, CUTS);
      };
      let interruptions = 0;
      for (let isErased = false; !isErased;) {
        try {
          await repository.deleteEntity("person", HISTORY);
          isErased = true;
        } catch (error) {
          expect(error).toBeInstanceOf(RateLimiterUnavailable);
          expect((interruptions += 1)).toBeLessThan(500);
        }
      }
      expect(interruptions).toBeGreaterThan(0);
      table.proxy.decide = () => undefined;
      await table.proxy.idle();
      const items = await table.items();
      expect(JSON.stringify(items)).not.toContain("person");
      expect(listKeys(items).filter(isOfOther)).toEqual(before);
      const actions = (await repository.getAuditEvents("$SYSTEM")).items.map(
        ({ action }) => action,
      );
      expect(actions).toContain("entity_erased");
    },
  );

  it("says until when usage may still be counted, which a repetition removes, and archives nothing", async () => {
    const repository = await table.open("team", { stream: true });
    await repository.setSystemDefaults([RPM]);
    await acquire(repository, "person");
    const { usageMayFollowUntil, ...rest } = await repository.deleteEntity("person", HISTORY);
    expect(rest).toEqual({
      records: 1,
      usageRecords: 0,
      auditEvents: 1,
      archivedUnder: "audit/namespace=team/",
    });
    expect(usageMayFollowUntil).toBeInstanceOf(Date);

    const { connection } = await connect(engine().endpointUrl, { tableName: repository.tableName });
    const aggregator = await openAggregator({ ...table.place, archive: { store: async () => {} } });
    const records = await (await StreamReader.open(connection)).read();
    expect(await aggregator.process(records)).toMatchObject({
      failures: [],
      counted: 1,
      archived: 0,
    });
    expect(await repository.deleteEntity("person", HISTORY)).toMatchObject({ usageRecords: 3 });
    expect(listKeys(await table.items()).filter((key) => key.includes("person"))).toEqual([]);
    const again = await repository.deleteEntity("person", HISTORY);
    expect(again).not.toHaveProperty("usageMayFollowUntil");
    expect(again.usageRecords).toBe(0);
    aggregator.close();
    connection.close();
  });
});

function isOfOther(key: string): boolean {
  return key.includes("other");
}

/** A record, limits, buckets, audit events, and usage of several batches and a later version. */
async function fill(
  repository: DynamoRepository,
  entityId: string,
  table: ProxiedTable,
): Promise<void> {
  await repository.createEntity(entityId);
  for (const resource of ["a", "b"]) await repository.setLimits(entityId, [RPM], { resource });
  await acquire(repository, entityId);
  const { namespaceId } = repository;
  const windows = Array.from({ length: 40 }, (_, hour) => ({
    entityId,
    resource: "a",
    window: "hourly" as const,
    windowStartMs: hour * 3_600_000,
    counters: { rpm: 1 },
    requests: 1,
  }));
  for (const row of windows) await table.raw("PutItem", { Item: usageItem(namespaceId, row, 9e9) });
  const item = usageItem(namespaceId, windows[0]!, 9e9);
  await table.raw("PutItem", {
    Item: { ...item, SK: { S: "#USAGE#weekly#1970-01-01T00:00:00Z#a" } },
  });
}

async function acquire(repository: DynamoRepository, entityId: string): Promise<void> {
  const request = { entityId, resource: "a", consume: { rpm: 1 } };
  await new RateLimiter({ repository }).acquire(request, async () => {});
}
