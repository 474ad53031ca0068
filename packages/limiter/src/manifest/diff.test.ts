import { describe, expect, it } from "vitest";
import { Limit, type DeclaredEntity, type DeclaredLevel } from "zae-limiter";
import type { PlanEntry } from "zae-limiter/manifest";
import { computeDiff as plan, record, whole } from "../../test/support/manifests.ts";

const rpm = (rate: number): Limit => Limit.perMinute("rpm", rate);
const TPM = Limit.perMinute("tpm", 1000, { burst: 1500 });
const level = (...limits: readonly Limit[]): DeclaredLevel => ({ limits, inherit: true });

describe("levels of resources and entities", () => {
  it("creates what is declared and not stored, with every value", () => {
    expect(
      plan({
        declared: {
          resources: { "gpt-4": { limits: [rpm(5), TPM], inherit: false } },
          entities: { "key-1": { resources: { _default_: level(rpm(7)) } } },
        },
      }),
    ).toEqual([
      entry("create", { level: "resource", resource: "gpt-4" }, [
        ["limits.rpm", undefined, "5/min"],
        ["limits.tpm", undefined, "1000/min:1500"],
        ["inherit", undefined, "false"],
      ]),
      entry("create", { level: "entity", entityId: "key-1", resource: "_default_" }, [
        ["limits.rpm", undefined, "7/min"],
      ]),
    ]);
  });

  it("updates value by value: changed, new and removed ones", () => {
    expect(
      plan({
        declared: { resources: { "gpt-4": { limits: [rpm(6), TPM], inherit: false } } },
        stored: {
          resources: { "gpt-4": { limits: [rpm(5), Limit.perDay("tpd", 9)], inherit: true } },
        },
      }),
    ).toEqual([
      entry("update", { level: "resource", resource: "gpt-4" }, [
        ["limits.rpm", "5/min", "6/min"],
        ["limits.tpm", undefined, "1000/min:1500"],
        ["inherit", "true", "false"],
        ["limits.tpd", "9/day", undefined],
      ]),
    ]);
  });

  it("the same limits in another order are unchanged", () => {
    const [only, ...others] = plan({
      declared: { resources: { "gpt-4": level(rpm(5), TPM) } },
      stored: { resources: { "gpt-4": level(TPM, rpm(5)) } },
    });
    expect(only).toEqual(entry("unchanged", { level: "resource", resource: "gpt-4" }, []));
    expect(others).toEqual([]);
  });

  it("a limit may be called like a setting of its level", () => {
    expect(
      plan({
        declared: { resources: { a: { limits: [Limit.perMinute("inherit", 2)], inherit: true } } },
        stored: { resources: { a: { limits: [Limit.perMinute("inherit", 1)], inherit: true } } },
      })[0]?.values.map(({ name, before, after }) => [name, before, after]),
    ).toEqual([["limits.inherit", "1/min", "2/min"]]);
  });

  it("deletes what is managed, stored and no longer declared, after everything else", () => {
    const entries = plan({
      declared: { entities: { "key-2": { resources: { b: level(rpm(1)) } } } },
      stored: {
        resources: { a: level(rpm(5)) },
        entities: { "key-1": { record: undefined, resources: { b: level(rpm(6)) } } },
      },
      state: { managedResources: ["a", "gone"], managedEntities: { "key-1": ["b", "gone"] } },
    });
    expect(entries).toEqual([
      entry("create", { level: "entity", entityId: "key-2", resource: "b" }, [
        ["limits.rpm", undefined, "1/min"],
      ]),
      entry("delete", { level: "resource", resource: "a", managed: true }, [
        ["limits.rpm", "5/min", undefined],
      ]),
      entry("delete", { level: "entity", entityId: "key-1", resource: "b", managed: true }, [
        ["limits.rpm", "6/min", undefined],
      ]),
    ]);
  });

  it("names that every object has are names like others", () => {
    const entities = JSON.parse('{"__proto__":{"resources":{}}}') as Record<string, DeclaredEntity>;
    const named = { resources: { constructor: level(rpm(1)) }, entities };
    const entries = plan({ declared: named });
    expect(entries.map(({ entityId, resource }) => entityId ?? resource)).toEqual([
      "__proto__",
      "constructor",
    ]);
    expect(entries.map(({ action }) => action)).toEqual(["create", "create"]);
  });
});

