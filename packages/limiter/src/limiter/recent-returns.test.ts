import { expect, it } from "vitest";
import { RecentReturns } from "./recent-returns.ts";

it("knows which buckets got tokens back since an attempt began, and no earlier ones", () => {
  const returns = new RecentReturns();
  const first = returns.begin();
  returns.note("a");
  const second = returns.begin();
  returns.note("b");
  expect(returns.isAnySince(first, ["a"])).toBe(true);
  expect(returns.isAnySince(second, ["a", "c"])).toBe(false);
  expect(returns.isAnySince(second, ["c", "b"])).toBe(true);
});

it("forgets when no attempt is in progress", () => {
  const returns = new RecentReturns();
  const first = returns.begin();
  returns.note("a");
  returns.end();
  returns.note("b");
  const second = returns.begin();
  expect(returns.isAnySince(first, ["a", "b"])).toBe(false);
  expect(returns.isAnySince(second, ["a", "b"])).toBe(false);
});

it("answers true for attempts that began before it had to forget, and only for those", () => {
  const returns = new RecentReturns(2);
  const before = returns.begin();
  for (const bucket of ["a", "b", "c"]) returns.note(bucket);
  const after = returns.begin();
  expect(returns.isAnySince(before, ["d"])).toBe(true);
  expect(returns.isAnySince(after, ["c", "d"])).toBe(false);
  returns.note("d");
  expect(returns.isAnySince(after, ["d"])).toBe(true);
});
