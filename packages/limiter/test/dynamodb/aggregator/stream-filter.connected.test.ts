import { expect, it } from "vitest";
import { Limit, RateLimiter } from "zae-limiter";
import {
  openAggregator,
  runAggregator,
  STREAM_FILTERS,
  type StreamRecord,
} from "zae-limiter/aggregator";
import { DynamoRepository } from "zae-limiter/dynamodb";
import { connect } from "../../support/connect.ts";
import { describeWithEngine, freshTableName, type Engine } from "../../support/engine.ts";
import { StreamReader } from "../../support/stream-reader.ts";

describeWithEngine("the filter of Lambda's event source mapping", (engine) => {
  it("passes what an aggregator needs of every namespace, and nothing else [W-26]", async () => {
    const stack = freshTableName();
    await useTable({ stack, ...engine() });
    const records = await listRecords(stack, engine());
    const passed = records.filter((record) => passes(record));
    const wanted = records.filter((record) => isWanted(record));
    expect(passed.map(keyText)).toEqual(wanted.map(keyText));

    const namespaces = (part: string): ReadonlySet<string> =>
      new Set(
        passed
          .map(keyText)
          .filter((key) => key.includes(part))
          .map((key) => key.split("/")[0]!),
      );
    expect(namespaces("/BUCKET#").size).toBe(2);
    expect(namespaces("/AUDIT#").size).toBe(2);
    expect(passed.map(keyText)).toContain("_/SYSTEM# #PULSE");
    // There was much else, and what the aggregator writes itself above all.
    const left = records.filter((record) => !passes(record)).map(keyText);
    const others = ["#AGGREGATOR", "#STREAM", "#USAGE#", "#META", "#CONFIG", "#AUDIT#"];
    for (const key of [...others, "#PROVISIONER", "#PROVISIONER#STATE"])
      expect(left.some((each) => each.includes(key))).toBe(true);
  });
});

/** Two tenants, each with calls, limits, usage, and audit events that are deleted in the end. */
async function useTable(place: { readonly stack: string } & Engine): Promise<void> {
  const { stack, endpointUrl } = place;
  const repository = await DynamoRepository.open("first", { stack, endpointUrl });
  try {
    await repository.registerNamespace("second");
    for (const name of ["first", "second"]) {
      const tenant = await repository.namespace(name);
      await tenant.setSystemDefaults([Limit.perMinute("rpm", 100)]);
      await tenant.createEntity("key-1");
      await tenant.setLimits("key-1", [Limit.perMinute("rpm", 50)]);
      const managedResources = Array.from({ length: 500 }, (_, index) => `resource-${index}`);
      const state = await tenant.getProvisionerState();
      await tenant.putProvisionerState({ ...state, managedResources });
      const limiter = new RateLimiter({ repository: tenant });
      await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } }, () => 1);
    }
    const aggregator = await openAggregator({ stack, endpointUrl });
    await aggregator.pulse();
    aggregator.close();
    await runAggregator({ stack, endpointUrl, once: true });
    for (const name of ["first", "second"]) {
      const { namespaceId } = (await repository.getNamespace(name))!;
      await repository.deleteNamespace(name);
      await repository.purgeNamespace(namespaceId);
    }
  } finally {
    await repository.close();
  }
}

async function listRecords(
  stack: string,
  { endpointUrl }: Engine,
): Promise<readonly StreamRecord[]> {
  const { connection } = await connect(endpointUrl, { tableName: stack });
  try {
    return await (await StreamReader.open(connection)).read();
  } finally {
    connection.close();
  }
}

/** What the aggregator looks at, by the keys of an ordinary table. */
function isWanted(record: StreamRecord): boolean {
  const key = keyText(record);
  return (
    key.includes("/BUCKET#") ||
    key === "_/SYSTEM# #PULSE" ||
    (record.kind === "remove" && key.includes("/AUDIT#"))
  );
}

function keyText({ before, after }: StreamRecord): string {
  const { PK, SK } = (after ?? before) as Record<"PK" | "SK", { readonly S: string }>;
  return `${PK.S} ${SK.S}`;
}

/** Lambda passes a record on when one of the patterns matches. */
function passes({ kind, before, after }: StreamRecord): boolean {
  const { PK, SK } = (after ?? before) as Record<string, object>;
  const event = {
    eventName: kind.toUpperCase(),
    dynamodb: {
      Keys: { PK, SK },
      ...(before !== undefined && { OldImage: before }),
      ...(after !== undefined && { NewImage: after }),
    },
  };
  return STREAM_FILTERS.some((pattern) => matches(JSON.parse(pattern), event));
}

/**
 * Lambda's filter rules, as documented, as far as ours use them: a field of a pattern matches the
 * field of that name; a list matches when one of its rules does; a text is equal, and `prefix` is a
 * beginning. A field that is missing matches none of these.
 */
function matches(pattern: unknown, value: unknown): boolean {
  if (value === undefined) return false;
  if (Array.isArray(pattern)) return pattern.some((rule) => holds(rule, value));
  return Object.entries(pattern as object).every(([name, inner]) =>
    matches(inner, (value as Record<string, unknown>)[name]),
  );
}

function holds(rule: unknown, value: unknown): boolean {
  if (typeof rule === "string") return value === rule;
  const { prefix, ...others } = rule as { readonly prefix: string };
  expect(others).toEqual({});
  return typeof value === "string" && value.startsWith(prefix);
}
