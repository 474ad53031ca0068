import { expect, it } from "vitest";
import { Limit } from "../limit.ts";
import { buildPolicy, resolvePolicy, toSource, type ConfigKey } from "./policy.ts";

it("names the source of each level", () => {
  const keys: readonly ConfigKey[] = [
    { level: "entity", entityId: "key-1", resource: "gpt-4" },
    { level: "entity", entityId: "key-1", resource: "_default_" },
    { level: "resource", resource: "gpt-4" },
    { level: "system" },
  ];
  expect(keys.map(toSource)).toEqual(["entity", "entity_default", "resource", "system"]);
});

it("picks the first level that has limits, without merging levels", () => {
  const [resource, system] = [
    buildPolicy([Limit.perMinute("rpm", 1)], "resource"),
    buildPolicy([Limit.perMinute("tpm", 1)], "system"),
  ];
  expect(resolvePolicy([undefined, undefined, resource, system])).toBe(resource);
  expect(resolvePolicy([undefined, undefined, undefined, system])).toBe(system);
  expect(resolvePolicy([undefined, undefined, undefined, undefined])).toBeUndefined();
});

it("keeps the order of limits in a policy", () => {
  const policy = buildPolicy([Limit.perMinute("rpm", 1), Limit.perMinute("tpm", 2)], "override");
  expect(policy.source).toBe("override");
  expect([...policy.names]).toEqual(["rpm", "tpm"]);
  expect(policy.bucketLimits.map(({ limit, hidden }) => [limit, hidden])).toEqual(
    policy.limits.map((limit) => [limit, false]),
  );
});
