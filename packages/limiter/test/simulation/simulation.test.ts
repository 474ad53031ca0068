import { expect, it } from "vitest";
import type { Backend } from "./client.ts";
import { memoryBackend } from "./memory-backend.ts";
import { runSeeds } from "./run.ts";

/** Each takes 8 ms of CPU; `npm run search` runs thousands. */
const SEEDS = 250;

/** What continuous integration allows; the runs take about half of it on one slow core. */
const MOST_CPU_SECONDS = 15;

it(
  "the simulation keeps every promise over 250 seeds, and meets every situation",
  { timeout: 600_000 },
  async () => {
    const before = process.cpuUsage();
    const { steps, coverage, failure } = await runSeeds(memoryBackend, {
      first: 1,
      count: SEEDS,
    });
    const { user, system } = process.cpuUsage(before);
    const cpuSeconds = (user + system) / 1e6;
    if (failure !== undefined)
      throw new Error(`${failure.story}\nAgain: npm run simulate -- --seed ${failure.seed}`, {
        cause: failure.error,
      });
    console.log(
      `${SEEDS} seeds, ${steps} steps, ${cpuSeconds.toFixed(1)} s of CPU\n${coverage.toString()}`,
    );
    // What is missing is what this backend does not have.
    expect(coverage.missing).toEqual(["bucket split", "bucket merged"]);
    expect(steps / SEEDS).toBeGreaterThanOrEqual(95);
    expect(cpuSeconds).toBeLessThan(MOST_CPU_SECONDS);
  },
);

it("a broken promise is reported with its seed, shortest history and reason", async () => {
  const { failure } = await runSeeds(forgetful, { first: 1, count: 100 });
  expect(failure?.story).toMatch(
    /Seed \d+ on forgetful memory fails; shortest history found \(\d+ of \d+ steps/,
  );
  // Limits, a grant, and its rollback.
  expect(failure?.steps).toBeLessThanOrEqual(3);
});

/** A backend that gives nothing back. */
const forgetful: Backend = {
  name: "forgetful memory",
  separate: false,
  begin: async () => {
    const run = await memoryBackend.begin();
    return {
      open: async (clock) =>
        new Proxy(await run.open(clock), {
          get: (target, property) => {
            if (property === "giveBack") return () => {};
            const member: unknown = Reflect.get(target, property, target);
            return typeof member === "function" ? member.bind(target) : member;
          },
        }),
    };
  },
};
