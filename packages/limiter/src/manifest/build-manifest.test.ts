import { expect, it } from "vitest";
import { Limit } from "zae-limiter";
import { buildManifest, readManifest } from "zae-limiter/manifest";

const level = (...texts: readonly string[]) => ({
  limits: texts.map((text) => Limit.parse(text)),
  inherit: false,
});

it("writes a declaration in the format of a manifest", () => {
  const manifest = buildManifest("team-a", {
    system: {
      limits: [Limit.parse("rpm:100/min:150"), Limit.perMinute("tpm", 10_000)],
      onUnavailable: "allow",
      auditRetentionDays: 30,
      usageRetentionDays: 60,
    },
    resources: { "gpt-4": { ...level("tpm:50000/5min"), inherit: true } },
    entities: {
      "key-1": {
        parentId: "acme",
        cascade: true,
        resources: { "gpt-4": level("tpm:20000/hour:5"), _default_: level("rpm:7/sec") },
      },
      acme: { name: "Acme Inc", metadata: { plan: "gold", city: "Bonn" }, resources: {} },
    },
  });
  expect(JSON.stringify(manifest, null, 1)).toBe(
    JSON.stringify(
      {
        namespace: "team-a",
        system: {
          on_unavailable: "allow",
          audit_retention_days: 30,
          usage_retention_days: 60,
          inherit: true,
          limits: { rpm: "100/min:150", tpm: "10000/min" },
        },
        resources: { "gpt-4": { inherit: true, limits: { tpm: "50000/5min" } } },
        entities: {
          acme: { name: "Acme Inc", metadata: { city: "Bonn", plan: "gold" } },
          "key-1": {
            parent: "acme",
            cascade: true,
            resources: {
              _default_: { inherit: false, limits: { rpm: "7/sec" } },
              "gpt-4": { inherit: false, limits: { tpm: "20000/hour:5" } },
            },
          },
        },
      },
      null,
      1,
    ),
  );
});

it("omits empty sections", () => {
  expect(buildManifest("team-a", { system: {}, resources: {}, entities: {} })).toEqual({
    namespace: "team-a",
  });
});

it("writes metadata with any keys", () => {
  const metadata = JSON.parse('{"__proto__": "a", "constructor": "b", "1": "c"}') as Record<
    string,
    string
  >;
  const declared = { resources: {}, entities: { acme: { metadata, resources: {} } } };
  const text = JSON.stringify(buildManifest("team-a", declared));
  const content: unknown = JSON.parse(text);
  expect(text).toContain('{"1":"c","__proto__":"a","constructor":"b"}');
  const read = readManifest([{ file: "a", content, findPosition: () => undefined }]);
  expect(read.declared).toEqual(declared);
});
