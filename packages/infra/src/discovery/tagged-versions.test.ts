import { expect, it } from "vitest";
import { readTaggedVersions } from "./tagged-versions.ts";

const OURS = { ManagedBy: "zae-limiter", "zae-limiter:type": "limiter" };

function listVersions(tags: Readonly<Record<string, string>>, StackName = "my-stack"): unknown {
  const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  return readTaggedVersions({ StackName, Tags } as never);
}

it("reads the versions that deploy, or the original, wrote", () => {
  expect(
    listVersions({
      ...OURS,
      "zae-limiter:version": "1.2.3",
      "zae-limiter:lambda-version": "1.2.2",
      "zae-limiter:schema-version": "1.0.0",
    }),
  ).toEqual({ version: "1.2.3", lambdaVersion: "1.2.2", schemaVersion: "1.0.0" });
  expect(listVersions({ ManagedBy: "zae-limiter" })).toEqual({});
});

it("does not take a stack of others for ours", () => {
  expect(listVersions({})).toBeUndefined();
  expect(listVersions({ ManagedBy: "terraform", "zae-limiter:type": "limiter" })).toBeUndefined();
  expect(listVersions({ ...OURS, "zae-limiter:type": "load-test" })).toBeUndefined();
});

it("knows early stacks of the original by their names, which have no tags", () => {
  expect(listVersions({}, "ZAEL-limits")).toEqual({});
  expect(listVersions({ ManagedBy: "terraform" }, "ZAEL-limits")).toBeUndefined();
});
