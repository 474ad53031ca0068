import { describe, expect, it } from "vitest";
import type { ItemKey } from "../../limiter/src/repository/dynamodb/table/batch.ts";
import { getKey } from "../../limiter/src/repository/dynamodb/table/batch.ts";
import {
  marshalItem,
  getNumber,
  getString,
  type AttributeMap,
} from "../../limiter/src/repository/dynamodb/transport/attribute-values.ts";
import { isChange, type Change } from "../src/change.ts";
import { pythonMigration } from "../src/python-migration.ts";

const NOW_MS = Date.UTC(2026, 0, 4, 12);

function toText({ PK, SK }: ItemKey): string {
  return `${PK} ${SK}`;
}

/** What the second pass makes of an item of a table. */
async function computeChange(
  item: AttributeMap,
  others: readonly AttributeMap[] = [],
): Promise<Change | undefined> {
  const table = new Map([item, ...others].map((each) => [toText(getKey(each)), each]));
  return pythonMigration.passes[1]!.computeChange(item, {
    read: async (keys) => keys.map((key) => table.get(toText(key))),
    nowMs: NOW_MS,
    countedWindows: ["hourly", "daily"],
    maxItems: 90,
  });
}

const byId = (status: string, more = {}): AttributeMap =>
  marshalItem({
    PK: "_/SYSTEM#",
    SK: "#NSID#id-1",
    namespace_id: "id-1",
    namespace_name: "tenant",
    status,
    ...more,
  });

const byName = (namespaceId: string): AttributeMap =>
  marshalItem({ PK: "_/SYSTEM#", SK: "#NAMESPACE#tenant", namespace_id: namespaceId });

function shard(number: number, more = {}): AttributeMap {
  const limit = { b_rpm_tk: 1000, b_rpm_cp: 9000, b_rpm_ra: 9000, b_rpm_rp: 60_000, rf: NOW_MS };
  const key = { PK: `ns/BUCKET#e#r#${number}`, SK: "#STATE" };
  return marshalItem({ ...key, ...limit, shard_count: 2, ...more });
}

describe("the migration of tables of the Python zae-limiter", () => {
  it.each([
    ["active", [byName("id-1")], "active", false],
    ["active", [], "deleted", true],
    ["active", [byName("id-2")], "deleted", true],
    ["deleted", [], "deleted", false],
    ["deleted", [byName("id-1")], "active", true],
    ["purging", [], "purging", false],
  ] as const)(
    "a namespace that is %s, with %j, is %s afterwards, so that it can be used or purged [W-61]",
    async (status, names, expected, changes) => {
      const change = (await computeChange(byId(status), names))!;
      expect(getString(change.result[0]!["status"])).toBe(expected);
      expect(isChange(change)).toBe(changes);
      if (changes)
        expect(change.result[0]!["deleted_at"] !== undefined).toBe(expected === "deleted");
    },
  );

  it("a shard is part of its bucket, or goes if there is none", async () => {
    expect(await computeChange(shard(1), [shard(0)])).toBeUndefined();
    expect((await computeChange(shard(0), [shard(1)]))!.seen).toHaveLength(2);
    expect((await computeChange(shard(1)))!.result).toEqual([]);
    // A bucket that was upgraded and split again is ours.
    expect(isChange((await computeChange(shard(1, { sv: 1 })))!)).toBe(false);
  });

  it("a bucket with more shards than a transaction holds takes several steps", async () => {
    const count = { shard_count: 200 };
    const others = Array.from({ length: 199 }, (_, index) => shard(index + 1, count));
    const change = (await computeChange(shard(0, count), others))!;
    expect(change.kind).toBe("shards");
    expect(change.seen).toHaveLength(90);
    expect(getNumber(change.result[0]!["shard_count"])).toBe(200);
  });

  it.each([
    ["ns/SYSTEM#", "#RESOURCES", "registries", 0],
    ["ns/SYSTEM#", "#ENTITY_CONFIG_RESOURCES", "registries", 0],
    ["ns/SYSTEM#", "#PROVISIONER", "records of declared limits", 1],
    ["ns/SYSTEM#", "#PROVISIONER#STATE", "records of declared limits", 1],
    ["ns/BUCKET#e#r#0", "#OP#1", "records of operations", 1],
    ["ns/AUDIT#e", "#AUDIT#1", "audit events", 1],
    ["ns/ENTITY#e", "#META", "entities", 1],
  ])("%s %s counts as %s", async (PK, SK, kind, kept) => {
    const change = await computeChange(marshalItem({ PK, SK }));
    expect(change).toMatchObject({ kind });
    expect(change!.result).toHaveLength(kept);
  });

  it("a state of declared limits in the format of today is not touched", async () => {
    const index = { GSI4PK: "ns", GSI4SK: "ns/SYSTEM#" };
    const head = { PK: "ns/SYSTEM#", SK: "#PROVISIONER", ...index, revision: 3 };
    const part = { ...index, PK: "ns/SYSTEM#", SK: "#PROVISIONER#STATE", state: "" };
    for (const item of [head, part])
      expect(isChange((await computeChange(marshalItem(item)))!)).toBe(false);
  });

  it("unknown items are left and named; older ones block the upgrade", async () => {
    const unknown = await computeChange(marshalItem({ PK: "ns/ENTITY#e", SK: "#SOMETHING" }));
    expect(unknown).toMatchObject({ left: [expect.stringContaining("#SOMETHING")] });
    const older = await computeChange(marshalItem({ PK: "ns/ENTITY#e", SK: "#BUCKET#gpt-4" }));
    expect(older).toMatchObject({ dropped: [expect.stringContaining("before 0.9.0")] });
    expect(await computeChange(marshalItem({ PK: "_/SYSTEM#", SK: "#VERSION" }))).toBeUndefined();
  });

  it("limits that were upgraded, or that nothing was left of, are not touched again", async () => {
    const config = { PK: "ns/RESOURCE#r", SK: "#CONFIG", resource: "r" };
    const quota = { l_day_cp: 5, l_day_ra: 0, l_day_rp: 1, l_day_rsched: "1m0h0" };
    const first = (await computeChange(marshalItem({ ...config, ...quota, config_version: 1 })))!;
    expect(first.dropped).toHaveLength(1);
    const [after] = first.result;
    expect(after!["l_day_cp"]).toBeUndefined();
    expect(isChange((await computeChange(after!))!)).toBe(false);
  });
});
