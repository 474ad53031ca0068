import { describe, expect, it } from "vitest";
import {
  countArrivals,
  SHAPES,
  spiker,
  steps,
  uniform,
  whale,
  zipf,
} from "artillery-engine-zae-limiter";
import { createdByArtillery } from "../../test/support/phaser.ts";

describe("shapes", () => {
  it.each(Object.entries(SHAPES))("%s: Artillery creates what was planned", (_, shape) => {
    for (const workers of [1, 2, 3, 7])
      for (const [durationSeconds, rate] of [
        [1, 1],
        [10, 3],
        [60, 150],
        [97, 4001],
        [6, 64_000],
      ] as const) {
        const phases = shape({ durationSeconds, rate });
        expect(countArrivals(phases, workers)).toBe(createdByArtillery(phases, workers));
        const lengths = phases.map(({ duration = 0, pause = 0 }) => duration + pause);
        expect(lengths.reduce((sum, seconds) => sum + seconds, 0)).toBe(durationSeconds);
      }
  });

  it("reach the rate, in the order that they say", () => {
    const rates = steps({ durationSeconds: 10, rate: 100, count: 5 }).map(
      ({ arrivalRate }) => arrivalRate,
    );
    expect(rates).toEqual([20, 40, 60, 80, 100]);
    for (const shape of Object.values(SHAPES)) {
      const phases = shape({ durationSeconds: 100, rate: 50 });
      expect(Math.max(...phases.map(({ arrivalRate = 0 }) => arrivalRate))).toBe(50);
    }
  });

  it.each([
    { durationSeconds: 0, rate: 1 },
    { durationSeconds: 1.5, rate: 1 },
    { durationSeconds: 10, rate: -1 },
    { durationSeconds: 10, rate: 1e9 },
  ])("refuse %o", (options) => {
    for (const shape of Object.values(SHAPES))
      expect(() => shape(options)).toThrow(/must be a whole number/);
  });
});

it.each([0, 1.5, Number.NaN])("%s steps are refused", (count) => {
  expect(() => steps({ durationSeconds: 10, rate: 10, count })).toThrow(/count: must be a whole/);
});

describe("entities", () => {
  it("are the same for the same seed, and others for another", () => {
    expect(pick(1)).toEqual(pick(1));
    expect(pick(1)).not.toEqual(pick(2));
  });

  it("are distributed as they say", () => {
    expect(countFirst(uniform({ count: 10 }), "user-0")).toBeCloseTo(0.1, 1);
    // 1 / ζ(1.5) for infinitely many.
    expect(countFirst(zipf({ count: 16_000, exponent: 1.5 }), "user-0")).toBeCloseTo(0.385, 1);
    const others = uniform({ count: 10 });
    expect(countFirst(whale({ share: 0.5, others }), "whale")).toBeCloseTo(0.5, 1);
    const isBursting = spiker({ probability: 0.1, burstSeconds: 30 });
    const minutes = Array.from({ length: 2000 }, (_, minute) =>
      isBursting("spiker-1", minute * 60),
    );
    expect(minutes.filter(Boolean).length / 2000).toBeCloseTo(0.1, 1);
    const start = minutes.indexOf(true) * 60;
    expect(isBursting("spiker-1", start + 29)).toBe(true);
    expect(isBursting("spiker-1", start + 31)).toBe(false);
  });
});

function pick(seed: number): readonly string[] {
  const next = zipf({ count: 100, seed });
  return Array.from({ length: 50 }, () => next());
}

/** How often an entity is picked, as a part of all. */
function countFirst(next: () => string, id: string): number {
  return Array.from({ length: 10_000 }, () => next()).filter((each) => each === id).length / 10_000;
}
