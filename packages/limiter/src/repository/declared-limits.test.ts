import { describe, expect, it } from "vitest";
import { ValidationError } from "../core/errors.ts";
import { Limit } from "../core/limit.ts";
import { checkDeclaredLimits } from "./declared-limits.ts";
import { parseState, formatState } from "./provisioner-state.ts";

const level = { limits: [Limit.perMinute("rpm", 10)], inherit: false };

describe("declared limits", () => {
  it.each([
    [{}, "applied.resources"],
    [{ resources: {}, entities: { "key-1": {} } }, "applied.entities.key-1.resources"],
    [{ resources: { r: { ...level, limits: [] } }, entities: {} }, "applied.resources.r.limits"],
    [{ resources: { r: { limits: level.limits } }, entities: {} }, "applied.resources.r.inherit"],
    [
      { resources: {}, entities: { e: { resources: { r: { ...level, limits: [] } } } } },
      "applied.entities.e.resources.r.limits",
    ],
    [{ resources: {}, entities: {}, system: { limits: [] } }, "applied.system.limits"],
    [
      { resources: {}, entities: {}, system: { usageRetentionDays: 0.5 } },
      "applied.system.usageRetentionDays",
    ],
    [
      { resources: {}, entities: { e: { parentId: "a#b", resources: {} } } },
      "applied.entities.e.parentId",
    ],
  ])("that are wrong are refused with the place: %j", (declared, field) => {
    expect(() => checkDeclaredLimits(declared, "applied")).toThrow(ValidationError);
    expect(() => checkDeclaredLimits(declared, "applied")).toThrow(
      expect.objectContaining({ field }),
    );
  });

  it("are copied, so that later changes by the caller have no effect", () => {
    const declared = { resources: { r: { ...level } }, entities: {} };
    const checked = checkDeclaredLimits(declared, "applied");
    declared.resources.r.inherit = true;
    expect(checked).toEqual({ resources: { r: level }, entities: {} });
  });
});

describe("the state of declared limits as text", () => {
  it("is read back, with and without optional parts", () => {
    const text =
      '{"managedSystem":true,"managedResources":["r"],"managedEntities":{"e":["r"]},"revision":3}';
    const state = {
      managedSystem: true,
      managedResources: ["r"],
      managedEntities: { e: ["r"] },
      revision: 3,
      lastApplied: undefined,
      appliedHash: undefined,
    };
    expect(parseState(text)).toStrictEqual(state);
    const applied = { ...state, lastApplied: new Date(5), appliedHash: "sha256:1" };
    expect(parseState(formatState(applied))).toStrictEqual(applied);
  });
});
