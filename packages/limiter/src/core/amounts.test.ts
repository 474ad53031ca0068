import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addAmounts,
  getAmount,
  checkNames,
  copyAmounts,
  copyDeltas,
  MAX_AMOUNT,
  MILLI,
} from "./amounts.ts";
import { ValidationError } from "./errors.ts";

describe("amounts", () => {
  it("the millitokens of the largest amount are safe, and those of the next one are not", () => {
    expect(Number.isSafeInteger(MAX_AMOUNT * MILLI)).toBe(true);
    expect(Number.isSafeInteger((MAX_AMOUNT + 1) * MILLI)).toBe(false);
  });

  it("accepts whole numbers from 0 to the largest, and signed ones for differences", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.nat({ max: MAX_AMOUNT })), (amounts) => {
        copyAmounts(amounts, "consume");
        copyDeltas(amounts, "adjust");
      }),
    );
    expect(() => copyDeltas({ a: -MAX_AMOUNT }, "adjust")).not.toThrow();
    expect(() => copyAmounts({ a: -1 }, "consume")).toThrow(/must not be negative/);
    expect(() => copyDeltas({ a: -MAX_AMOUNT - 1 }, "adjust")).toThrow(ValidationError);
  });

  it("does not take inherited properties for amounts", () => {
    expect(getAmount({}, "constructor")).toBe(0);
    expect(getAmount({ constructor: 3 }, "constructor")).toBe(3);
  });

  it("refuses unknown names, and lists the known ones", () => {
    expect(() => checkNames({ rpm: 1 }, new Set(["rpm", "tpm"]), "consume")).not.toThrow();
    expect(() => checkNames({ rpn: 1 }, new Set(["rpm", "tpm"]), "consume")).toThrow(/rpm, tpm/);
    expect(() => checkNames({ toString: 1 }, new Set(["rpm"]), "consume")).toThrow(ValidationError);
  });

  it("adds name by name without changing its arguments", () => {
    const [left, right] = [
      Object.freeze({ a: 1, b: 2 }),
      Object.freeze({ b: -5, constructor: 1 } as unknown as Record<string, number>),
    ];
    expect(addAmounts(left, right)).toEqual({ a: 1, b: -3, constructor: 1 });
  });
});
