import { expect, it } from "vitest";
import { Strictness } from "./strictness.ts";
import { toTerms } from "./terms.ts";

const ten = toTerms({ name: "rpm", capacity: 10, refillAmount: 1, refillPeriodSeconds: 1 });
const twenty = toTerms({ name: "rpm", capacity: 20, refillAmount: 2, refillPeriodSeconds: 1 });

it("takes the capacity at once, and then what was earned, for strict", () => {
  const strictness = new Strictness();
  expect(strictness.add(0, { tokens: 10, terms: ten }, true)).toBeUndefined();
  expect(strictness.add(3000, { tokens: 3, terms: ten }, true)).toBeUndefined();
});

it("finds the interval in which a bucket that overflowed while idle granted more than its capacity", () => {
  const strictness = new Strictness();
  strictness.add(0, { tokens: 1, terms: ten }, true);
  strictness.add(60_000, { tokens: 10, terms: ten }, true);
  expect(strictness.add(60_000, { tokens: 1, terms: ten }, true)).toMatch(
    /11000 millitokens of rpm were taken since 60000, where at most 10000 may be/,
  );
});

it("allows no more for a capacity that was raised, lowered and raised again", () => {
  const strictness = new Strictness();
  strictness.add(0, { tokens: 10, terms: ten }, true);
  strictness.add(0, { tokens: 0, terms: twenty }, false);
  strictness.add(0, { tokens: 0, terms: ten }, false);
  strictness.add(0, { tokens: 0, terms: twenty }, false);
  expect(strictness.add(0, { tokens: 1, terms: twenty }, true)).toMatch(/at most 10000 may be/);
});

it("earns each part of an interval at the rate that held in it", () => {
  const strictness = new Strictness();
  strictness.add(0, { tokens: 10, terms: ten }, true);
  strictness.add(5000, { tokens: 0, terms: twenty }, false);
  expect(strictness.add(7000, { tokens: 9, terms: twenty }, true)).toBeUndefined();
  expect(strictness.add(7000, { tokens: 1, terms: twenty }, true)).toMatch(/at most 19000 may be/);
});

it("lets a settlement cause debt, which then stands against the next grant", () => {
  const strictness = new Strictness();
  expect(strictness.add(0, { tokens: 15, terms: ten }, false)).toBeUndefined();
  expect(strictness.add(5000, { tokens: 1, terms: ten }, true)).toBeDefined();
  expect(new Strictness().add(0, { tokens: 10, terms: ten }, true)).toBeUndefined();
});

it("counts what went back", () => {
  const strictness = new Strictness();
  strictness.add(0, { tokens: 10, terms: ten }, true);
  strictness.add(0, { tokens: -4, terms: ten }, false);
  expect(strictness.add(0, { tokens: 4, terms: ten }, true)).toBeUndefined();
  expect(strictness.add(0, { tokens: 1, terms: ten }, true)).toBeDefined();
});
