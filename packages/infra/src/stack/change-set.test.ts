import { describe, expect, it } from "vitest";
import { toChange, destructive } from "./change-set.ts";
import { isOurs, stackTags } from "../options/tags.ts";

describe("a change", () => {
  it.each([
    [{ Action: "Add" }, "add"],
    [{ Action: "Import" }, "import"],
    [{ Action: "Remove" }, "remove"],
    [{ Action: "Modify", Replacement: "False" }, "modify"],
    [{ Action: "Modify", Replacement: "True" }, "replace"],
    [{ Action: "Modify", Replacement: "Conditional" }, "replace-if"],
    [{ Action: "Dynamic" }, "replace-if"],
  ] as const)("%o is called %s", (change, action) => {
    expect(toChange({ ...change, LogicalResourceId: "Table" })).toMatchObject({
      action,
      logicalId: "Table",
    });
  });

  it("names each of its causes once", () => {
    const Target = { Attribute: "Properties", Name: "Timeout" } as const;
    const { because } = toChange({
      Action: "Modify",
      Scope: ["Properties", "Tags"],
      Details: [{ Target }, { Target, CausingEntity: "LambdaTimeout" }],
    });
    expect(because).toEqual(["Timeout", "Tags"]);
  });

  it("destroys if it removes or replaces, or may replace", () => {
    const actions = ["add", "import", "modify", "replace", "replace-if", "remove"] as const;
    const { logicalId, resourceType, physicalId, because } = toChange({});
    const other = { logicalId, resourceType, physicalId, because };
    const changes = actions.map((action) => Object.assign({ action }, other));
    expect(destructive(changes).map(({ action }) => action)).toEqual([
      "replace",
      "replace-if",
      "remove",
    ]);
  });
});

describe("tags", () => {
  it("say whose a stack is", () => {
    expect(isOurs({ ManagedBy: "zae-limiter" })).toBe(true);
    expect(isOurs({ ManagedBy: "zae-limiter", "zae-limiter:type": "limiter" })).toBe(true);
    expect(isOurs({ ManagedBy: "zae-limiter", "zae-limiter:type": "loadtest" })).toBe(false);
    expect(isOurs({ "zae-limiter:name": "limits" })).toBe(false);
  });

  it("of the user are kept until others are given, and never replace ours", () => {
    const current = { team: "search", "aws:x": "1", "zae-limiter:version": "0.0.1" };
    const kept = stackTags("limits", { user: undefined, current, hasCode: false });
    expect(kept).toMatchObject({ team: "search", ManagedBy: "zae-limiter" });
    expect(kept).not.toHaveProperty("aws:x");
    expect(kept).not.toHaveProperty("zae-limiter:lambda-version");
    const user = { owner: "me", ManagedBy: "me" };
    const given = stackTags("limits", { user, current, hasCode: true });
    expect(given).toMatchObject({ owner: "me", ManagedBy: "zae-limiter" });
    expect(given).not.toHaveProperty("team");
  });
});
