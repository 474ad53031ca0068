import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as parsers from "./key-parsers.ts";
import * as keys from "./keys.ts";

const namespaceId = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{10}$/);
const entityId = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9_.\-:@]{0,20}$/);
const resource = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.\-/:]{0,20}$/);
const window = fc.constantFrom("hourly" as const, "daily" as const, "monthly" as const);
const startMs = fc.integer({ min: 0, max: 4_000_000 }).map((hours) => hours * 3_600_000);

const sortKey = (start: number, entity: string): string =>
  keys.usageIndexKeys("n", { entityId: entity, resource: "r", window: "hourly", startMs: start })
    .GSI2SK;

describe("keys", () => {
  it("follow the wire format", () => {
    expect(keys.entityKey("ns1", "user")).toEqual({ PK: "ns1/ENTITY#user", SK: "#META" });
    expect(keys.bucketKey("ns1", { entityId: "user", resource: "gpt-4/x", shard: 3 })).toEqual({
      PK: "ns1/BUCKET#user#gpt-4/x#3",
      SK: "#STATE",
    });
    expect(keys.configKey("ns1", { level: "system" })).toEqual({
      PK: "ns1/SYSTEM#",
      SK: "#CONFIG",
    });
    expect(keys.configKey("ns1", { level: "resource", resource: "r" })).toEqual({
      PK: "ns1/RESOURCE#r",
      SK: "#CONFIG",
    });
    expect(
      keys.configKey("ns1", { level: "entity", entityId: "e", resource: "_default_" }),
    ).toEqual({
      PK: "ns1/ENTITY#e",
      SK: "#CONFIG#_default_",
    });
    expect(keys.auditKey("ns1", "$RESOURCE:r", "01H")).toEqual({
      PK: "ns1/AUDIT#$RESOURCE:r",
      SK: "#AUDIT#01H",
    });
    expect(keys.provisionerKey("ns1")).toEqual({ PK: "ns1/SYSTEM#", SK: "#PROVISIONER" });
    expect(keys.provisionerStateKey("ns1").SK).toBe("#PROVISIONER#STATE");
    expect(keys.namespaceNameKey("prod")).toEqual({ PK: "_/SYSTEM#", SK: "#NAMESPACE#prod" });
    expect(keys.namespaceIdKey("abc")).toEqual({ PK: "_/SYSTEM#", SK: "#NSID#abc" });
    expect(keys.versionKey()).toEqual({ PK: "_/SYSTEM#", SK: "#VERSION" });
    expect(keys.childKeys("ns1", "parent", "child")).toEqual({
      GSI1PK: "ns1/PARENT#parent",
      GSI1SK: "CHILD#child",
    });
    expect(keys.bucketIndexKeys("ns1", { entityId: "e", resource: "r", shard: 0 })).toEqual({
      GSI2PK: "ns1/RESOURCE#r",
      GSI2SK: "BUCKET#e#0",
      GSI3PK: "ns1/ENTITY#e",
      GSI3SK: "BUCKET#r#0",
      GSI4PK: "ns1",
      GSI4SK: "BUCKET#e#r#0",
    });
    expect(keys.entityConfigIndexKeys("ns1", "e", "r")).toEqual({
      GSI3PK: "ns1/ENTITY_CONFIG#r",
      GSI3SK: "e",
      GSI4PK: "ns1",
      GSI4SK: "CONFIG#r#e",
    });
  });

  it("carry the window type of usage, so that windows that begin together do not collide", () => {
    const name = { entityId: "e", resource: "r", startMs: Date.UTC(2026, 2, 1) };
    expect(keys.usageKey("ns1", { ...name, window: "hourly" }).SK).toBe(
      "#USAGE#hourly#2026-03-01T00:00:00Z#r",
    );
    expect(keys.usageKey("ns1", { ...name, window: "monthly" }).SK).toBe(
      "#USAGE#monthly#2026-03-01T00:00:00Z#r",
    );
    expect(keys.usageIndexKeys("ns1", { ...name, window: "daily" }).GSI2SK).toBe(
      "USAGE#daily#2026-03-01T00:00:00Z#e",
    );
  });

  it("can be parsed", () => {
    fc.assert(
      fc.property(
        fc.record({ namespaceId, entityId, resource, shard: fc.nat(1000), window, startMs }),
        ({ namespaceId: id, window: length, ...name }) => {
          const { entityId: entity, shard, resource: of } = name;
          expect(parsers.parseBucketPartition(keys.bucketKey(id, name).PK)).toEqual({
            namespaceId: id,
            entityId: entity,
            resource: of,
            shard,
          });
          expect(parsers.parseEntityPartition(keys.entityKey(id, entity).PK)).toEqual({
            namespaceId: id,
            entityId: entity,
          });
          expect(parsers.parseAuditPartition(keys.auditKey(id, entity, "E").PK)).toEqual({
            namespaceId: id,
            entityId: entity,
          });
          for (const key of [
            { level: "system" } as const,
            { level: "resource", resource: of } as const,
            { level: "entity", entityId: entity, resource: of } as const,
          ])
            expect(parsers.parseConfigKey(keys.configKey(id, key))).toEqual({
              namespaceId: id,
              ...key,
            });
          const usage = { entityId: entity, resource: of, window: length, startMs: name.startMs };
          expect(parsers.parseUsageKey(keys.usageKey(id, usage))).toEqual({
            namespaceId: id,
            ...usage,
          });
          expect(parsers.parseNamespaceId(keys.namespaceIdKey(id).SK)).toBe(id);
          expect(parsers.parseEventId(keys.auditKey(id, entity, "01H").SK)).toBe("01H");
          expect(
            parsers.parseEntityConfigIndex(keys.entityConfigIndexKeys(id, entity, of).GSI4SK),
          ).toEqual({ entityId: entity, resource: of });
        },
      ),
    );
  });

  it("are not mistaken for keys of another kind", () => {
    expect(parsers.parseBucketPartition("ns1/ENTITY#e")).toBeUndefined();
    expect(parsers.parseBucketPartition("BUCKET#e#r#0")).toBeUndefined();
    expect(parsers.parseBucketPartition("ns1/BUCKET#e#r#zero")).toBeUndefined();
    expect(parsers.parseConfigKey({ PK: "ns1/ENTITY#e", SK: "#META" })).toBeUndefined();
    expect(parsers.parseConfigKey({ PK: "ns1/SYSTEM#", SK: "#PROVISIONER" })).toBeUndefined();
    expect(parsers.parseConfigKey(keys.provisionerStateKey("ns1"))).toBeUndefined();
    expect(
      parsers.parseUsageKey({ PK: "ns1/ENTITY#e", SK: "#USAGE#yearly#2026-01-01T00:00:00Z#r" }),
    ).toBeUndefined();
    expect(parsers.parseNamespaceId("#NAMESPACE#x")).toBeUndefined();
    expect(parsers.isEntityKey({ PK: "ns1/ENTITY#e", SK: "#CONFIG#r" })).toBe(false);
    expect(parsers.isEntityKey({ PK: "ns1/ENTITY#e", SK: "#META" })).toBe(true);
  });

  it("keep the usage of a resource in order of time, then entity", () => {
    expect(sortKey(0, "z") < sortKey(3_600_000, "a")).toBe(true);
    expect(sortKey(0, "a") < sortKey(0, "b")).toBe(true);
  });
});
