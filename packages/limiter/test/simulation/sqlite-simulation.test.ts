import { expect, it } from "vitest";
import { runSeeds } from "./run.ts";
import { sqliteBackend } from "./sqlite-backend.ts";

const SEEDS = 1000;

it(
  "the simulation keeps every promise on SQLite files over 1000 seeds, and meets every situation",
  { timeout: 900_000 },
  async () => {
    const { steps, coverage, failure } = await runSeeds(sqliteBackend, {
      first: 1,
      count: SEEDS,
    });
    if (failure !== undefined) throw new Error(failure.story, { cause: failure.error });
    console.log(`SQLite: ${SEEDS} seeds, ${steps} steps\n${coverage.toString()}`);
    // What is missing is what this backend does not have.
    expect(coverage.missing).toEqual(["bucket split"]);
  },
);
