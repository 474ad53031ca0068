import { describe, expect, it } from "vitest";
import { judgeCompatibility, type CompatibilityState, type LambdaState } from "./compatibility.ts";
import { assertCompatible } from "./schema-version.ts";

const CLIENT = "1.4.2";

describe("the versions of client, schema and Lambda", () => {
  it.each<[string | undefined, string, CompatibilityState]>([
    ["1.0.0", "0.0.0", "compatible"],
    ["1.0.1", "1.4.2", "compatible"],
    ["1.9.0", "1.4.1", "compatible"],
    [undefined, "0.0.0", "not initialised"],
    ["0.9.0", "0.0.0", "upgrade needed"],
    ["0.10.0", "0.0.0", "upgrade needed"],
    // The minimum counts versions of the Python library there.
    ["0.10.0", "9.0.0", "upgrade needed"],
    ["0.10.0", "0.15.0rc1", "upgrade needed"],
    ["1.0.0-upgrading", "0.0.0", "upgrade needed"],
    ["2.0.0", "0.0.0", "schema too new"],
    ["10.0.0", "0.0.0", "schema too new"],
    ["1.0.0", "1.4.3", "client too old"],
    ["1.0.0", "1.10.0", "client too old"],
    ["1.0.0", "latest", "unreadable"],
    ["1.0.0", "", "unreadable"],
    ["1.0.0", "1.x.0", "unreadable"],
    ["one", "0.0.0", "unreadable"],
    ["1.0", "0.0.0", "unreadable"],
  ])("schema %s, minimum %s: %s [W-68]", (schemaVersion, clientMinVersion, expected) => {
    const versions = { clientVersion: CLIENT, schemaVersion, lambdaVersion: undefined };
    expect(judgeCompatibility({ ...versions, clientMinVersion }).state).toBe(expected);
  });

  it.each<[string | undefined, LambdaState, RegExp]>([
    [undefined, "none", /supports\.$/],
    ["1.4.2", "same", /supports\.$/],
    ["1.4.2-rc.1", "same", /supports\.$/],
    ["1.3.9", "older", /zae-limiter upgrade --lambda-only$/],
    ["1.10.0", "newer", /Upgrade this client/],
    ["unknown", "unreadable", /zae-limiter upgrade --lambda-only$/],
  ])("a Lambda of version %s is %s", (lambdaVersion, expected, message) => {
    const versions = { clientVersion: CLIENT, schemaVersion: "1.0.0", clientMinVersion: "0.0.0" };
    const compatibility = judgeCompatibility({ ...versions, lambdaVersion });
    expect(compatibility).toMatchObject({ state: "compatible", lambda: expected });
    expect(compatibility.message).toMatch(message);
  });

  it.each([
    ["0.10.0", "0.0.0", "ERR_LIMITER_INCOMPATIBLE_SCHEMA"],
    ["2.0.0", "0.0.0", "ERR_LIMITER_INCOMPATIBLE_SCHEMA"],
    ["1.0.0", "99.0.0", "ERR_LIMITER_VERSION_MISMATCH"],
    ["1.0.0", "unknown", "ERR_LIMITER_INCOMPATIBLE_SCHEMA"],
  ])(
    "a table with schema %s and minimum %s is not opened [W-68]",
    (schemaVersion, clientMinVersion, code) => {
      const record = { schemaVersion, clientMinVersion, lambdaVersion: undefined };
      const stored = { ...record, updatedAt: new Date(0), updatedBy: undefined };
      expect(() => assertCompatible(stored)).toThrow(expect.objectContaining({ code }));
    },
  );
});
