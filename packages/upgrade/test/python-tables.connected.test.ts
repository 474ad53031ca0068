// Tables that releases of the Python zae-limiter wrote are upgraded, and then used.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IncompatibleSchemaError, Limit, RateLimiter } from "zae-limiter";
import { checkTable, DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { upgradeTable, type UpgradeOptions } from "@zae-limiter/upgrade";
import { openWith, RELEASES } from "../../../tools/python-tables/make.mjs";
import { heartbeatKey } from "../../limiter/src/repository/dynamodb/items/keys.ts";
import {
  marshalItem,
  type AttributeMap,
} from "../../limiter/src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../limiter/src/repository/dynamodb/transport/transport.ts";
import { describeWithEngine } from "../../limiter/test/support/engine.ts";
import { MeteredTransport } from "../../limiter/test/support/metered-transport.ts";
import { listItems, loadPythonTable, putItems, pythonTable } from "./support/python-table.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";

const SECOND_DAY = new Date("2026-02-02T00:00:00Z");

describeWithEngine("tables of the Python zae-limiter", (engine) => {
  describe.each(RELEASES)("of release %s", (release) => {
    const python = pythonTable(release);
    // Only the newer one has what this library has not.
    const force = release === "0.17.0";
    const clock = new ManualClock(python.askedAtMs);
    const opened: DynamoRepository[] = [];
    let transport: DynamoTransport;
    /** A table for each test, and one that was upgraded for all of them. */
    let stack: string;
    let upgradedStack: string;

    beforeAll(async () => {
      transport = await openTransport("SDK's", engine());
      upgradedStack = await loadPythonTable(transport, python);
      await upgrade({ stack: upgradedStack });
      // Usage is shown where an aggregator has counted.
      const heartbeat = { ...heartbeatKey(), counted_until_ms: python.askedAtMs };
      await putItems(transport, upgradedStack, [marshalItem(heartbeat)]);
    });

    afterAll(async () => {
      for (const repository of opened) await repository.close();
      transport.close();
    });

    const upgrade = async (options: UpgradeOptions = {}): ReturnType<typeof upgradeTable> =>
      upgradeTable({ stack, transport, clock, force, ...options });

    async function open(namespace = "tenant", table = upgradedStack): Promise<DynamoRepository> {
      const options = { stack: table, transport, clock, provisioning: "never" } as const;
      const repository = await DynamoRepository.open(namespace, options);
      opened.push(repository);
      return repository;
    }

    it("are refused until they are upgraded, and the refusal says how [W-68]", async () => {
      stack = await loadPythonTable(transport, python);
      await expect(open("tenant", stack)).rejects.toThrow(IncompatibleSchemaError);
      await expect(open("tenant", stack)).rejects.toThrow(/zae-limiter upgrade$/);
      expect(await checkTable({ stack, transport })).toMatchObject({ state: "upgrade needed" });
      await upgrade();
      await expect(open("tenant", stack)).resolves.toBeDefined();
      expect(await checkTable({ stack, transport })).toMatchObject({
        state: "compatible",
        schemaVersion: "1.0.0",
        lambdaVersion: undefined,
      });
    });

    it("are left alone by a dry run, which counts what an upgrade then does", async () => {
      stack = await loadPythonTable(transport, python);
      const before = await listItems(transport, stack);
      const plan = await upgrade({ dryRun: true });
      expect(await listItems(transport, stack)).toEqual(before);
      expect(plan.counts["buckets"]?.changed).toBeGreaterThan(4);
      expect({ ...(await upgrade()), dryRun: true }).toEqual(plan);
      expect((await upgrade()).migrations).toEqual([]);
    });

    it("have the balances that the release itself would give, debt included", async () => {
      const limiter = new RateLimiter({ repository: await open() });
      for (const [bucket, expected] of Object.entries(python.available)) {
        const [entityId, resource] = bucket.split(" ") as [string, string];
        const available = await limiter.available(entityId, resource);
        const floored = Object.entries(available).map(([name, tokens]) => [
          name,
          Math.floor(tokens),
        ]);
        expect({ bucket, ...Object.fromEntries(floored) }).toEqual({ bucket, ...expected });
      }
      expect(python.available["debtor gpt-4"]?.["tpm"]).toBeLessThan(-100_000);
    });

    it("have the usage of hours and days apart, which were one item [W-20]", async () => {
      const repository = await open();
      const usage = async (window: "hourly" | "daily"): Promise<readonly object[]> => {
        const query = { entityId: "key-1", window, start: SECOND_DAY };
        const { items } = await repository.getUsageSnapshots(query);
        return items.map(({ counters, windowStart }) =>
          Object.assign({ hour: windowStart.getUTCHours() }, counters),
        );
      };
      // Three calls of 1 and 1000 in the first hour, two of 4 and 2000 in the fourth.
      expect(await usage("hourly")).toEqual([
        { hour: 0, rpm: 3, tpm: 3000 },
        { hour: 3, rpm: 8, tpm: 4000 },
      ]);
      expect(await usage("daily")).toEqual([{ hour: 0, rpm: 11, tpm: 7000 }]);
      const byResource = await repository.getUsageSnapshots({ resource: "gpt-4", window: "daily" });
      expect(new Set(byResource.items.map(({ entityId }) => entityId))).toContain("hot");
    });

    it("have entities, limits, audit, namespaces and declared limits as before", async () => {
      const repository = await open();
      expect(await repository.getEntity("key-1")).toMatchObject({ parentId: "org", cascade: true });
      expect((await repository.getEntity("org"))?.metadata).toEqual({ tier: "gold", seats: "5" });
      expect((await repository.getChildren("org")).map(({ id }) => id)).toEqual(["key-1", "key-2"]);
      expect((await repository.listEntities()).items.map(({ id }) => id)).toEqual(
        "key-1 key-2 org".split(" "),
      );
      expect(await repository.getLevel({ entityId: "org", resource: "gpt-4" })).toMatchObject({
        limits: [Limit.perMinute("rpm", 500)],
        inherit: false,
      });
      expect(await repository.getSystemDefaults()).toMatchObject({ onUnavailable: "allow" });
      expect(await repository.listResourcesWithDefaults()).toEqual(
        expect.arrayContaining(["gpt-4", "team/claude-3"]),
      );
      expect(await repository.listResourcesWithEntityConfigs()).toEqual(["_default_", "gpt-4"]);
      expect((await repository.listEntitiesWithCustomLimits("gpt-4")).items).toEqual(["org"]);
      const { items: events } = await repository.getAuditEvents("org");
      expect(events.map(({ action }) => action)).toEqual(["limits_set", "entity_created"]);
      const declared = await repository.getProvisionerState();
      expect(declared).toMatchObject({ managedResources: ["gpt-4"], revision: 1 });
      expect((await repository.listNamespaces()).map(({ name }) => name)).toEqual(["tenant"]);
      const deleted = await repository.listOrphanNamespaces();
      expect(deleted.map(({ name }) => name)).toEqual(["deleted-tenant"]);
      await repository.recoverNamespace(deleted[0]!.namespaceId);
      expect(await (await open("deleted-tenant")).getEntity("left-behind")).toBeDefined();
    });

    it("can be used in full: acquire, settle, cascade", async () => {
      const limiter = new RateLimiter({ repository: await open() });
      const before = await limiter.available("org", "gpt-4");
      const call = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1, tpm: 100 } };
      await limiter.acquire(call, async (lease) => lease.adjust({ tpm: 50 }));
      expect(await limiter.available("org", "gpt-4")).toEqual({ rpm: before["rpm"]! - 1 });
      const debtor = { entityId: "debtor", resource: "gpt-4", consume: { tpm: 1 } };
      await expect(limiter.acquire(debtor, async () => {})).rejects.toThrow(/tpm/);
    });

    it("can be purged completely, and nothing is out of the reach of a purge [W-61]", async () => {
      stack = await loadPythonTable(transport, python);
      await upgrade();
      const options = { stack, transport, clock, provisioning: "table" } as const;
      const operator = await DynamoRepository.open("operator", options);
      opened.push(operator);
      await operator.deleteNamespace("tenant");
      const purged = (await operator.listOrphanNamespaces()).map(({ namespaceId }) => namespaceId);
      expect(purged).toHaveLength(2);
      for (const namespaceId of purged) await operator.purgeNamespace(namespaceId);
      const left = [...(await listItems(transport, stack)).keys()];
      expect(left.filter((key) => !key.startsWith(`${operator.namespaceId}/`))).toEqual([
        "_/SYSTEM# #NAMESPACE#operator",
        `_/SYSTEM# #NSID#${operator.namespaceId}`,
        "_/SYSTEM# #VERSION",
      ]);
    });

    it("are copied into a new table, and stay as they are", async () => {
      stack = await loadPythonTable(transport, python);
      const before = await listItems(transport, stack);
      const into = `${stack}-new`;
      const options = { stack: into, transport, clock, provisioning: "table" } as const;
      const fresh = await DynamoRepository.open("default", options);
      await fresh.close();
      await upgrade({ into });
      expect(await listItems(transport, stack)).toEqual(before);
      await upgrade();
      const [copied, inPlace] = [
        await listItems(transport, into),
        await listItems(transport, stack),
      ];
      expect([...copied].filter(isData)).toEqual([...inPlace].filter(isData));
      const limiter = new RateLimiter({ repository: await open("tenant", into) });
      expect(await limiter.available("key-2", "gpt-4")).toEqual({ rpm: 7 });
      await expect(upgrade({ into })).rejects.toThrow();
    });

    it("cost one more write unit for each acquire, unless they are copied", async () => {
      const meter = new MeteredTransport(transport, { measureCapacity: true });
      const options = {
        stack: upgradedStack,
        transport: meter,
        clock,
        provisioning: "never",
      } as const;
      const repository = await DynamoRepository.open("tenant", options);
      opened.push(repository);
      const limiter = new RateLimiter({ repository });
      const call = { entityId: "key-2", resource: "gpt-4", consume: { rpm: 1 } };
      await limiter.acquire(call, async () => {});
      meter.reset();
      await limiter.acquire(call, async () => {});
      const { requests, write } = meter.counts();
      expect({ requests, ...write }).toEqual({
        requests: 1,
        table: 1,
        indexes: { GSI2: 1 },
      });
    });

    // Starting it takes seconds, so only where tables are made anew as well.
    it.runIf(process.env["ZAEL_PYTHON_TABLES"])("are refused by that release", async () => {
      stack = await loadPythonTable(transport, python);
      const where = { endpointUrl: engine().endpointUrl, tableName: stack, namespace: "tenant" };
      expect(openWith(release, where)).toBe("opened");
      await upgrade();
      expect(openWith(release, where)).toBe("IncompatibleSchemaError");
    });
  });

  it("with what this library does not have are upgraded only when forced", async () => {
    const transport = await openTransport("SDK's", engine());
    const stack = await loadPythonTable(transport, pythonTable("0.17.0"));
    const before = await listItems(transport, stack);
    await expect(upgradeTable({ stack, transport })).rejects.toThrow(/--force/);
    expect(await listItems(transport, stack)).toEqual(before);
    const { dropped } = await upgradeTable({ stack, transport, dryRun: true });
    expect(dropped.filter((text) => !text.includes("buckets"))).toEqual([
      "limit monthly of resource special: a quota that is reset on schedule",
      "limit rpm of resource special: a schedule, without which the limit would hold at all times",
      "limit session of resource special: a quota for a duration",
      "limit watched of resource special: a soft limit, which is counted and not enforced",
      "resource closed: disabled",
    ]);
    await upgradeTable({ stack, transport, force: true });
    const special = [...(await listItems(transport, stack))].find(([key]) =>
      key.endsWith("RESOURCE#special #CONFIG"),
    )![1];
    expect(special["l_monthly_cp"]).toBeUndefined();
    expect((special["python"] as { M: AttributeMap }).M["l_monthly_rsched"]).toEqual({
      S: "1m0h0D1",
    });
    transport.close();
  });
});

function isData([key]: readonly [string, unknown]): boolean {
  return !/#(VERSION|UPGRADE)$/.test(key);
}
