import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import { openAggregator } from "zae-limiter/aggregator";
import type { DynamoRepository } from "zae-limiter/dynamodb";
import { getKey } from "../../../src/repository/dynamodb/table/batch.ts";
import { connect } from "../../support/connect.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { useProxiedTable } from "../../support/proxied-table.ts";
import { StreamReader } from "../../support/stream-reader.ts";

const RPM = Limit.perMinute("rpm", 10);

describeWithEngine("an aggregator that is behind when namespaces are purged", (engine) => {
  const table = useProxiedTable(engine);

  /** The ids of the namespaces that have usage of this hour. */
  const counted = async (): Promise<readonly string[]> =>
    (await table.items())
      .map(getKey)
      .filter(({ SK }) => SK.startsWith("#USAGE#hourly#"))
      .map(({ PK }) => PK.split("/")[0]!)
      .toSorted();

  it("drops what is gone, counts what is alive or can be recovered, and drops nothing unread", async () => {
    const operator = await table.open("app", { stream: true });
    const [alive, deleted, purged] = [
      await table.open("alive"),
      await table.open("deleted"),
      await table.open("purged"),
    ];
    for (const tenant of [alive, deleted, purged]) await acquireIn(tenant);
    await operator.deleteNamespace("deleted");
    await operator.deleteNamespace("purged");
    await operator.purgeNamespace(purged.namespaceId);

    const { tableName } = operator;
    const { connection } = await connect(engine().endpointUrl, { tableName });
    const reader = await StreamReader.open(connection);
    const aggregator = await openAggregator({ ...table.place, maxAttempts: 1 });
    const records = await reader.read();
    table.proxy.decide = ({ operation }) => (operation === "BatchGetItem" ? "internal" : undefined);
    const unread = await aggregator.process(records);
    expect(unread.snapshotWrites).toBe(0);
    const failed = new Set(unread.failures.map(({ sequenceNumber }) => sequenceNumber));
    expect(failed.size).toBe(unread.counted);

    table.proxy.decide = () => undefined;
    expect((await aggregator.process(records)).failures).toEqual([]);
    expect(await counted()).toEqual([alive.namespaceId, deleted.namespaceId].toSorted());

    // It has met this namespace, and does not go by what it remembers.
    await acquireIn(alive);
    const behind = await reader.read();
    await operator.deleteNamespace("alive");
    await operator.purgeNamespace(alive.namespaceId);
    expect(await aggregator.process(behind)).toMatchObject({ failures: [], snapshotWrites: 0 });
    expect(await counted()).toEqual([deleted.namespaceId]);
    aggregator.close();
    connection.close();
  });

  it("drops the records of a namespace that is being purged", async () => {
    const operator = await table.open("app", { stream: true, maxAttempts: 1 });
    const tenant = await table.open("tenant");
    await acquireIn(tenant);
    await operator.deleteNamespace("tenant");
    table.proxy.decide = ({ operation }) =>
      operation === "BatchWriteItem" ? "internal" : undefined;
    await expect(operator.purgeNamespace(tenant.namespaceId)).rejects.toThrow();
    const { connection } = await connect(engine().endpointUrl, { tableName: operator.tableName });
    const aggregator = await openAggregator(table.place);
    const records = await (await StreamReader.open(connection)).read();
    expect(await aggregator.process(records)).toMatchObject({ failures: [], snapshotWrites: 0 });
    aggregator.close();
    connection.close();
  });
});

async function acquireIn(repository: DynamoRepository): Promise<void> {
  await repository.setSystemDefaults([RPM]);
  await new RateLimiter({ repository }).acquire(
    { entityId: "e", resource: "r", consume: { rpm: 1 } },
    async () => {},
  );
}
