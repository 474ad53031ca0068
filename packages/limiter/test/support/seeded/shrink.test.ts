import { expect, it } from "vitest";
import { shrink, type Proposals } from "./shrink.ts";

function* smaller(from: number): Proposals<number> {
  for (let best = from, step = 8; step >= 1;) {
    if (yield best - step) best -= step;
    else step /= 2;
  }
}

const failsFrom7 = async (value: number): Promise<boolean> => value >= 7;

it("a failure is shrunk as far as its proposals lead", async () => {
  expect(await shrink(100, smaller(100), { stillFails: failsFrom7, mostReplays: 100 })).toBe(7);
});

it("shrinking ends after the most replays, with the simplest failure until then", async () => {
  expect(await shrink(100, smaller(100), { stillFails: failsFrom7, mostReplays: 2 })).toBe(84);
});
