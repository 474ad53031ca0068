import { expect, it } from "vitest";
import { findHighestRate } from "./find-highest-rate.ts";

const search = (
  limit: number,
  startRate = 50,
  mostRate = 10_000,
): ReturnType<typeof findHighestRate> =>
  findHighestRate({ startRate, mostRate }, async (rate) => ({ rate, passed: rate <= limit }));

it.each([1, 2, 7, 49, 50, 51, 99, 333, 1000, 9999, 10_000])(
  "finds a limit of %s to a tenth",
  async (limit) => {
    const { rate, trials } = await search(limit);
    expect(rate).toBeLessThanOrEqual(limit);
    expect(rate).toBeGreaterThanOrEqual(Math.floor(limit / 1.1) - 1);
    expect(trials.length).toBeLessThan(16);
  },
);

it("is 0 when every rate misses, and never above the largest", async () => {
  const { rate, trials } = await search(0);
  expect({ rate, last: trials.at(-1) }).toEqual({ rate: 0, last: { rate: 1, passed: false } });
  expect(await search(Infinity)).toMatchObject({ rate: 10_000 });
});

it("ends when it is interrupted, without the trial that was under way", async () => {
  const stopping = new AbortController();
  const { rate, trials } = await findHighestRate(
    { startRate: 1, mostRate: 100, signal: stopping.signal },
    async (tried) => {
      if (tried === 4) stopping.abort();
      return { rate: tried, passed: true };
    },
  );
  expect({ rate, tried: trials.length }).toEqual({ rate: 2, tried: 2 });
});