describe("the system level", () => {
  const system = { level: "system" } as const;

  it("a retention that is the default need not be stored", () => {
    const [only] = plan({ declared: { system: { auditRetentionDays: 90 } } });
    expect(only).toEqual(entry("unchanged", system, []));
  });

  it("onUnavailable is stored as declared, even if it is the default", () => {
    const declared = { system: { onUnavailable: "block" } } as const;
    expect(plan({ declared })).toEqual([
      entry("create", system, [["on_unavailable", undefined, "block"]]),
    ]);
    expect(plan({ declared, stored: declared })).toEqual([entry("unchanged", system, [])]);
    const state = { applied: { ...declared, resources: {}, entities: {} } };
    expect(plan({ stored: declared, state })).toEqual([]);
  });

  it("declared settings leave undeclared limits alone, and vice versa", () => {
    const stored = {
      system: { limits: [rpm(1)], onUnavailable: "allow", usageRetentionDays: 7 },
    } as const;
    expect(plan({ declared: { system: { auditRetentionDays: 30 } }, stored })).toEqual([
      entry("create", system, [["audit_retention_days", undefined, "30"]]),
    ]);
    const replacing = { system: { ...stored.system, inherit: false } } as const;
    expect(plan({ declared: { system: { limits: [rpm(2)] } }, stored: replacing })).toEqual([
      entry("update", system, [
        ["limits.rpm", "1/min", "2/min"],
        ["inherit", "false", "true"],
      ]),
    ]);
    expect(plan({ declared: replacing, stored: replacing })[0]?.action).toBe("unchanged");
  });

  it("limits that leave the manifest are deleted, settings go back to their default", () => {
    const applied = {
      system: { limits: [rpm(1)], onUnavailable: "allow", auditRetentionDays: 30 },
    } as const;
    const stored = { system: { ...applied.system, usageRetentionDays: 7 } };
    const state = { managedSystem: true, applied: whole(applied) };
    const managed = { ...system, managed: true };
    expect(plan({ stored, state })).toEqual([
      entry("delete", managed, [
        ["limits.rpm", "1/min", undefined],
        ["on_unavailable", "allow", undefined],
        ["audit_retention_days", "30", undefined],
      ]),
    ]);
    expect(plan({ declared: { system: { limits: [rpm(1)] } }, stored, state })).toEqual([
      entry("update", managed, [
        ["on_unavailable", "allow", undefined],
        ["audit_retention_days", "30", undefined],
      ]),
    ]);
  });

  it("a setting that an interrupted apply may have stored goes back too", () => {
    const declared = whole({ system: { onUnavailable: "allow" } });
    const state = { pending: { hash: "a", startedAt: new Date(0), declared } };
    expect(plan({ stored: { system: { onUnavailable: "allow" } }, state })).toEqual([
      entry("delete", { ...system, managed: true }, [["on_unavailable", "allow", undefined]]),
    ]);
  });

  it("managed limits are deleted without settings if it is unknown what was applied", () => {
    const stored = { system: { limits: [rpm(1)], onUnavailable: "allow" } } as const;
    expect(plan({ stored, state: { managedSystem: true } })).toEqual([
      entry("delete", { ...system, managed: true }, [["limits.rpm", "1/min", undefined]]),
    ]);
  });
});

describe("records", () => {
  it("an entity has one declared by any field, by no resources, or by being a parent", () => {
    const entities = {
      child: { parentId: "parent", resources: {} },
      parent: { resources: { a: level(rpm(1)) } },
      plain: { resources: { a: level(rpm(1)) } },
      empty: { resources: {} },
      named: { name: "Ada", resources: { a: level(rpm(1)) } },
      bare: { metadata: {}, resources: { a: level(rpm(1)) } },
    };
    const records = plan({ declared: { entities } }).filter((found) => found.level === "record");
    expect(records).toEqual([
      entry("create", { level: "record", entityId: "parent" }, [["name", undefined, "parent"]]),
      entry("create", { level: "record", entityId: "child" }, [
        ["name", undefined, "child"],
        ["parent", undefined, "parent"],
      ]),
      entry("create", { level: "record", entityId: "empty" }, [["name", undefined, "empty"]]),
      entry("create", { level: "record", entityId: "named" }, [["name", undefined, "Ada"]]),
      entry("create", { level: "record", entityId: "bare" }, [["name", undefined, "bare"]]),
    ]);
  });

  it("updates declared fields alone, and metadata as a whole", () => {
    const stored = {
      entities: {
        a: {
          record: record("a", {
            name: "By hand",
            cascade: true,
            metadata: { plan: "gold", x: "1" },
          }),
          resources: {},
        },
      },
    };
    const updates = (entity: Omit<DeclaredEntity, "resources">): readonly PlanEntry[] =>
      plan({ declared: { entities: { a: { ...entity, resources: {} } } }, stored });
    const subject = { level: "record", entityId: "a" } as const;
    expect(updates({})).toEqual([entry("unchanged", subject, [])]);
    expect(updates({ cascade: true })).toEqual([entry("unchanged", subject, [])]);
    expect(updates({ name: "Ada", metadata: { plan: "free", y: "2" } })).toEqual([
      entry("update", subject, [
        ["name", "By hand", "Ada"],
        ["metadata.plan", "gold", "free"],
        ["metadata.y", undefined, "2"],
        ["metadata.x", "1", undefined],
      ]),
    ]);
    expect(updates({ metadata: {} })[0]?.action).toBe("update");
  });

  it("a chain of ten thousand parents is planned parents first", () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `e${index}`);
    const entities = Object.fromEntries(
      ids.map((id, index) => [
        id,
        { resources: {}, ...(index < 9_999 && { parentId: `e${index + 1}` }) },
      ]),
    );
    expect(plan({ declared: { entities } }).map(({ entityId }) => entityId)).toEqual(
      ids.toReversed(),
    );
  });
});

/** An entry without drift. */
function entry(
  action: PlanEntry["action"],
  subject: Pick<PlanEntry, "level" | "entityId" | "resource"> & { readonly managed?: boolean },
  values: readonly (readonly [string, string | undefined, string | undefined])[],
): PlanEntry {
  return {
    action,
    managed: false,
    ...subject,
    values: values.map(([name, before, after]) => ({ name, before, after, drift: false })),
    drift: false,
  };
}
