import { seededRandom } from "zae-limiter/testing";
import { expect, it } from "vitest";

const draws = (seed: number, count: number): readonly number[] => {
  const random = seededRandom(seed);
  return Array.from({ length: count }, () => random());
};

it("returns the same numbers for the same seed, and only for the same seed", () => {
  expect(draws(42, 50)).toEqual(draws(42, 50));
  expect(draws(42, 5)).not.toEqual(draws(43, 5));
  expect(draws(0, 5)).not.toEqual(draws(1, 5));
});

it("returns the same numbers on every machine and in every version", () => {
  // A printed seed must replay its failure in later versions too.
  expect(draws(1, 3)).toEqual([0.6270739405881613, 0.002735721180215478, 0.5274470399599522]);
});

it("stays in [0, 1) and reaches every tenth of it", () => {
  const tenths = new Set<number>();
  for (const value of draws(7, 2000)) {
    expect(value).toBeGreaterThanOrEqual(0);
    expect(value).toBeLessThan(1);
    tenths.add(Math.floor(value * 10));
  }
  expect(tenths.size).toBe(10);
});
