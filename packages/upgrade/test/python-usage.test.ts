import { describe, expect, it } from "vitest";
import type { UsageWindow } from "../../limiter/src/core/usage.ts";
import {
  marshalItem,
  getNumber,
  getString,
  type AttributeMap,
} from "../../limiter/src/repository/dynamodb/transport/attribute-values.ts";
import { parsePythonUsage, snapshotChange, type SnapshotContext } from "../src/python-usage.ts";

const MIDNIGHT = Date.UTC(2026, 1, 2);
const SNAPSHOT = { namespaceId: "ns", entityId: "key-1", resource: "gpt-4", startMs: MIDNIGHT };

function item(tpm: number, window = "hourly", more = {}): AttributeMap {
  return marshalItem({
    PK: "ns/ENTITY#key-1",
    SK: "#USAGE#gpt-4#2026-02-02T00:00:00Z",
    window,
    tpm,
    total_events: 12,
    wcu: 3,
    "tpm#od": 1,
    ttl: 1_800_000_000,
    ...more,
  });
}

/** What a snapshot becomes: millitokens by window; undefined when it is left. */
function split(
  snapshotItem: AttributeMap,
  context: Partial<SnapshotContext> = {},
  startMs = MIDNIGHT,
): Readonly<Record<string, number | undefined>> | undefined {
  const { result, left } = snapshotChange({ ...SNAPSHOT, startMs }, snapshotItem, {
    hours: [],
    begun: new Map(),
    counted: ["hourly", "daily"],
    ...context,
  });
  if (left !== undefined) {
    expect(result).toEqual([snapshotItem]);
    return undefined;
  }
  return Object.fromEntries(
    result.map((each) => [getString(each["window"]), getNumber(each["u_tpm"])]),
  );
}

describe("a usage snapshot of the Python zae-limiter [W-20]", () => {
  it("of an hour that is not the first of its day is that hour", () => {
    expect(split(item(5), {}, MIDNIGHT + 3_600_000)).toEqual({ hourly: 5000 });
  });

  it.each<[number, number[], Readonly<Record<string, number>>]>([
    [14, [8], { hourly: 3000, daily: 11_000 }],
    [2, [], { hourly: 1000, daily: 1000 }],
    [30, [10, 4, 6], { hourly: 5000, daily: 25_000 }],
    [8, [8], { daily: 8000 }],
  ])("at midnight with %i, and %j in other hours, is an hour and a day", (mixed, hours, parts) => {
    expect(split(item(mixed), { hours: hours.map((tokens) => item(tokens)) })).toEqual(parts);
  });

  it.each<[string, AttributeMap, Partial<SnapshotContext>]>([
    ["is odd", item(15), { hours: [item(8)] }],
    ["is less than the other hours", item(7), { hours: [item(8)] }],
    ["may hold a month", item(14), { hours: [item(8)], counted: ["hourly", "daily", "monthly"] }],
    ["is called a month", item(14, "monthly"), { hours: [item(8)] }],
  ])("is left as it is when it %s", (_, mixed, context) => {
    expect(split(mixed, context)).toBeUndefined();
  });

  it.each<[string, readonly UsageWindow[], Readonly<Record<string, number>>]>([
    ["daily", ["daily"], { daily: 9000 }],
    ["daily", ["hourly", "daily"], { daily: 9000 }],
    ["hourly", ["hourly"], { hourly: 9000 }],
    ["monthly", ["hourly", "daily", "monthly"], { monthly: 9000 }],
  ])("called %s where %j were counted, without other hours, is %j", (window, counted, parts) => {
    expect(split(item(9, window), { counted })).toEqual(parts);
  });

  it("is added to what an aggregator has begun for the same window", () => {
    const begun = marshalItem({ PK: "p", SK: "s", window: "hourly", u_tpm: 500, requests: 2 });
    const change = snapshotChange({ ...SNAPSHOT, startMs: MIDNIGHT + 3_600_000 }, item(5), {
      hours: [],
      begun: new Map([["hourly", begun]]),
      counted: ["hourly", "daily"],
    });
    expect(change.seen).toContain(begun);
    expect(change.result[0]).toMatchObject({ u_tpm: { N: "5500" }, requests: { N: "2" } });
  });

  it("has counters of limits only, and keys of ours", () => {
    const { result } = snapshotChange({ ...SNAPSHOT, startMs: MIDNIGHT + 3_600_000 }, item(5), {
      hours: [],
      begun: new Map(),
      counted: ["hourly", "daily"],
    });
    const counters = Object.keys(result[0]!).filter((name) => /^[uc]_/.test(name));
    expect(counters).toEqual(["u_tpm"]);
    expect(getString(result[0]!["SK"])).toBe("#USAGE#hourly#2026-02-02T01:00:00Z#gpt-4");
    expect(parsePythonUsage(getString(result[0]!["SK"])!)).toBeUndefined();
  });
});
