import { describe, expect, it } from "vitest";
import { Limit, type DeclaredLevel, type DeclaredLimits, type ProvisionerState } from "zae-limiter";
import { computeDiff as plan, record, whole } from "../../test/support/manifests.ts";

const rpm = (rate: number): Limit => Limit.perMinute("rpm", rate);
const TPM = Limit.perMinute("tpm", 1000, { burst: 1500 });
const level = (...limits: readonly Limit[]): DeclaredLevel => ({ limits, inherit: true });

describe("drift", () => {
  const applied = whole({ resources: { a: level(rpm(5), TPM) } });
  const state = { managedResources: ["a"], applied, appliedHash: "a" };
  const drifts = (
    stored: DeclaredLevel | undefined,
    declared: DeclaredLevel | undefined,
    more: Partial<ProvisionerState> = {},
  ): readonly string[] =>
    plan({
      declared: { resources: declared === undefined ? {} : { a: declared } },
      stored: { resources: stored === undefined ? {} : { a: stored } },
      state: { ...state, ...more },
    }).flatMap((found) => {
      expect(found.drift).toBe(found.values.some((value) => value.drift));
      return found.values.map(({ name, drift }) => `${name} ${drift ? "drift" : "planned"}`);
    });

  it("is a value that is not the one that was applied", () => {
    expect(drifts(level(rpm(6), TPM), level(rpm(5), TPM))).toEqual(["limits.rpm drift"]);
    expect(drifts(level(rpm(5), TPM), level(rpm(7), TPM))).toEqual(["limits.rpm planned"]);
    expect(drifts(level(TPM), level(rpm(5), TPM))).toEqual(["limits.rpm drift"]);
    expect(drifts(level(rpm(5), TPM, Limit.perDay("tpd", 1)), level(rpm(5), TPM))).toEqual([
      "limits.tpd drift",
    ]);
    expect(drifts({ ...level(rpm(5), TPM), inherit: false }, level(rpm(5), TPM))).toEqual([
      "inherit drift",
    ]);
  });

  it("includes a level that was deleted, and one that was changed before its deletion", () => {
    expect(drifts(undefined, level(rpm(5)))).toEqual(["limits.rpm drift"]);
    expect(drifts(level(rpm(6), TPM), undefined)).toEqual([
      "limits.rpm drift",
      "limits.tpm planned",
    ]);
  });

  it("is not what an interrupted apply may have written, or deleted", () => {
    const other = getPending(whole({ resources: { a: level(rpm(6), TPM) } }));
    const wanted = level(rpm(7), TPM);
    expect(drifts(level(rpm(5), TPM), wanted, other)).toEqual(["limits.rpm planned"]);
    expect(drifts(level(rpm(6), TPM), wanted, other)).toEqual(["limits.rpm planned"]);
    expect(drifts(level(rpm(8), TPM), wanted, other)).toEqual(["limits.rpm drift"]);
    expect(drifts(undefined, level(rpm(5)), getPending(whole({})))).toEqual(["limits.rpm planned"]);
  });

  it("is unknown where nothing was applied, such as for an adopted level", () => {
    expect(drifts(level(rpm(6)), level(rpm(5)), { applied: undefined })).toEqual([
      "limits.rpm planned",
    ]);
    expect(drifts(level(rpm(6)), level(rpm(5)), { applied: whole({}) })).toEqual([
      "limits.rpm planned",
    ]);
    // As after two interrupted applies: both are named, and either may be stored.
    expect(drifts(level(rpm(6)), level(rpm(5)), { appliedHash: undefined })).toEqual([
      "limits.rpm planned",
    ]);
  });

  it("is found in records and settings that were applied", () => {
    const entity = { name: "Ada", cascade: true, resources: {} };
    const entries = plan({
      declared: { system: { onUnavailable: "allow", limits: [rpm(1)] }, entities: { a: entity } },
      stored: {
        system: { limits: [rpm(9)] },
        entities: { a: { record: record("a", { name: "Bob" }), resources: {} } },
      },
      state: {
        appliedHash: "a",
        applied: whole({
          system: { onUnavailable: "allow" },
          entities: { a: { name: "Ada", resources: {} } },
        }),
      },
    });
    expect(entries.flatMap(({ values }) => values.map(({ name, drift }) => [name, drift]))).toEqual(
      [
        ["name", true],
        ["cascade", false],
        ["limits.rpm", false],
        ["on_unavailable", true],
      ],
    );
    const gone = plan({
      declared: { entities: { a: { resources: {} } } },
      state: { appliedHash: "a", applied: whole({ entities: { a: { resources: {} } } }) },
    });
    expect(gone.map(({ action, drift }) => [action, drift])).toEqual([["create", true]]);
  });
});

/** An apply that was interrupted. */
function getPending(declared: DeclaredLimits): Partial<ProvisionerState> {
  return { pending: { hash: "b", startedAt: new Date(0), declared } };
}
