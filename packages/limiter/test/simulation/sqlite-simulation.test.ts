import { expect, it } from "vitest";
import { seedsFromEnvironment } from "../support/seeded/seeds.ts";
import { runSeeds } from "./run.ts";
import { sqliteBackend } from "./sqlite-backend.ts";

const SEEDS = seedsFromEnvironment({ usual: 30 });

/** A run of at least this many must meet every situation. */
const ENOUGH_SEEDS = 1000;

it(
  `the simulation keeps every promise on SQLite files over ${SEEDS.count} seeds, and meets every situation`,
  { timeout: 900_000 },
  async () => {
    const { steps, coverage, failure } = await runSeeds(sqliteBackend, SEEDS);
    if (failure !== undefined) throw new Error(failure.story, { cause: failure.error });
    console.log(`SQLite: ${SEEDS.count} seeds, ${steps} steps\n${coverage.toString()}`);
    // What is missing is what this backend does not have.
    if (SEEDS.count >= ENOUGH_SEEDS)
      expect(coverage.missing).toEqual(["bucket split", "bucket merged"]);
  },
);
