import { describe, expect, it } from "vitest";
import { marshalItem, type Value } from "../../transport/attribute-values.ts";
import { addExactly, usageChange } from "./usage-change.ts";

/** The totals of a bucket, beside what every item has. */
function item(totals: Readonly<Record<string, Value>>) {
  return marshalItem({
    PK: "ns/BUCKET#e#r#0",
    SK: "#STATE",
    cr: "a.0001",
    sv: 5,
    rf: 7,
    ...totals,
  });
}

/** What a change consumed, by attribute. */
function readConsumed(
  before: Readonly<Record<string, Value>> | undefined,
  after: Readonly<Record<string, Value>>,
): Readonly<Record<string, number | bigint>> | undefined {
  const change = usageChange(before && item(before), item(after));
  return change && Object.fromEntries(change.map(({ attribute, amount }) => [attribute, amount]));
}

describe("what a change of a bucket consumed", () => {
  it("is how much its totals have grown, own and cascaded", () => {
    const before = { b_rpm_tc: 1000, b_rpm_tk: 9000, gr: 1, b_wcu_tc: 1 };
    const after = { b_rpm_tc: 4000, b_rpm_tk: 6000, b_rpm_cc: 2000, gr: 4, gc: 2, b_wcu_tc: 2 };
    expect(readConsumed(before, after)).toEqual({
      u_rpm: 3000,
      c_rpm: 2000,
      requests: 3,
      cascaded_requests: 2,
    });
  });

  it("is negative for a give-back, which is not a new bucket", () => {
    expect(readConsumed({ b_rpm_tc: 5000, gr: 2 }, { b_rpm_tc: 1000, gr: 1 })).toEqual({
      u_rpm: -4000,
      requests: -1,
    });
  });

  it("is everything that a new bucket has, and that one of another creation has", () => {
    const after = { b_rpm_tc: 3000, gr: 1 };
    expect(readConsumed(undefined, after)).toEqual({ u_rpm: 3000, requests: 1 });
    expect(readConsumed({ b_rpm_tc: 9000, gr: 7, cr: "b.0001" }, after)).toEqual({
      u_rpm: 3000,
      requests: 1,
    });
  });

  it("is nothing for a split and a merge, on either half", () => {
    const whole = { b_rpm_tc: 3000, gr: 1, sv: 5 };
    const split = { ...whole, sv: 6, sd: 6 };
    expect(readConsumed(whole, split)).toEqual({});
    expect(readConsumed(undefined, { b_rpm_tc: 0, gr: 0, sv: 6, sd: 6 })).toEqual({});
    // What a deleted bucket left under the key is replaced.
    expect(readConsumed({ ...split, cr: "old" }, { b_rpm_tc: 0, gr: 0, sv: 9, sd: 9 })).toEqual({});
    expect(readConsumed(split, { b_rpm_tc: 8000, gr: 4, sv: 7, sd: 7 })).toEqual({});
    expect(readConsumed(split, { ...split, b_rpm_tc: 4000 })).toEqual({ u_rpm: 1000 });
  });

  it("is what a policy rewrite takes, although it has another version", () => {
    expect(readConsumed({ b_rpm_tc: 3000, sv: 5 }, { b_rpm_tc: 4000, sv: 6 })).toEqual({
      u_rpm: 1000,
    });
  });

  it("is nothing of a limit that was dropped, and starts at nothing when it is back", () => {
    expect(readConsumed({ b_rpm_tc: 3000, b_tpm_tc: 9000 }, { b_rpm_tc: 4000 })).toEqual({
      u_rpm: 1000,
    });
    expect(readConsumed({ b_rpm_tc: 3000 }, { b_rpm_tc: 3000, b_tpm_tc: 500 })).toEqual({
      u_tpm: 500,
    });
  });

  it("distinguishes limits from the bucket's own attributes", () => {
    const names = ["a_tc", "wcu_tc", "ttl", "cc", "_", "b-1.x", "__proto__"];
    const after = Object.fromEntries(names.map((name) => [`b_${name}_tc`, 1000]));
    const others = { b_wcu_tc: 50, b_a_tk: 1, b_a_cp: 1, b_c: 3, bc: 4, b__tc: 5, basic: 6, go: 7 };
    expect(readConsumed(undefined, { ...after, ...others })).toEqual(
      Object.fromEntries(names.map((name) => [`u_${name}`, 1000])),
    );
  });

  it("is exact where totals have left the safe range", () => {
    const large = 10n ** 20n;
    expect(readConsumed({ b_rpm_tc: large }, { b_rpm_tc: large + 1n })).toEqual({ u_rpm: 1n });
    expect(readConsumed({ b_rpm_tc: -(2 ** 53 - 1) }, { b_rpm_tc: 2 ** 53 - 1 })).toEqual({
      u_rpm: 2n ** 54n - 2n,
    });
    expect(addExactly(2 ** 53 - 1, 2)).toBe(2n ** 53n + 1n);
    expect(addExactly(2n, 3)).toBe(5n);
    expect(addExactly(2, -3)).toBe(-1);
  });

  it("is unknown when a total is not a whole number", () => {
    for (const total of ["text", 1.5, null, true]) {
      expect(readConsumed({ b_rpm_tc: 1000 }, { b_rpm_tc: total })).toBeUndefined();
      expect(readConsumed({ gr: total }, { gr: 1 })).toBeUndefined();
    }
  });
});
