import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { IncompatibleSchemaError } from "../../../core/errors.ts";
import { anyLimit } from "../../../../test/support/any-limit.ts";
import { Limit } from "../../../core/limit.ts";
import { marshalItem } from "../transport/attribute-values.ts";
import { configItem, parseConfig } from "./config-item.ts";
import { buildLimitAttributes, readLimit, readLimitText } from "./config-limit.ts";

const amount = fc.integer({ min: 1, max: 1_000_000 });
const limit = fc.record({
  name: fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_.-]{0,10}$/),
  capacity: amount,
  refillAmount: amount,
  refillPeriodSeconds: amount,
});
const limits = fc.uniqueArray(limit, { selector: ({ name }) => name, minLength: 1, maxLength: 6 });

describe("the item of a level's limits", () => {
  it("returns what was stored, in its order, whatever the limits are named", () => {
    fc.assert(
      fc.property(limits, (list) => {
        const key = { level: "resource", resource: "r" } as const;
        expect(parseConfig(key, configItem("ns", key, { limits: list }))).toEqual({ limits: list });
      }),
    );
  });

  it("is the text of every other kind, in parts", () => {
    fc.assert(
      fc.property(anyLimit(), (kept) => {
        const item = marshalItem(buildLimitAttributes(kept));
        const text = readLimitText(item, kept.name);
        if (text !== undefined) expect(text).toBe(Limit.format(kept));
        else expect(readLimit(item, kept.name)).toEqual(kept);
      }),
    );
    const tpd = Limit.quota("tpd", 5, { every: "day", zone: "UTC" }, { soft: true });
    expect(marshalItem(buildLimitAttributes(tpd))).toEqual({
      l_tpd_cp: { N: "5" },
      l_tpd_kd: { S: "quota" },
      l_tpd_df: { S: "day@UTC" },
      l_tpd_op: { S: "[soft]" },
    });
  });

  it("keeps limits apart whose names contain each other's attributes", () => {
    const key = { level: "entity", entityId: "e", resource: "r" } as const;
    const list = ["a", "a_cp", "a_cp_cp", "cp"].map((name, index) => ({
      name,
      capacity: index + 1,
      refillAmount: 1,
      refillPeriodSeconds: 60,
    }));
    expect(parseConfig(key, configItem("ns", key, { limits: list }))).toEqual({ limits: list });
  });

  it("keeps whether the level inherits, whatever the limits are named", () => {
    fc.assert(
      fc.property(limits, (list) => {
        const key = { level: "resource", resource: "r" } as const;
        const config = { limits: list, inherit: true };
        expect(parseConfig(key, configItem("ns", key, config))).toEqual(config);
      }),
    );
  });

  it("keeps settings without limits", () => {
    const settings = {
      onUnavailable: "block",
      auditRetentionDays: 3,
      usageRetentionDays: undefined,
    } as const;
    const key = { level: "system" } as const;
    expect(parseConfig(key, configItem("ns", key, { limits: undefined, settings }))).toEqual({
      limits: undefined,
      settings,
    });
  });

  it("reads limits of items that do not store their order", () => {
    const number = { N: "1" };
    const item = {
      l_b_cp: number,
      l_b_ra: number,
      l_b_rp: number,
      l_a_cp: number,
      l_a_ra: number,
      l_a_rp: number,
    };
    expect(parseConfig({ level: "system" }, item).limits?.map(({ name }) => name)).toEqual([
      "a",
      "b",
    ]);
  });

  it("refuses a kind of limit that this version does not support", () => {
    const item = {
      l_a_cp: { N: "1" },
      l_a_ra: { N: "1" },
      l_a_rp: { N: "1" },
      l_a_kd: { S: "quota" },
    };
    expect(() => parseConfig({ level: "system" }, item)).toThrow(IncompatibleSchemaError);
    const mark = { "l_*_cp": { N: "0" }, "l_*_kd": { S: "another mark" } };
    expect(() => parseConfig({ level: "resource", resource: "r" }, mark)).toThrow(
      IncompatibleSchemaError,
    );
  });

  it.each(["l_a_sched", "l_a_rsched", "l_a_soft", "w_b_cp", "sched_tz", "disabled", "cascade"])(
    "refuses what the Python zae-limiter means and this one does not: %s",
    (attribute) => {
      const item = { PK: { S: "ns/RESOURCE#r" }, l_a_cp: { N: "1" }, [attribute]: { N: "1" } };
      const read = (): unknown => parseConfig({ level: "resource", resource: "r" }, item);
      expect(read).toThrow(IncompatibleSchemaError);
      expect(read).toThrow(`The limits in ns/RESOURCE#r have '${attribute}'`);
    },
  );

  it("takes no name of a limit for something else", () => {
    const number = { N: "1" };
    const item = { l_w_sched_cp: number, l_w_sched_ra: number, l_w_sched_rp: number };
    expect(parseConfig({ level: "system" }, item).limits).toMatchObject([{ name: "w_sched" }]);
  });
});
