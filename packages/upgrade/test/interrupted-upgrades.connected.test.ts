// Upgrades that are killed, that run at the same time, and that meet a process which still writes.
import { afterEach, beforeEach, expect, it } from "vitest";
import { checkTable, DynamoRepository } from "zae-limiter/dynamodb";
import { ManualClock } from "zae-limiter/testing";
import { upgradeTable, type UpgradeOptions } from "@zae-limiter/upgrade";
import type { AttributeMap } from "../../limiter/src/repository/dynamodb/transport/attribute-values.ts";
import type { DynamoTransport } from "../../limiter/src/repository/dynamodb/transport/transport.ts";
import { describeWithEngine } from "../../limiter/test/support/engine.ts";
import { listItems, loadPythonTable, pythonTable } from "./support/python-table.ts";
import { getEach, seedsFromEnvironment } from "../../limiter/test/support/seeded/seeds.ts";
import { openTransport } from "../../limiter/test/support/transports.ts";

const python = pythonTable("0.10.3");

describeWithEngine("an upgrade of a table", (engine) => {
  let transport: DynamoTransport;
  let stack: string;
  let clock: ManualClock;

  beforeEach(async () => {
    transport = await openTransport("SDK's", engine());
    stack = await loadPythonTable(transport, python);
    clock = new ManualClock(python.askedAtMs);
  });

  afterEach(() => transport.close());

  const upgrade = async (options: UpgradeOptions = {}): ReturnType<typeof upgradeTable> =>
    upgradeTable({ stack, transport, clock, ...options });

  /** The items after an undisturbed upgrade. */
  async function undisturbed(): Promise<ReadonlyMap<string, AttributeMap>> {
    const other = await loadPythonTable(transport, python);
    await upgrade({ stack: other });
    return timeless(await listItems(transport, other));
  }

  // From 3 to 17, where it still dies twice; the first seed gives 12.
  const steps = getEach(seedsFromEnvironment({ usual: 1 })).map((seed) => 3 + ((seed + 8) % 15));
  it.each(steps)("that dies at every write number %i ends as if it had not", async (step) => {
    let deaths = 0;
    for (let isDone = false; !isDone;) {
      const dying = dyingAfter(transport, step, { loses: deaths % 2 === 0 ? "request" : "reply" });
      isDone = await upgrade({ transport: dying }).then(
        () => true,
        () => false,
      );
      if (isDone) break;
      deaths += 1;
      // The table cannot be opened in between, unless only the last answer was lost.
      const { state } = await checkTable({ stack, transport });
      if (state === "compatible") break;
      expect(state).toBe("upgrade needed");
      await clock.advance(61_000);
    }
    expect(deaths).toBeGreaterThan(1);
    expect(timeless(await listItems(transport, stack))).toEqual(await undisturbed());
  });

  it("into another table that dies at any write is continued", async () => {
    const into = `${stack}-new`;
    const options = { stack: into, transport, clock, provisioning: "table" } as const;
    await (await DynamoRepository.open("default", options)).close();
    let deaths = 0;
    for (const writes of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const loses = writes % 2 === 0 ? "request" : "reply";
      const dying = dyingAfter(transport, writes, { loses });
      await upgrade({ into, transport: dying }).catch(() => (deaths += 1));
      await clock.advance(61_000);
    }
    expect(deaths).toBeGreaterThan(6);
    await upgrade({ into }).catch(() => undefined);
    expect(await checkTable({ stack: into, transport })).toMatchObject({ state: "compatible" });
    const copied = timeless(await listItems(transport, into));
    expect([...copied].filter(isData)).toEqual([...(await undisturbed())].filter(isData));
  });

  it("into another table that lost its lease unnoticed overwrites nothing newer", async () => {
    const into = `${stack}-new`;
    const options = { stack: into, transport, clock } as const;
    await (await DynamoRepository.open("default", { ...options, provisioning: "table" })).close();
    // The items after another run has finished, and a client has taken from a bucket.
    const untilTaken = async (): Promise<ReadonlyMap<string, AttributeMap>> => {
      await clock.advance(61_000);
      await upgrade({ into });
      const [, Item] = [...(await listItems(transport, into))].find(([key]) =>
        key.includes("BUCKET#key-2"),
      )!;
      const signal = AbortSignal.timeout(10_000);
      await transport.call("UpdateItem", take({ TableName: into, Item }), { signal });
      return listItems(transport, into);
    };
    let after: ReturnType<typeof untilTaken> | undefined;
    const sleeping: DynamoTransport = {
      call: async (operation, input, given) => {
        const isBucket = operation === "PutItem" && JSON.stringify(input).includes("BUCKET#");
        if (isBucket) await (after ??= untilTaken());
        return transport.call(operation, input, given);
      },
      close: () => {},
    };
    await expect(upgrade({ into, transport: sleeping })).rejects.toMatchObject({
      code: "ERR_LIMITER_UPGRADE_RUNNING",
    });
    expect((await after)?.size).toBeGreaterThan(20);
    expect(await listItems(transport, into)).toEqual(await after);
  });

  it("runs once at a time, and a second one does no harm", async () => {
    const outcomes = await Promise.allSettled([upgrade(), upgrade(), upgrade()]);
    const refused = outcomes.filter(({ status }) => status === "rejected");
    expect(refused.length).toBeLessThan(3);
    for (const outcome of refused)
      expect(outcome).toMatchObject({ reason: { code: "ERR_LIMITER_UPGRADE_RUNNING" } });
    expect(timeless(await listItems(transport, stack))).toEqual(await undisturbed());
  });

  it("that is aborted can be continued at once", async () => {
    const aborting = new AbortController();
    const attempt = upgrade({
      signal: aborting.signal,
      onProgress: ({ step }) => {
        if (step === "usage of days") aborting.abort();
      },
    });
    await expect(attempt).rejects.toThrow();
    expect(await checkTable({ stack, transport })).toMatchObject({ state: "upgrade needed" });
    await upgrade();
    expect(timeless(await listItems(transport, stack))).toEqual(await undisturbed());
  });

  it("loses nothing that a process takes while it runs", async () => {
    let taken = false;
    const meddling: DynamoTransport = {
      call: async (operation, input, options) => {
        if (operation === "PutItem" && !taken && JSON.stringify(input).includes("BUCKET#key-2")) {
          taken = true;
          await transport.call("UpdateItem", take(input), options);
        }
        return transport.call(operation, input, options);
      },
      close: () => {},
    };
    await upgrade({ transport: meddling });
    const [, bucket] = [...(await listItems(transport, stack))].find(([key]) =>
      key.includes("BUCKET#key-2"),
    )!;
    expect(bucket).toMatchObject({ b_rpm_tk: { N: "4000" }, b_rpm_tc: { N: "3000" } });
  });
});

