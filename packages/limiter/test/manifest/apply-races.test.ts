import { expect, it } from "vitest";
import { MemoryRepository } from "zae-limiter/memory";
import { getEach, seedsFromEnvironment } from "../support/seeded/seeds.ts";
import { withoutStackTraces } from "../support/seeded/without-stack-traces.ts";
import { newRaceCoverage, runRace } from "./race.ts";

const SEEDS = seedsFromEnvironment({ usual: 100 });

it("of two applies at once one wins whole, however their operations mix", async () => {
  const coverage = newRaceCoverage();
  await withoutStackTraces(async () => {
    for (const seed of getEach(SEEDS)) await runRace(seed, new MemoryRepository(), coverage);
  });
  console.log(`${SEEDS.count} races of two applies\n${coverage.toString()}`);
  if (process.env["SEEDS"] === undefined) expect(coverage.missing).toEqual([]);
}, 600_000);
