// Upgrades of tables that are not as they should be.
import { afterEach, beforeEach, expect, it } from "vitest";
import { IncompatibleSchemaError, Limit, RateLimiter } from "zae-limiter";
import { checkTable, DynamoRepository, type DynamoOptions } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { upgradeTable } from "@zae-limiter/upgrade";
import { versionKey } from "../../limiter/src/repository/dynamodb/items/keys.ts";
import { marshalKey } from "../../limiter/src/repository/dynamodb/table/batch.ts";
import type { DynamoTransport } from "../../limiter/src/repository/dynamodb/transport/transport.ts";
import { describeWithEngine, freshTableName } from "../../limiter/test/support/engine.ts";
import { listItems, loadPythonTable, pythonTable } from "./support/python-table.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";

const python = pythonTable("0.10.3");

describeWithEngine("an upgrade", (engine) => {
  let transport: DynamoTransport;
  let clock: ManualClock;

  beforeEach(async () => {
    transport = await openTransport("SDK's", engine());
    clock = new ManualClock(python.askedAtMs);
  });

  afterEach(() => transport.close());

  async function open(stack: string, options: DynamoOptions = {}): Promise<DynamoRepository> {
    return DynamoRepository.open("default", {
      stack,
      transport,
      clock,
      provisioning: "table",
      ...options,
    });
  }

  async function loseVersion(TableName: string): Promise<void> {
    const signal = AbortSignal.timeout(10_000);
    await transport.call("DeleteItem", { TableName, Key: marshalKey(versionKey()) }, { signal });
  }

  it("finds items of the original also where the version record is gone", async () => {
    const [stack, other] = [
      await loadPythonTable(transport, python),
      await loadPythonTable(transport, python),
    ];
    await loseVersion(stack);
    for (const provisioning of ["never", "table", "stack"] as const) {
      const opening = DynamoRepository.open("tenant", { stack, transport, provisioning });
      await expect(opening).rejects.toThrow(IncompatibleSchemaError);
    }
    expect(await checkTable({ stack, transport })).toMatchObject({ state: "upgrade needed" });
    for (const each of [stack, other]) await upgradeTable({ stack: each, transport, clock });
    expect(await listItems(transport, stack)).toEqual(await listItems(transport, other));
  });

  it("changes nothing of ours where the version record is gone", async () => {
    const stack = freshTableName();
    const repository = await open(stack);
    await repository.setSystemDefaults([Limit.perDay("rpm", 10)], { onUnavailable: "allow" });
    await repository.setResourceDefaults("models/gpt:4", [Limit.perDay("rpm", 10)]);
    await repository.createEntity("org");
    await repository.createEntity("key:1@x", { parentId: "org", cascade: true });
    await repository.setLimits("org", [Limit.perDay("rpm", 10)], { resource: "r" });
    await repository.setLimits("org", [Limit.perDay("tpm", 5)], { resource: "s" });
    await repository.registerNamespace("other");
    await repository.namespace("other", { usageRetentionDays: 30 });
    const call = { entityId: "key:1@x", resource: "r", consume: { rpm: 1 } };
    await new RateLimiter({ repository }).acquire(call, () => {});
    await repository.splitBucket?.("org", "r", { shards: 4 });
    await repository.deleteNamespace("other");
    await repository.close();
    const before = new Map(await listItems(transport, stack));
    await loseVersion(stack);
    const { counts, left, dropped } = await upgradeTable({ stack, transport, clock });
    expect(Object.values(counts).filter(({ changed }) => changed > 0)).toEqual([]);
    expect([...left, ...dropped]).toEqual([]);
    const after = await listItems(transport, stack);
    const version = `${versionKey().PK} ${versionKey().SK}`;
    expect(after.get(version)).toMatchObject({ schema_version: { S: "1.0.0" } });
    expect(new Map([...after].filter(([key]) => key !== version))).toEqual(
      new Map([...before].filter(([key]) => key !== version)),
    );
  });

  it("copies into a table that was deployed with a retention", async () => {
    const [stack, into] = [await loadPythonTable(transport, python), freshTableName()];
    const repository = await open(into);
    await repository.namespace("default", { usageRetentionDays: 30, auditRetentionDays: 400 });
    const { namespaceId } = repository;
    await upgradeTable({ stack, into, transport, clock });
    await repository.close();
    expect([...(await listItems(transport, into)).keys()].join()).not.toContain(namespaceId);
  });

  it("copies into no table that has limits", async () => {
    const [stack, into] = [await loadPythonTable(transport, python), freshTableName()];
    const repository = await open(into);
    await repository.setSystemDefaults([Limit.perDay("rpm", 10)]);
    await repository.close();
    const before = await listItems(transport, into);
    await expect(upgradeTable({ stack, into, transport, clock })).rejects.toThrow("a new table");
    expect(await listItems(transport, into)).toEqual(before);
  });
});
