import { describe, expect, it } from "vitest";
import { usageFromTotals } from "./token-counts.ts";

const TOTALS = { prompt: 100, cached: 30, cacheWrite: 20, output: 50, reasoning: 10 };
const NO_COUNTS = [-1, 1.5, NaN, Infinity, 2 ** 53, "7", "", true, {}, [], [1], 5n];

describe("a usage", () => {
  it("has what was neither read from a cache nor written to one as its input", () => {
    expect(usageFromTotals(TOTALS)).toEqual({
      input: 50,
      cachedInput: 30,
      cacheWriteInput: 20,
      output: 50,
      reasoning: 10,
    });
  });

  it.each(["cached", "cacheWrite", "reasoning"])("may have no %s", (part) => {
    for (const absent of [undefined, null, 0]) {
      const usage = usageFromTotals({ ...TOTALS, [part]: absent });
      expect(Object.values(usage!).filter((count) => count === 0)).toHaveLength(1);
    }
  });

  it.each(["prompt", "output"])("must have its %s", (total) => {
    for (const absent of [undefined, null])
      expect(usageFromTotals({ ...TOTALS, [total]: absent })).toBeUndefined();
    expect(usageFromTotals({ prompt: 0, output: 0 })).toBeDefined();
  });

  it.each(Object.keys(TOTALS))("is not believed if its %s is not a count", (name) => {
    for (const value of NO_COUNTS)
      expect(usageFromTotals({ ...TOTALS, [name]: value }), typeof value).toBeUndefined();
  });

  it("is not believed if its caches are more than the prompt", () => {
    expect(usageFromTotals({ ...TOTALS, cached: 80 })).toMatchObject({ input: 0 });
    expect(usageFromTotals({ ...TOTALS, cached: 81 })).toBeUndefined();
  });

  it("counts reasoning as output where a server counts it apart", () => {
    expect(usageFromTotals({ ...TOTALS, total: 150 })).toMatchObject({ output: 50 });
    expect(usageFromTotals({ ...TOTALS, total: 160 })).toMatchObject({ output: 60, reasoning: 10 });
    expect(usageFromTotals({ ...TOTALS, reasoning: 51 })).toMatchObject({ output: 101 });
    expect(usageFromTotals({ ...TOTALS, total: "160" })).toMatchObject({ output: 50 });
  });
});
