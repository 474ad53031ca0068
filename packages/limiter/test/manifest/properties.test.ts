import { expect, it } from "vitest";
import { MemoryRepository } from "zae-limiter/memory";
import { SqliteRepository } from "zae-limiter/sqlite";
import { getEach, seedsFromEnvironment } from "../support/seeded/seeds.ts";
import { withoutStackTraces } from "../support/seeded/without-stack-traces.ts";
import { newCoverage, runHistory } from "./history.ts";

const SEEDS = seedsFromEnvironment({ usual: 60 });

it(
  "an apply makes the store what the manifest says, whatever came before, and touches nothing else",
  { timeout: 600_000 },
  async () => {
    const coverage = newCoverage();
    await withoutStackTraces(async () => {
      for (const seed of getEach(SEEDS)) await runHistory(seed, new MemoryRepository(), coverage);
    });
    console.log(`${SEEDS.count} histories of applies\n${coverage.toString()}`);
    if (process.env["SEEDS"] === undefined) expect(coverage.missing).toEqual([]);
  },
);

it("the same holds on SQLite", { timeout: 600_000 }, async () => {
  for (const seed of getEach(seedsFromEnvironment({ usual: 3 }))) {
    await using repository = await SqliteRepository.open(":memory:");
    await runHistory(seed, repository, newCoverage());
  }
});
