import { expect, it } from "vitest";
import { Limit } from "./limit.ts";
import { configKeys, policyOf, sourceOf, strongest } from "./policy.ts";

it("asks four levels, strongest first, and each names its source", () => {
  const keys = configKeys("key-1", "gpt-4");
  expect(keys).toEqual([
    { level: "entity", entityId: "key-1", resource: "gpt-4" },
    { level: "entity", entityId: "key-1", resource: "_default_" },
    { level: "resource", resource: "gpt-4" },
    { level: "system" },
  ]);
  expect(keys.map(sourceOf)).toEqual(["entity", "entity_default", "resource", "system"]);
});

it("lets the first level that has limits win whole", () => {
  const [resource, system] = [
    policyOf([Limit.perMinute("rpm", 1)], "resource"),
    policyOf([Limit.perMinute("tpm", 1)], "system"),
  ];
  expect(strongest([undefined, undefined, resource, system])).toBe(resource);
  expect(strongest([undefined, undefined, undefined, system])).toBe(system);
  expect(strongest([undefined, undefined, undefined, undefined])).toBeUndefined();
});

it("prepares the limits of a policy in their order", () => {
  const policy = policyOf([Limit.perMinute("rpm", 1), Limit.perMinute("tpm", 2)], "override");
  expect(policy.source).toBe("override");
  expect([...policy.names]).toEqual(["rpm", "tpm"]);
  expect(policy.bucketLimits.map(({ limit, hidden }) => [limit, hidden])).toEqual(
    policy.limits.map((limit) => [limit, false]),
  );
});