/** The original's write that takes two requests from a bucket. */
function take(input: object): object {
  const { Item, TableName } = input as { Item: AttributeMap; TableName: string };
  return {
    TableName,
    Key: { PK: Item["PK"], SK: Item["SK"] },
    UpdateExpression: "ADD b_rpm_tk :less, b_rpm_tc :more",
    ExpressionAttributeValues: { ":less": { N: "-2000" }, ":more": { N: "2000" } },
  };
}

const WRITES = new Set([
  "PutItem",
  "UpdateItem",
  "DeleteItem",
  "TransactWriteItems",
  "BatchWriteItem",
]);

/** A process that dies at one of its writes: the write or its answer is lost, and all after it. */
function dyingAfter(
  inner: DynamoTransport,
  writes: number,
  { loses }: { readonly loses: "request" | "reply" },
): DynamoTransport {
  let left = writes;
  return {
    call: async (operation, input, options) => {
      if (left <= 0) throw dead();
      if (WRITES.has(operation)) left -= 1;
      if (left > 0) return inner.call(operation, input, options);
      if (loses === "reply") await inner.call(operation, input, options);
      throw dead();
    },
    close: () => {},
  };
}

function isData([key]: readonly [string, unknown]): boolean {
  return !/#(VERSION|UPGRADE)$/.test(key);
}

/** An error that is not retried. */
function dead(): Error {
  return Object.assign(new Error("the process is dead"), { name: "AccessDeniedException" });
}

/** Items without the attributes that depend on the time of the upgrade. */
function timeless(items: ReadonlyMap<string, AttributeMap>): ReadonlyMap<string, AttributeMap> {
  const upgraded = new Set(["sv", "sd", "cr", "updated_at"]);
  return new Map(
    [...items].map(([key, item]) => [
      key,
      Object.fromEntries(Object.entries(item).filter(([name]) => !upgraded.has(name))),
    ]),
  );
}
